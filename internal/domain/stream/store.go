package stream

import "yardmaster/internal/db"

var (
	selectHead    = db.Q[int64](`SELECT seq FROM audit_heads WHERE account_id = $1`)
	selectChanges = db.Q[change](`SELECT seq, kind, object, data FROM audit WHERE account_id = $1 AND seq > 0 AND seq > $2
		ORDER BY seq LIMIT $3`)
)

// head returns the number of the account's newest change.
func head(tx *db.Tx) (int64, error) {
	n, _, err := selectHead.Maybe(tx, tx.Account)
	return n, err
}
