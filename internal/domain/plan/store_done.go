package plan

import "yardmaster/internal/db"

// IsDone tells whether a plan of tx.Account is done.
func IsDone(tx *db.Tx, planID string) (bool, error) {
	at, ok, err := selectProgress.Maybe(tx, tx.Account, planID)
	return ok && at.Status == Done, err
}
