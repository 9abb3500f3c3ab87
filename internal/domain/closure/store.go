package closure

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

// row is a deletion that was asked for.
type row struct {
	AccountID string
	AskedBy   string
	AskedAt   time.Time
	EndsAt    time.Time
	BegunAt   *time.Time
	LastError string
}

var (
	byAccount = db.Q[row](`SELECT account_id, asked_by, asked_at, ends_at, begun_at, last_error FROM account_closures WHERE account_id = $1`)
	openRows  = db.Q[due.Open](`SELECT account_id AS key, '' AS account FROM account_closures LIMIT $1`)
	insert    = db.SWith[row](`INSERT INTO account_closures (account_id, asked_by, asked_at, ends_at)
		VALUES (:account_id, :asked_by, :asked_at, :ends_at) ON CONFLICT DO NOTHING`)
	askedByUser = db.Q[string](`SELECT account_id FROM account_closures WHERE asked_by = $1 AND begun_at IS NULL ORDER BY account_id`)
	takeBack    = db.S(`DELETE FROM account_closures WHERE account_id = $1 AND begun_at IS NULL`)
	begin       = db.S(`UPDATE account_closures SET begun_at = $2 WHERE account_id = $1 AND begun_at IS NULL`)
	fails       = db.S(`UPDATE account_closures SET last_error = $2 WHERE account_id = $1`)
)
