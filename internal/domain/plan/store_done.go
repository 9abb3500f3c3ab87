package plan

import "yardmaster/internal/db"

// IsDone tells whether a plan of tx.Account is done.
func IsDone(tx *db.Tx, planID string) (bool, error) {
	at, ok, err := selectProgress.Maybe(tx, tx.Account, planID)
	return ok && at.Status == Done, err
}

// Brief is what people are told of a plan.
type Brief struct {
	Title       string
	RequestedBy *string
}

var briefOf = db.Q[Brief](`SELECT title, requested_by FROM plans WHERE account_id = $1 AND id = $2`)

// BriefOf reads a plan of tx.Account.
func BriefOf(tx *db.Tx, planID string) (Brief, bool, error) {
	return briefOf.Maybe(tx, tx.Account, planID)
}

// IsOver tells whether no work of a plan of tx.Account begins by itself any more: it is
// done, has failed or was cancelled, or there is no such plan.
func IsOver(tx *db.Tx, planID string) (bool, error) {
	at, ok, err := selectProgress.Maybe(tx, tx.Account, planID)
	return !ok || at.Status == Done || at.Status == Failed || at.Status == Cancelled, err
}
