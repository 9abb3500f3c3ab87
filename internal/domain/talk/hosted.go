package talk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
)

// The kinds of intents that conversations put, and their arguments.
var (
	postKind    = intent.Declare[postArgs, posted]("talk.review", false)
	sayKind     = intent.Declare[sayArgs, codehost.Comment]("talk.say", false)
	resolveKind = intent.Declare[resolveArgs, string]("talk.resolve", false)
)

type (
	postArgs struct {
		Number        int64
		HeadSHA, Body string
		Whole         string // id of the thread of the body; "" without one
		Notes         []note
	}
	// note is a comment on a line, and its thread here.
	note struct {
		ThreadID string
		At       place
		Body     string
	}
	sayArgs struct {
		Number            int64
		ThreadID, HeadSHA string
		HostThread, Body  string
		At                place
	}
	resolveArgs struct {
		Number          int64
		Thread, Comment string   // the thread, or else its first comment
		Reviews         []string // or else all that these reviews have begun
		Resolved        bool
	}
	// posted is what a host calls a review, and its comments by the threads here.
	posted struct {
		ReviewID string
		Comments map[string]string
	}
)

// Ids of what is said on the whole, at a host: those of threads on lines have no prefix.
const (
	wholePrefix  = "comment:"
	reviewPrefix = "review:"
)

// hidden takes the meaning from what a host would not show.
func hidden(s string) string { return strings.ReplaceAll(s, "<!--", "<\u200b!--") }

// signed is a text in the name of a person: the server's App posts it.
func (s *Service) signed(tx *db.Tx, label, verb, body string) (string, error) {
	name, err := s.Pulls.Name(tx, label)
	plain := strings.NewReplacer("@", "@\u200b", "#", "#\u200b", "*", "", "`", "", "[", "", "]", "")
	name = plain.Replace(strings.Join(strings.Fields(name), " "))
	return hidden(fmt.Sprintf("**%s** %s:\n\n%s", name, verb, strings.TrimSpace(body))), err
}

// postRequest has a request posted at the host that keeps the pull request.
func (s *Service) postRequest(tx *db.Tx, p Pull, in requestIn, places []place, requestID string) error {
	r, _, err := repo.ByID(tx, p.RepoID)
	if err != nil || !s.kept(r) {
		return err
	}
	rows, err := ofRequest.All(tx, tx.Account, requestID)
	if err != nil {
		return err
	}
	args := postArgs{Number: p.Number, HeadSHA: in.HeadSHA}
	if args.Body, err = s.signed(tx, actor(tx), "requests changes", in.Body); err != nil {
		return err
	}
	if strings.TrimSpace(in.Body) != "" {
		args.Whole, rows = rows[0].ID, rows[1:]
	}
	for i, c := range in.Comments {
		args.Notes = append(args.Notes, note{ThreadID: rows[i].ID, At: places[i], Body: hidden(c.Body)})
	}
	_, err = postKind.Put(tx, intent.Want[postArgs]{Repo: r, Object: p.ID, Rank: intent.ForPeople, Args: args})
	return err
}

// post has a comment said at the host that keeps the pull request.
func (s *Service) post(tx *db.Tx, p Pull, in commentIn, at place, threadID string) error {
	r, _, err := repo.ByID(tx, p.RepoID)
	if err != nil || !s.kept(r) {
		return err
	}
	args := sayArgs{Number: p.Number, ThreadID: threadID, HeadSHA: in.HeadSHA, At: at}
	if threadID != in.ThreadID {
		args.HostThread = in.ThreadID
	}
	if args.Body, err = s.signed(tx, actor(tx), "says", in.Body); err != nil {
		return err
	}
	_, err = sayKind.Put(tx, intent.Want[sayArgs]{Repo: r, Object: p.ID, Rank: intent.ForPeople, Args: args})
	return err
}

// putResolve has a thread at a host closed, or opened again.
func (s *Service) putResolve(tx *db.Tx, p Pull, threadID string, resolved bool) error {
	r, _, err := repo.ByID(tx, p.RepoID)
	if err != nil {
		return err
	}
	_, err = resolveKind.Put(tx, intent.Want[resolveArgs]{Repo: r, Object: p.ID, Rank: intent.ForPeople,
		Args: resolveArgs{Number: p.Number, Thread: threadID, Resolved: resolved}})
	return err
}

