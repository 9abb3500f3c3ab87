package merge

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// LookAtHead tries the merge of a head that has passed its checks, and asks a person if
// the merge would change protected paths.
func (s *Merger) LookAtHead(ctx context.Context, d record.UnlookedRow) error {
	var r repo.Ref
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, _, err = repo.ByID(tx, d.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	l, err := s.Try(ctx, r, record.Attempt{BaseRef: d.BaseRef, Head: d.HeadSHA, StartSHA: d.StartSHA, Had: d.Had.V})
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
		if gone || l.Protected == nil || pr.Watch == record.WatchOff {
			return tellTried(tx, pr.ID)
		}
		if err := s.askAbout(tx, pr, l.Protected); err != nil {
			return err
		}
		if err := s.Pulls.Move(tx, pr); err != nil {
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

// AskMerge asks a person about the merge of a head, in place of what was asked or ordered
// before; false if it is asked already.
func (s *Merger) AskMerge(tx *db.Tx, pr *record.Pull) (bool, error) {
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil {
		return false, err
	}
	if open {
		if err := s.replace(tx, pr, a); err != nil {
			return false, err
		}
	}
	last, _, err := record.LastAsked.Maybe(tx, pr.ID, pr.HeadSHA)
	if err != nil {
		return false, err
	}
	if last.Protected != nil {
		return true, s.Question(tx, pr, &last.Protected.V)
	}
	pr.LookedSHA = ""
	if err := record.Save(tx, pr); err != nil {
		return false, err
	}
	return true, s.Question(tx, pr, nil)
}

// askAbout asks a person about protected changes, unless the open action of the head
// covers them. The new question replaces the open action. The pull request is locked.
func (s *Merger) askAbout(tx *db.Tx, pr *record.Pull, p *record.Protected) error {
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil || open && a.Covers(p) {
		return err
	}
	if open {
		if err := s.replace(tx, pr, a); err != nil {
			return err
		}
	}
	return s.Question(tx, pr, p)
}

// Question asks a person about a head.
func (s *Merger) Question(tx *db.Tx, pr *record.Pull, p *record.Protected) error {
	below, over, err := s.Below(tx, pr)
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

// Expired ends a question that was not answered in time; false if it has ended already.
func (s *Merger) Expired(tx *db.Tx, pr *record.Pull, actionID, headSHA string) (bool, error) {
	if n, err := record.EndExpired.Exec(tx, actionID, tx.Micros()); err != nil || n == 0 {
		return false, err
	}
	return true, record.ExpiredEvent.Record(tx, event.Subject{ID: actionID, RepoID: pr.RepoID},
		record.QuestionData{HeadSHA: headSHA, PRID: pr.ID})
}

// replace ends an open action that another one takes the place of.
func (s *Merger) replace(tx *db.Tx, pr *record.Pull, a record.Action) error {
	if n, err := record.Replaced.Exec(tx, a.ID, tx.Micros()); err != nil || n == 0 {
		return err
	}
	s.OrderEnded(tx, a)
	return record.StaleEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID})
}

// EndQuestions ends all that is asked, or ordered, about a pull request.
func (s *Merger) EndQuestions(tx *db.Tx, pr *record.Pull) error {
	return s.ended(tx, pr, func() error {
		_, err := record.StaleActions.Exec(tx, pr.ID, tx.Micros())
		return err
	})
}

// ended records the end of all that is asked, or ordered, about a pull request, which end
// makes stale.
func (s *Merger) ended(tx *db.Tx, pr *record.Pull, end func() error) error {
	open, err := record.OpenAll.All(tx, pr.ID)
	if err != nil || len(open) == 0 {
		return err
	}
	if err := end(); err != nil {
		return err
	}
	for _, a := range open {
		s.OrderEnded(tx, a)
		about := event.Subject{ID: a.ID, RepoID: pr.RepoID}
		if err := record.StaleEvent.Record(tx, about, record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
			return err
		}
	}
	return nil
}

// Unask closes all questions about a pull request, and takes orders back. A merge that has
// begun goes on.
func (s *Merger) Unask(tx *db.Tx, pr *record.Pull) error {
	open, err := record.OpenAll.All(tx, pr.ID)
	if err != nil {
		return err
	}
	if _, err := record.Withdraw.Exec(tx, pr.ID, tx.Micros()); err != nil {
		return err
	}
	if err := EndCarry(tx, pr); err != nil {
		return err
	}
	for _, a := range open {
		if a.Called {
			continue
		}
		s.OrderEnded(tx, a)
		about := event.Subject{ID: a.ID, RepoID: pr.RepoID}
		if err := record.StaleEvent.Record(tx, about, record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
			return err
		}
	}
	return nil
}
