package pull

import (
	"context"
	"fmt"
	"log/slog"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

// compared compares the commit of a merge with the merge that was tried. If the base was
// elsewhere, or the merge was made before, the merge is tried again at the commit of the base
// that it was made at. What cannot be read is logged, and no difference.
func (s *Service) compared(ctx context.Context, r repo.Ref, a record.Attempt, t trial, sha string) record.Made {
	otherwise, err := s.otherwise(ctx, r, a, t, sha)
	if err != nil && ctx.Err() == nil {
		observe.Complain(ctx, s.Logger, "compare the merge "+sha+" with the one that was tried", err)
	}
	return record.Made{SHA: sha, Otherwise: otherwise}
}

func (s *Service) otherwise(ctx context.Context, r repo.Ref, a record.Attempt, t trial, sha string) (string, error) {
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil || sha == a.Head {
		return "", err // the base was moved to the head itself
	}
	tree := t.tree
	if t.done {
		tree = ""
	}
	m, err := host.Made(ctx, r.HostRepo(), sha, tree)
	if err != nil || len(m.Parents) == 0 {
		return "", err
	}
	if t.done && len(m.Parents) > 1 && m.Parents[1] != a.Head {
		return "", nil // the base has the head through another branch
	}
	if tree == "" || m.Parents[0] != t.base {
		if tree, err = s.treeAt(ctx, r, a, m.Parents[0]); err != nil || tree == "" {
			return "", err
		}
		if m, err = host.Made(ctx, r.HostRepo(), sha, tree); err != nil {
			return "", err
		}
	}
	if len(m.Differs) == 0 {
		return "", nil
	}
	paths := make([]string, len(m.Differs))
	for i, path := range m.Differs {
		paths[i] = codehost.Legible(path)
	}
	return fmt.Sprintf("The base has other content after the merge %.12s than the merge that was tried: %s.", sha, record.Enumerate(paths, 0)), nil
}

// treeAt is the content that a merge would have given a commit of the base; "" if the two
// conflict, so that somebody has resolved it by hand.
func (s *Service) treeAt(ctx context.Context, r repo.Ref, a record.Attempt, base string) (string, error) {
	a.BaseRef, a.Had = base, nil
	o, _, err := s.tried(ctx, r, a)
	if err != nil || o.Conflict {
		return "", err
	}
	if o.Tree != o.BaseSHA {
		return o.Tree, nil
	}
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return "", err
	}
	m, err := host.Made(ctx, r.HostRepo(), base, "")
	return m.Tree, err
}

// alarm tells that the merge of a pull request is not the one that was tried.
func (s *Service) alarm(tx *db.Tx, pr *record.Pull, headSHA string, m record.Made) error {
	s.Logger.WarnContext(tx.Context(), "a merge is not the one that was tried", slog.String("pr", pr.ID), slog.String("merge", m.SHA))
	data := record.OtherwiseData{HeadSHA: headSHA, MergeSHA: m.SHA, PRID: pr.ID, Why: m.Otherwise}
	if err := record.OtherwiseEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, data); err != nil {
		return err
	}
	return record.RoundsSpent.Send(tx, record.Trouble{
		PRID: pr.ID, RepoID: pr.RepoID, TaskID: pr.TaskID, URL: s.address(pr), Category: "merged_otherwise", Reason: m.Otherwise,
		Title: fmt.Sprintf("The merge of pull request #%d is not what was approved", pr.Number),
		Body:  fmt.Sprintf("%s\n%s\n\n%s", pr.Title, s.address(pr), m.Otherwise),
	})
}

// compareQueued compares a merge that the queue of a host has made of an order.
func (s *Service) compareQueued(ctx context.Context, r repo.Ref, p codehost.Pull) error {
	var pr record.Pull
	ordered := false
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		prID, ok, err := record.ByNumber.Maybe(tx, tx.Account, r.ID, p.Number)
		if err != nil || !ok {
			return err
		}
		if pr, err = record.ByID.One(tx, tx.Account, prID); err == nil {
			ordered, err = record.CarriedOutAt.One(tx, prID, pr.HeadSHA)
		}
		return err
	})
	if err != nil || !ordered || pr.State != record.Merged || pr.MergeSHA == nil || pr.Otherwise != "" {
		return err
	}
	m := s.compared(ctx, r, pr.Attempt(pr.HeadSHA), trial{done: true}, *pr.MergeSHA)
	if m.Otherwise == "" {
		return nil
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := record.Lock(tx, pr.ID)
		if err != nil || !ok || pr.Otherwise != "" { // told once
			return err
		}
		pr.Otherwise = m.Otherwise
		if err := record.Save(tx, pr); err != nil {
			return err
		}
		return s.alarm(tx, pr, pr.HeadSHA, m)
	})
}
