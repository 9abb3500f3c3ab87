package talk

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// actor is the label of the actor of a transaction.
func actor(tx *db.Tx) string { return policy.From(tx.Context()).Label() }

// labelOf is the label of somebody at a host.
func labelOf(u codehost.User) string {
	if u.Login == "" {
		return codehost.Label
	}
	return codehost.Label + ":" + strings.ToLower(u.Login)
}

// elsewhere is a page of the threads of a pull request that its host keeps, with those that
// the host is yet to show.
func (s *Service) elsewhere(ctx context.Context, r repo.Ref, p Pull, in op.PageIn) (op.Page[Thread], error) {
	at, last, more, err := in.AfterTime()
	if err != nil {
		return op.Page[Thread]{}, err
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return op.Page[Thread]{}, err
	}
	all, err := there(codehost.WithUrgency(ctx, codehost.ForPeople), forge, r, p)
	if err != nil {
		return op.Page[Thread]{}, err
	}
	if all, err = s.withOwn(ctx, p, all); err != nil {
		return op.Page[Thread]{}, err
	}
	all = slices.DeleteFunc(all, func(t Thread) bool {
		micros := t.CreatedAt.UnixMicro()
		return in.Want("state") != "" && in.Want("state") != string(t.State) || more && (micros > at || micros == at && t.ID >= last)
	})
	slices.SortFunc(all, func(a, b Thread) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	return op.NewPage(in, all[:min(len(all), in.Size())], func(t Thread) []string { return op.TimeKey(t.CreatedAt, t.ID) }), nil
}

// there reads what a host shows of the conversation about a pull request.
func there(ctx context.Context, forge codehost.Forge, r repo.Ref, p Pull) (out []Thread, err error) {
	at := r.HostRepo()
	threads, err := forge.Threads(ctx, at, p.Number)
	if errors.Is(err, codehost.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range threads {
		if t := threads[i]; len(t.Comments) > 0 {
			out = append(out, ofHost(p, t))
		}
	}
	reviews, err := forge.ReviewsOf(ctx, at, p.Number)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return nil, err
	}
	for _, v := range reviews {
		if strings.TrimSpace(v.Body) == "" {
			continue
		}
		out = append(out, ofHost(p, codehost.Thread{ID: reviewPrefix + v.ID, Comments: []codehost.Comment{
			{ID: v.ID, Author: v.Author, Body: v.Body, URL: v.URL, CreatedAt: v.SubmittedAt}}}))
	}
	if !forge.Can(codehost.KeepIssues) {
		return out, nil
	}
	said, err := forge.CommentsOf(ctx, at, p.Number, time.Time{})
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return nil, err
	}
	for _, c := range said {
		out = append(out, ofHost(p, codehost.Thread{ID: wholePrefix + c.ID, Comments: []codehost.Comment{c}}))
	}
	return out, nil
}

// ofHost is a thread of a host as the API shows it.
func ofHost(p Pull, t codehost.Thread) Thread {
	out := Thread{ID: t.ID, PRID: p.ID, State: Open, CreatedAt: t.Comments[0].CreatedAt}
	if t.Path != "" {
		out.Path, out.Side = &t.Path, (*codehost.Side)(&t.Side)
		if t.Line > 0 {
			out.Line = &t.Line
		}
	}
	if t.Resolved {
		out.State = Resolved
		if t.ResolvedBy.Login != "" {
			out.ResolvedBy = new(labelOf(t.ResolvedBy))
		}
	}
	for _, c := range t.Comments[:min(len(t.Comments), maxComments)] {
		text := strings.ToValidUTF8(c.Body[:min(len(c.Body), maxBody)], "")
		one := Comment{ID: c.ID, Author: labelOf(c.Author), Body: text, CreatedAt: c.CreatedAt}
		if c.URL != "" {
			one.URL = &c.URL
		}
		out.Comments = append(out.Comments, one)
	}
	return out
}

// withOwn names who has said here what the server has posted, and adds what it is yet to post.
func (s *Service) withOwn(ctx context.Context, p Pull, all []Thread) ([]Thread, error) {
	var rows []threadRow
	var own []Thread
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if rows, err = newest.All(tx, tx.Account, p.ID); err == nil {
			own, err = withComments(tx, rows)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	named := map[string]int{}
	for i, t := range rows {
		switch {
		case t.AtHost && t.HostComment != "" && len(own[i].Comments) > 0:
			named[t.HostComment] = i
		case !t.AtHost:
			all = append(all, own[i])
		}
	}
	for i := range all {
		for j := range all[i].Comments {
			c := &all[i].Comments[j]
			name := c.ID
			if whole(all[i].ID) {
				name = all[i].ID
			}
			at, ok := named[name]
			if !ok {
				continue
			}
			c.Author, c.Body = own[at].Comments[0].Author, own[at].Comments[0].Body
			if j == 0 && rows[at].HostThread == "" {
				all[i].RequestID, all[i].ResolvedSHA = own[at].RequestID, own[at].ResolvedSHA
			}
		}
	}
	return all, nil
}

// threadThere tells whether the thread that a comment answers is one of the host that keeps
// the pull request. It fails with fault.NotFound if it is neither there nor here.
func (s *Service) threadThere(ctx context.Context, in commentIn) (bool, error) {
	if in.ThreadID == "" {
		return false, nil
	}
	_, found, err := s.find(ctx, in.ID, in.ThreadID)
	return found, err
}

// find looks for a thread at the host that keeps a pull request; false if it is here.
func (s *Service) find(ctx context.Context, prID, threadID string) (t Thread, found bool, err error) {
	var p Pull
	var r repo.Ref
	here := false
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if p, _, err = s.get(tx, prID); err != nil {
			return err
		}
		if _, missing := thread(tx, p.ID, threadID); missing == nil {
			here = true
			return nil
		} else if f, is := errors.AsType[*fault.Error](missing); !is || f.Kind != fault.NotFound {
			return missing
		}
		r, _, err = repo.ByID(tx, p.RepoID)
		return err
	})
	if err != nil || here {
		return t, false, err
	}
	if !s.kept(r) {
		return t, false, fault.Missing("thread")
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return t, false, err
	}
	all, err := there(codehost.WithUrgency(ctx, codehost.ForPeople), forge, r, p)
	if err != nil {
		return t, false, err
	}
	i := slices.IndexFunc(all, func(t Thread) bool { return t.ID == threadID })
	if i < 0 {
		return t, false, fault.Missing("thread")
	}
	return all[i], true, nil
}

// resolvable is find for a thread that is to be resolved. It fails with the reason
// not_resolvable if the host cannot.
func (s *Service) resolvable(ctx context.Context, in resolveIn) (Thread, bool, error) {
	t, found, err := s.find(ctx, in.ID, in.ThreadID)
	if err == nil && found && whole(t.ID) {
		err = fault.Reason("not_resolvable", "The code host resolves threads on lines alone.")
	}
	return t, found, err
}
