package box

import (
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/protocol"
)

// Lendable tells whether a box of tx.Account may be lent to strangers' work; why is empty if it
// may. ok is false if the account has no such box. The box is locked.
func (s *Service) Lendable(tx *db.Tx, boxID string) (why string, ok bool, err error) {
	r, ok, err := byID.ForUpdate().Maybe(tx, tx.Account, boxID)
	switch {
	case err != nil || !ok || r.State == Revoked:
		return "", false, err
	case r.State != Enrolled:
		return "The box is draining.", true, nil
	case r.OwnerTarget != Org:
		return "The box takes the work of one person, or is shared with every account. Have it take that of this account first: " +
			"box.set_owner with the target org.", true, nil
	case !slices.ContainsFunc(r.Isolation.V, func(level string) bool {
		return level != "none" && protocol.Keeps(level, r.IsolationHolds.V[level])
	}):
		return "The box cannot isolate the work of strangers: it has said of no level of isolation that it holds. " +
			"`yardmaster doctor`, called on the box, says why.", true, nil
	}
	return "", true, nil
}

// LentMoved has a box that is lent, or is no more, hold only runs that it may hold, and wakes
// those that wait for boxes: of an account, or of every one if that is empty.
func (s *Service) LentMoved(tx *db.Tx, boxID, account string) error {
	r, ok, err := byIdentity.ForUpdate().Maybe(tx, boxID)
	if err != nil || !ok {
		return err
	}
	if err := s.Runs.TakeBack(tx, boxID); err != nil {
		return err
	}
	s.wake(tx, r.AccountID)
	if account != "" {
		s.wake(tx, account)
	}
	return nil
}
