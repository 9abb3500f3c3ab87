package pull

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// trial is the result of a merge that was tried without moving a ref.
type trial struct {
	base      string            // the commit of the base
	tree      string            // the content that the base would have
	landed    []string          // heads that the base has by other commits, which the merge has to know of
	done      bool              // the base contains the head already
	protected *record.Protected // nil: the merge would change nothing that is protected
}

// tryMerge tries the merge of a head. It fails with the errors of the host.
func (s *Service) tryMerge(ctx context.Context, r repo.Ref, a record.Attempt) (trial, error) {
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return trial{}, err
	}
	o, landed, err := s.tried(ctx, r, a)
	if err != nil {
		return trial{}, fmt.Errorf("look at what %s would change: %w", a.Head, err)
	}
	out := trial{base: o.BaseSHA, tree: o.Tree, landed: landed, done: o.Tree == o.BaseSHA}
	p := record.Protected{Paths: []string{}, Weaker: []repo.Weakening{}, Back: back(r, o)}
	for _, c := range o.Changes {
		switch {
		case !r.Floors.Protects(c.Path, c.Link):
		case len(p.Paths) < record.MaxPaths:
			p.Paths = append(p.Paths, codehost.Legible(c.Path))
		default:
			p.More++
		}
	}
	if len(p.Paths) == 0 {
		if p.Back != nil {
			out.protected = &p
		}
		return out, nil
	}
	was, err := repo.PolicyAt(ctx, host, r.HostRepo(), o.BaseSHA)
	if err != nil {
		return trial{}, fmt.Errorf("read the policy file at %s: %w", o.BaseSHA, err)
	}
	would, err := repo.PolicyAt(ctx, host, r.HostRepo(), o.Tree)
	if err != nil {
		return trial{}, fmt.Errorf("read the policy file at %s: %w", o.Tree, err)
	}
	p.Weaker = append([]repo.Weakening{}, repo.Weaker(was.Over(r.Defaults), would.Over(r.Defaults))...)
	if would.Text != nil {
		p.PolicySHA = &would.SHA
	}
	if would.Problem != nil {
		text := strings.Join(strings.FieldsFunc(*would.Problem, func(r rune) bool { return !strconv.IsPrint(r) }), "; ")
		p.Problem = &text
	}
	out.protected = &p
	return out, nil
}

// askAbout asks a person about protected changes, unless the open action of the head
// covers them. The new question replaces the open action. The pull request is locked.
func (s *Service) askAbout(tx *db.Tx, pr *record.Pull, p *record.Protected) error {
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil || open && a.Covers(p) {
		return err
	}
	if open {
		if err := s.replace(tx, pr, a); err != nil {
			return err
		}
	}
	return s.question(tx, pr, p)
}

// question asks a person about a head.
func (s *Service) question(tx *db.Tx, pr *record.Pull, p *record.Protected) error {
	below, over, err := s.below(tx, pr)
	if err != nil {
		return err
	}
	dropped := ""
	if over {
		dropped = below
	}
	actionID := id.New()
	var stored *db.JSON[record.Protected]
	weaker := []string{}
	if p != nil {
		stored = &db.JSON[record.Protected]{V: *p}
		for _, w := range p.Weaker {
			weaker = append(weaker, w.Field)
		}
	}
	n, err := record.InsertAction.Exec(tx, record.InsertActionArgs{
		ID: actionID, AccountID: tx.Account, PRID: pr.ID, Kind: "merge", HeadSHA: pr.HeadSHA, State: record.ActionPending,
		DecidedBy: nil, RequestedAt: tx.Micros(), DecidedAt: nil, ExpiresAt: db.Micros(tx.Now.Add(record.AskFor)),
		Protected: stored, Details: db.JSON[record.Details]{V: record.Details{Dropped: dropped}},
	})
	if err != nil || n == 0 {
		return err
	}
	if err := notCarried(tx, pr); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	data := record.AskedData{HeadSHA: pr.HeadSHA, Kind: "merge", PRID: pr.ID}
	if p != nil {
		if p.Back != nil {
			data.Back = p.Back.Paths
		}
		if len(p.Paths) > 0 {
			data.Protected, data.Weaker = p.Paths, weaker
		}
	}
	return record.AskedEvent.Record(tx, event.Subject{ID: actionID, RepoID: pr.RepoID}, data)
}

// lookAtHead tries the merge of a head that has passed its checks, and asks a person if
// the merge would change protected paths.
func (s *Service) lookAtHead(ctx context.Context, d record.UnlookedRow) error {
	var r repo.Ref
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, _, err = repo.ByID(tx, d.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	l, err := s.tryMerge(ctx, r, record.Attempt{BaseRef: d.BaseRef, Head: d.HeadSHA, StartSHA: d.StartSHA, Had: d.Had.V})
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return err
	}
	gone := err != nil
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := record.Lock(tx, d.ID)
		if err != nil || !ok || pr.State != record.Open || pr.HeadSHA != d.HeadSHA || !record.Passed(pr.Checks) || pr.AbandonedAt != nil {
			return err
		}
		pr.LookedSHA = pr.HeadSHA
		if err := record.Save(tx, pr); err != nil {
			return err
		}
		if gone || l.protected == nil || pr.Watch == record.WatchOff {
			return tellTried(tx, pr.ID)
		}
		if err := s.askAbout(tx, pr, l.protected); err != nil {
			return err
		}
		if err := s.move(tx, pr); err != nil {
			return err
		}
		return tellTried(tx, pr.ID)
	})
}

// tellTried tells that the merge that an open question is about was tried.
func tellTried(tx *db.Tx, prID string) error {
	a, open, err := record.OpenAction.Maybe(tx, prID)
	if err != nil || !open {
		return err
	}
	return record.MergeTried.Send(tx, a.ID)
}
