package pull

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// unapprove takes the caller's approval of a head back, until its merge begins: it counts as a
// no, and the question is open again.
func (s *Service) unapprove(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (actionRow, error) {
		pr, err := atHead(tx, in.ID, in.HeadSHA)
		if err != nil {
			return actionRow{}, err
		}
		a, open, err := openAction.Maybe(tx, pr.ID)
		switch {
		case err != nil:
			return a, err
		case !open || a.State != ActionApproved || a.DecidedBy == nil || *a.DecidedBy != policy.From(ctx).Label():
			return actionRow{}, fault.Reason("no_approval", "There is no approval of yours of this head.")
		case a.Called:
			return actionRow{}, fault.Reason("merge_begun", "The merge has begun.")
		}
		if _, err := unapproved.Exec(tx, a.ID, tx.Micros()); err != nil {
			return a, err
		}
		s.orderEnded(tx, a)
		data := questionData{HeadSHA: a.HeadSHA, PRID: pr.ID}
		if err := skippedEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, data); err != nil {
			return a, err
		}
		var asked *Protected
		if a.Protected != nil {
			asked = &a.Protected.V
		}
		if err := s.question(tx, pr, asked); err != nil {
			return a, err
		}
		if err := s.move(tx, pr); err != nil {
			return a, err
		}
		return openAction.One(tx, pr.ID)
	})
}

// grace has a merge carried out that was ordered; one that a person has ordered, after as long
// as the policy says that it may be taken back.
func (s *Service) grace(tx *db.Tx, pr *row, actionID, by string) error {
	e := due.Entry{Account: tx.Account}
	if by != byPolicy {
		r, _, err := repo.ByID(tx, pr.RepoID)
		if err != nil {
			return err
		}
		e.After = time.Duration(r.Policy.Merge.Grace) * time.Second
	}
	s.orders.Add(tx, actionID, e)
	return nil
}
