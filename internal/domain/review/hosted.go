package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
)

// CheckName is the name of the check of reviews at hosts that keep checks.
const CheckName = "yardmaster/review"

// The kinds of intents that reviews put, and their arguments.
var (
	postKind   = intent.Declare[postArgs, codehost.Review]("review.post", false)
	checkKind  = intent.Declare[codehost.OwnCheck, string]("review.check", true)
	answerKind = intent.Declare[answerArgs, string]("review.answer", false)
)

type (
	postArgs struct {
		RunID   string
		Number  int64
		HeadSHA string
		Notes   []note
		More    int
	}
	// note is a finding to post.
	note struct {
		FindingID, File, Side string
		StartLine, Line       int // Line 0: it has no place in the diff
		Text                  string
	}
	answerArgs struct {
		Number    int64
		FindingID string
		Text      string
		Resolve   bool
	}
)

// HostNeeds are the dependencies of AtHost.
type HostNeeds struct {
	DB      *db.DB
	Hosts   *codehost.Hosts
	Intents *intent.Service
	Page    Pages
}

// Pages has the addresses of pages for people.
type Pages interface {
	// OfPull is the page of a pull request.
	OfPull(prID string) string
}

// AtHost posts reviews at the hosts that keep them. It implements Poster.
type AtHost struct{ HostNeeds }

// NewAtHost makes an AtHost, and has its intents carried out. It panics if a field of n
// is nil.
func NewAtHost(n HostNeeds) *AtHost {
	needs.Whole(n)
	a := &AtHost{n}
	postKind.Handle(n.Intents, poster{})
	checkKind.Handle(n.Intents, checker{})
	answerKind.Handle(n.Intents, answerer{n.DB})
	return a
}

// can tells whether the host of a repository keeps what c stands for.
func (a *AtHost) can(r repo.Ref, c codehost.Capability) bool {
	forge, err := a.Hosts.Forge(r.HostRepo())
	return err == nil && forge.Can(c)
}

// PostReview implements Poster.
func (a *AtHost) PostReview(tx *db.Tx, r repo.Ref, p Pull, rv Posting) error {
	if !a.can(r, codehost.KeepPulls) {
		return nil
	}
	args := postArgs{RunID: rv.RunID, Number: p.Number, HeadSHA: rv.HeadSHA, More: rv.More}
	for _, f := range rv.Findings {
		args.Notes = append(args.Notes, note{
			FindingID: f.ID, File: f.File, Side: f.Side, StartLine: f.PlaceStart, Line: f.PlaceLine, Text: text(f),
		})
	}
	_, err := postKind.Put(tx, intent.Want[postArgs]{Repo: r, Object: p.ID, Rank: intent.ForReviews, Args: args})
	return err
}

// SetCheck implements Poster.
func (a *AtHost) SetCheck(tx *db.Tx, r repo.Ref, p Pull, c Check) error {
	if !a.can(r, codehost.KeepChecks) {
		return nil
	}
	state := c.State
	switch state {
	case Looking, Sorting, Verifying:
		state = "running"
	case Completed, Failed:
		state = VerdictNeutral
	}
	title := c.Title
	if title == "" {
		title = "Review"
	}
	_, err := checkKind.Put(tx, intent.Want[codehost.OwnCheck]{Repo: r, Object: p.ID + "/review", Rank: intent.ForReviews,
		Args: codehost.OwnCheck{
			Name:       CheckName,
			SHA:        c.HeadSHA,
			State:      state,
			Title:      title,
			Summary:    title + ".",
			DetailsURL: a.Page.OfPull(p.ID),
		}})
	return err
}

// Answer implements Poster.
func (a *AtHost) Answer(tx *db.Tx, r repo.Ref, p Pull, f Finding, text string, resolve bool) error {
	if !a.can(r, codehost.KeepPulls) {
		return nil
	}
	_, err := answerKind.Put(tx, intent.Want[answerArgs]{Repo: r, Object: p.ID, Rank: intent.ForReviews,
		Args: answerArgs{Number: p.Number, FindingID: f.ID, Text: text, Resolve: resolve}})
	return err
}

// text is a finding as people read it at a host. What an agent wrote mentions nobody and
// closes nothing there.
func text(f Finding) string {
	t := fmt.Sprintf("**%s %s:** %s\n\n%s", f.Severity, strings.ReplaceAll(string(f.Kind), "_", " "), harmless(f.Claim), harmless(f.Why))
	if f.HowToSee != "" {
		t += "\n\nTo see it: " + harmless(f.HowToSee)
	}
	if f.Suggestion != "" {
		t += "\n\nSuggested: " + harmless(f.Suggestion)
	}
	return t
}

