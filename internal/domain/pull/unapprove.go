package pull

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// unapprove takes the caller's approval of a head back, until its merge begins: it counts as a
// no, and the question is open again.
func (s *Service) unapprove(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (record.Action, error) {
		pr, err := atHead(tx, in.ID, in.HeadSHA)
		if err != nil {
			return record.Action{}, err
		}
		a, open, err := record.OpenAction.Maybe(tx, pr.ID)
		switch {
		case err != nil:
			return a, err
		case !open || a.State != record.ActionApproved || a.DecidedBy == nil || *a.DecidedBy != policy.From(ctx).Label():
			return record.Action{}, fault.Reason("no_approval", "There is no approval of yours of this head.")
		case a.Called:
			return record.Action{}, fault.Reason("merge_begun", "The merge has begun.")
		}
		if err := s.takeBack(tx, pr, a); err != nil {
			return a, err
		}
		return record.OpenAction.One(tx, pr.ID)
	})
}

// takeBack makes a no of a yes whose merge has not begun, and puts the question again.
func (s *Service) takeBack(tx *db.Tx, pr *record.Pull, a record.Action) error {
	if _, err := record.Unapproved.Exec(tx, a.ID, tx.Micros()); err != nil {
		return err
	}
	s.orderEnded(tx, a)
	data := record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID}
	if err := record.SkippedEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, data); err != nil {
		return err
	}
	var asked *record.Protected
	if a.Protected != nil {
		asked = &a.Protected.V
	}
	if err := s.question(tx, pr, asked); err != nil {
		return err
	}
	return s.move(tx, pr)
}

// RightsChanged takes back what a user has ordered and may decide no more, as far as it has not
// begun: the question is put to those who may. It is a subscriber of event.RightsChanged.
func (s *Service) RightsChanged(tx *db.Tx, userID string) error {
	orders, err := record.OrdersOf.All(tx, policy.Actor{UserID: userID}.Label())
	for _, o := range orders {
		if err == nil {
			err = tx.As(o.AccountID, func() error { return s.endOrder(tx, userID, o.PRID) })
		}
	}
	return err
}

// endOrder takes back the order of a user about a pull request of tx.Account.
func (s *Service) endOrder(tx *db.Tx, userID, prID string) error {
	role, member, err := people.Role(tx, tx.Account, userID)
	if err != nil || member && role.Ceiling().Has(policy.Scopes(policy.WritePRs)) {
		return err
	}
	pr, ok, err := record.Lock(tx, prID)
	if err != nil || !ok || pr.State != record.Open {
		return err
	}
	a, open, err := record.OpenAction.Maybe(tx, prID)
	if err != nil || !open || a.State != record.ActionApproved || a.Called {
		return err
	}
	return s.takeBack(tx, pr, a)
}

// grace has a merge carried out that was ordered; one that a person has ordered, after as long
// as the policy says that it may be taken back.
func (s *Service) grace(tx *db.Tx, pr *record.Pull, a *record.Action, by string) error {
	e := due.Entry{Account: tx.Account}
	if by != record.ByPolicy {
		r, _, err := repo.ByID(tx, pr.RepoID)
		if err != nil {
			return err
		}
		e.After = time.Duration(r.Policy.Merge.Grace) * time.Second
	}
	s.orders.Add(tx, a.ID, e)
	if e.After == 0 {
		return nil
	}
	a.BeginsAt = new(tx.Now.Add(e.After))
	_, err := record.SetBegins.Exec(tx, a.ID, db.Micros(*a.BeginsAt))
	return err
}
