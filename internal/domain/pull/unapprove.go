package pull

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/pull/record"
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
		if err := s.Unapprove(tx, pr, a); err != nil {
			return a, err
		}
		if err := s.Move(tx, pr); err != nil {
			return a, err
		}
		return record.OpenAction.One(tx, pr.ID)
	})
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
	if err := s.Unapprove(tx, pr, a); err != nil {
		return err
	}
	return s.Move(tx, pr)
}