// harmless takes the meaning from what a host would act on: mentions of people,
// references to issues, comments in HTML.
func harmless(s string) string {
	return strings.NewReplacer("@", "@\u200b", "#", "#\u200b", "<!--", "<\u200b!--").Replace(s)
}

// PostingEnded is sent with the id of a pull request when its host has taken a review, or
// has refused it.
var PostingEnded = event.DeclareSignal[string]("review.posting_ended", "A code host has taken a review, or has refused it.")

// PostingSince answers since when a review of a pull request is being posted at its host; false
// if none is.
func PostingSince(tx *db.Tx, repoID, prID string) (since time.Time, ok bool, err error) {
	return postKind.Waiting(tx, repoID, prID)
}

// poster carries out review.post.
type poster struct{}

// Still implements intent.Handler. The host refuses a review of a head that has moved.
func (poster) Still(*db.Tx, intent.Call[postArgs]) (bool, error) { return true, nil }

// Do implements intent.Handler. A finding whose place the host does not take goes into
// the text of the review.
func (poster) Do(ctx context.Context, f codehost.Forge, c intent.Call[postArgs]) (codehost.Review, error) {
	inline, rest := split(c.Args.Notes)
	for {
		n := codehost.NewReview{HeadSHA: c.Args.HeadSHA, Body: body(rest, c.Args.More)}
		for _, i := range inline {
			n.Comments = append(
				n.Comments,
				codehost.NewComment{Path: i.File, Side: i.Side, StartLine: i.StartLine, Line: i.Line, Body: i.Text},
			)
		}
		posted, err := f.PostReview(ctx, c.Repo.HostRepo(), c.ID, c.Args.Number, n)
		anchor, astray := errors.AsType[*codehost.AnchorError](err)
		switch {
		case astray && anchor.Index < len(inline):
			rest = append(rest, inline[anchor.Index])
			inline = slices.Delete(inline, anchor.Index, anchor.Index+1)
			continue
		case errors.Is(err, codehost.ErrAnchorRefused) && len(inline) > 0:
			rest, inline = append(rest, inline...), nil
			continue
		}
		return posted, err
	}
}

// split parts the findings with a place in the diff from the rest.
func split(all []note) (inline, rest []note) {
	for _, n := range all {
		if n.Line > 0 {
			inline = append(inline, n)
		} else {
			rest = append(rest, n)
		}
	}
	return inline, rest
}

// body is the text of a review beside its comments.
func body(rest []note, more int) string {
	var b strings.Builder
	for _, n := range rest {
		fmt.Fprintf(&b, "`%s`\n\n%s\n\n", strings.ReplaceAll(n.File, "`", "'"), n.Text)
	}
	if more > 0 {
		fmt.Fprintf(&b, "%d findings more are not shown.\n", more)
	}
	return strings.TrimSpace(b.String())
}

// Done implements intent.Handler: the comments of the findings are noted, in the order in
// which they were sent.
func (poster) Done(tx *db.Tx, c intent.Call[postArgs], posted codehost.Review, failure error) error {
	if err := PostingEnded.Send(tx, c.Object); err != nil {
		return err
	}
	if failure != nil {
		return unposted(tx, c, failure)
	}
	for _, n := range c.Args.Notes {
		i := slices.IndexFunc(posted.Comments, func(at codehost.Comment) bool { return strings.Contains(at.Body, n.Text) })
		if i < 0 {
			continue
		}
		if _, err := insertPlace.Exec(tx, n.FindingID, c.Object, posted.Comments[i].ID); err != nil {
			return err
		}
	}
	return nil
}

// unposted notes that a host has refused a review for good. Its findings are shown here alone.
func unposted(tx *db.Tx, c intent.Call[postArgs], failure error) error {
	why := "the code host did not take it"
	if f, is := errors.AsType[*fault.Error](failure); is {
		why = "the code host did not take it: " + strings.TrimSuffix(f.Detail, ".")
	}
	if errors.Is(failure, codehost.ErrHeadMoved) {
		why = "the branch had a newer head before the code host took it"
	}
	n, err := refused.Exec(tx, tx.Account, c.Args.RunID, why+"; its findings are shown here alone")
	if err != nil || n == 0 {
		return err
	}
	return refusedEvent.Record(tx, event.Subject{ID: c.Args.RunID, RepoID: c.Repo.ID},
		refusedData{Findings: int64(len(c.Args.Notes)), HeadSHA: c.Args.HeadSHA, PRID: c.Object, Why: why})
}