// resolveThere has the threads of a request closed at their host that a head answers.
func (s *Service) resolveThere(tx *db.Tx, rows []threadRow) error {
	for _, t := range rows {
		if t.HostComment == "" || t.Path == "" {
			continue
		}
		r, _, err := repo.ByID(tx, t.RepoID)
		if err != nil {
			return err
		}
		p, ok, err := s.Pulls.Get(tx, t.PRID)
		if err != nil || !ok {
			return err
		}
		if _, err := resolveKind.Put(tx, intent.Want[resolveArgs]{Repo: r, Object: p.ID, Rank: intent.ForReviews,
			Args: resolveArgs{Number: p.Number, Comment: t.HostComment, Resolved: true}}); err != nil {
			return err
		}
	}
	return nil
}

// resolveReviews has the threads closed at their host that reviews have begun which a head answers.
func (s *Service) resolveReviews(tx *db.Tx, a Answer) error {
	p, ok, err := s.Pulls.Get(tx, a.PRID)
	if err != nil || !ok {
		return err
	}
	r, _, err := repo.ByID(tx, p.RepoID)
	if err != nil {
		return err
	}
	_, err = resolveKind.Put(tx, intent.Want[resolveArgs]{Repo: r, Object: p.ID, Rank: intent.ForReviews,
		Args: resolveArgs{Number: p.Number, Reviews: a.ReviewKeys, Resolved: true}})
	return err
}

// poster carries out talk.review.
type poster struct{}

// Still implements intent.Handler.
func (poster) Still(_ *db.Tx, c intent.Call[postArgs]) (bool, error) { return c.Repo.Enabled, nil }

// Do implements intent.Handler. A comment whose place the host does not take goes into the
// text of the review; a review of a head that has moved meanwhile into the conversation.
func (poster) Do(ctx context.Context, f codehost.Forge, c intent.Call[postArgs]) (posted, error) {
	ctx = codehost.WithUrgency(ctx, codehost.ForPeople)
	inline, rest := c.Args.Notes, []note(nil)
	for {
		n := codehost.NewReview{HeadSHA: c.Args.HeadSHA, Body: withNotes(c.Args.Body, rest)}
		for _, i := range inline {
			n.Comments = append(n.Comments, codehost.NewComment{Path: i.At.Path, Side: i.At.Side, Line: i.At.Line, Body: i.Body})
		}
		rv, err := f.PostReview(ctx, c.Repo.HostRepo(), c.ID, c.Args.Number, n)
		anchor, astray := errors.AsType[*codehost.AnchorError](err)
		switch {
		case astray && anchor.Index < len(inline):
			rest = append(rest, inline[anchor.Index])
			inline = slices.Delete(slices.Clone(inline), anchor.Index, anchor.Index+1)
			continue
		case errors.Is(err, codehost.ErrAnchorRefused) && len(inline) > 0:
			rest, inline = append(rest, inline...), nil
			continue
		case errors.Is(err, codehost.ErrHeadMoved):
			said, err := f.AddComment(ctx, c.Repo.HostRepo(), c.ID, c.Args.Number, withNotes(c.Args.Body, c.Args.Notes))
			return posted{ReviewID: wholePrefix + said.ID}, err
		case err != nil:
			return posted{}, err
		}
		out := posted{ReviewID: reviewPrefix + rv.ID, Comments: map[string]string{}}
		for i, at := range rv.Comments {
			if i < len(inline) {
				out.Comments[inline[i].ThreadID] = at.ID
			}
		}
		return out, nil
	}
}

// withNotes is a text with comments on lines behind it.
func withNotes(body string, rest []note) string {
	var b strings.Builder
	b.WriteString(body)
	for _, n := range rest {
		fmt.Fprintf(&b, "\n\n`%s:%d`\n\n%s", strings.ReplaceAll(n.At.Path, "`", "'"), n.At.Line, n.Body)
	}
	return b.String()
}

// Done implements intent.Handler. What the host has refused is shown here alone.
func (poster) Done(tx *db.Tx, c intent.Call[postArgs], at posted, failure error) error {
	if failure != nil {
		return nil
	}
	ids := []string{}
	if c.Args.Whole != "" {
		ids = append(ids, c.Args.Whole)
	}
	for _, n := range c.Args.Notes {
		ids = append(ids, n.ThreadID)
	}
	for _, threadID := range ids {
		name := at.Comments[threadID]
		if threadID == c.Args.Whole {
			name = at.ReviewID
		}
		if _, err := setAtHost.Exec(tx, tx.Account, threadID, name); err != nil {
			return err
		}
	}
	return nil
}