// checker carries out review.check.
type checker struct{}

// Still implements intent.Handler.
func (checker) Still(*db.Tx, intent.Call[codehost.OwnCheck]) (bool, error) { return true, nil }

// Do implements intent.Handler.
func (checker) Do(ctx context.Context, f codehost.Forge, c intent.Call[codehost.OwnCheck]) (string, error) {
	return f.SetCheck(ctx, c.Repo.HostRepo(), c.ID, c.Args)
}

// Done implements intent.Handler.
func (checker) Done(*db.Tx, intent.Call[codehost.OwnCheck], string, error) error { return nil }

// answerer carries out review.answer.
type answerer struct{ db *db.DB }

// Still implements intent.Handler: a finding without a thread is answered here alone.
func (answerer) Still(tx *db.Tx, c intent.Call[answerArgs]) (bool, error) {
	_, ok, err := threadOf.Maybe(tx, c.Args.FindingID)
	return ok, err
}

// Do implements intent.Handler.
func (a answerer) Do(ctx context.Context, f codehost.Forge, c intent.Call[answerArgs]) (string, error) {
	var comment string
	err := a.db.Read(ctx, func(tx *db.Tx) (err error) {
		comment, err = threadOf.One(tx, c.Args.FindingID)
		return err
	})
	if err != nil {
		return "", err
	}
	threads, err := f.Threads(ctx, c.Repo.HostRepo(), c.Args.Number)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(threads, func(t codehost.Thread) bool { return len(t.Comments) > 0 && t.Comments[0].ID == comment })
	if i < 0 {
		return "", codehost.ErrThreadGone
	}
	said, err := f.Reply(ctx, c.Repo.HostRepo(), c.ID, c.Args.Number, threads[i].ID, c.Args.Text)
	if err == nil && c.Args.Resolve && f.Can(codehost.CloseThreads) {
		err = f.Resolve(ctx, c.Repo.HostRepo(), c.ID, threads[i].ID, true)
	}
	return said.ID, err
}

// Done implements intent.Handler.
func (answerer) Done(*db.Tx, intent.Call[answerArgs], string, error) error { return nil }

// ReadThreads reads the threads of a pull request at its host: a finding whose thread
// somebody has answered or closed who may write holds the merge no longer. It fails with
// *codehost.BusyError; then the caller calls it again.
func (s *Service) ReadThreads(ctx context.Context, r repo.Ref, prID string, number int64) error {
	var places []threadPlace
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		places, err = threadsOf.All(tx, prID)
		return err
	})
	if err != nil || len(places) == 0 {
		return err
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return err
	}
	threads, err := forge.Threads(ctx, r.HostRepo(), number)
	if err != nil {
		return err
	}
	var answered []string
	may := map[string]bool{} // by login
	for _, at := range places {
		i := slices.IndexFunc(threads, func(t codehost.Thread) bool { return len(t.Comments) > 0 && t.Comments[0].ID == at.CommentID })
		if i < 0 {
			continue
		}
		for _, who := range settlers(threads[i]) {
			if _, known := may[who.Login]; !known {
				if may[who.Login], err = writes(ctx, forge, r, who.Login); err != nil {
					return err
				}
			}
			if may[who.Login] {
				answered = append(answered, at.FindingID)
				break
			}
		}
	}
	if len(answered) == 0 {
		return nil
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		for _, findingID := range answered {
			if err := s.Answer(tx, findingID, false); err != nil {
				return err
			}
		}
		return nil
	})
}

// settlers are the people who have closed a thread, or spoken in it after programs and the
// server had. Whoever opened a pull request may close its threads, and anybody may speak in
// those of a public repository.
func settlers(t codehost.Thread) (all []codehost.User) {
	if t.Resolved {
		all = append(all, t.ResolvedBy)
	}
	for i := len(t.Comments) - 1; i >= 0 && !t.Comments[i].Author.Own && !t.Comments[i].Author.Bot; i-- {
		all = append(all, t.Comments[i].Author)
	}
	return slices.DeleteFunc(all, func(u codehost.User) bool { return u.Login == "" || u.Own || u.Bot })
}

// writes asks a host whether somebody may write to a repository. What the host does not
// say is no.
func writes(ctx context.Context, f codehost.Forge, r repo.Ref, login string) (bool, error) {
	may, err := f.Permission(ctx, r.HostRepo(), login)
	if _, busy := errors.AsType[*codehost.BusyError](err); busy {
		return false, fmt.Errorf("ask what somebody in a thread may do: %w", err)
	}
	return err == nil && may >= codehost.PermitWrite, nil
}