// sayer carries out talk.say.
type sayer struct{}

// Still implements intent.Handler.
func (sayer) Still(_ *db.Tx, c intent.Call[sayArgs]) (bool, error) { return c.Repo.Enabled, nil }

// Do implements intent.Handler. What has no place goes into the conversation.
func (sayer) Do(ctx context.Context, f codehost.Forge, c intent.Call[sayArgs]) (codehost.Comment, error) {
	ctx = codehost.WithUrgency(ctx, codehost.ForPeople)
	at, a := c.Repo.HostRepo(), c.Args
	body := a.Body
	switch {
	case a.HostThread != "" && !whole(a.HostThread):
		said, err := f.Reply(ctx, at, c.ID, a.Number, a.HostThread, body)
		if !errors.Is(err, codehost.ErrThreadGone) {
			return said, err
		}
	case a.At.Path != "":
		rv, err := f.PostReview(ctx, at, c.ID, a.Number, codehost.NewReview{HeadSHA: a.HeadSHA,
			Comments: []codehost.NewComment{{Path: a.At.Path, Side: a.At.Side, Line: a.At.Line, Body: body}}})
		_, astray := errors.AsType[*codehost.AnchorError](err)
		switch {
		case err == nil && len(rv.Comments) > 0:
			return rv.Comments[0], nil
		case err == nil || !astray && !errors.Is(err, codehost.ErrAnchorRefused) && !errors.Is(err, codehost.ErrHeadMoved):
			return codehost.Comment{}, err
		}
		body = withNotes("", []note{{At: a.At, Body: body}})
	}
	said, err := f.AddComment(ctx, at, c.ID, a.Number, strings.TrimSpace(body))
	said.ID = wholePrefix + said.ID
	return said, err
}

// whole tells whether a thread at a host is about the whole.
func whole(threadID string) bool {
	return strings.HasPrefix(threadID, wholePrefix) || strings.HasPrefix(threadID, reviewPrefix)
}

// Done implements intent.Handler.
func (sayer) Done(tx *db.Tx, c intent.Call[sayArgs], said codehost.Comment, failure error) error {
	if failure != nil {
		return nil
	}
	_, err := setAtHost.Exec(tx, tx.Account, c.Args.ThreadID, said.ID)
	return err
}

// resolver carries out talk.resolve.
type resolver struct{}

// Still implements intent.Handler.
func (resolver) Still(_ *db.Tx, c intent.Call[resolveArgs]) (bool, error) { return c.Repo.Enabled, nil }

// Do implements intent.Handler.
func (resolver) Do(ctx context.Context, f codehost.Forge, c intent.Call[resolveArgs]) (string, error) {
	if !f.Can(codehost.CloseThreads) {
		return "", codehost.ErrCannot
	}
	if c.Args.Thread != "" {
		return "", f.Resolve(ctx, c.Repo.HostRepo(), c.ID, c.Args.Thread, c.Args.Resolved)
	}
	all, err := f.Threads(ctx, c.Repo.HostRepo(), c.Args.Number)
	if err != nil {
		return "", err
	}
	found := slices.DeleteFunc(all, func(t codehost.Thread) bool { return !c.Args.means(t) })
	if len(found) == 0 && c.Args.Comment != "" {
		return "", codehost.ErrThreadGone
	}
	for _, t := range found {
		if t.Resolved == c.Args.Resolved {
			continue
		}
		if err := f.Resolve(ctx, c.Repo.HostRepo(), c.ID, t.ID, c.Args.Resolved); err != nil && !errors.Is(err, codehost.ErrThreadGone) {
			return "", err
		}
	}
	return "", nil
}

// means tells whether a thread is one that is to be closed, or opened again.
func (a resolveArgs) means(t codehost.Thread) bool {
	if len(t.Comments) == 0 {
		return false
	}
	first := t.Comments[0]
	return a.Comment != "" && first.ID == a.Comment || first.ReviewID != "" && slices.Contains(a.Reviews, first.ReviewID)
}

// Done implements intent.Handler.
func (resolver) Done(*db.Tx, intent.Call[resolveArgs], string, error) error { return nil }
