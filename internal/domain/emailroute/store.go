package emailroute

import (
	"time"

	"yardmaster/internal/db"
)

type row struct {
	ID, AccountID, Address string
	Kinds                  db.JSON[[]string]
	CreatedBy              string
	CreatedAt              time.Time
	Asked                  int64
	AskedAt                time.Time
	ConfirmedAt, DeletedAt *time.Time
}

const columns = `id, account_id, address, kinds, created_by, created_at, asked, asked_at, confirmed_at, deleted_at`

var (
	living = db.Q[row](`SELECT ` + columns + ` FROM email_routes WHERE account_id = $1 AND deleted_at IS NULL ORDER BY created_at DESC, id DESC`)
	byID   = db.Q[row](`SELECT ` + columns + ` FROM email_routes WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`)
	insert = db.SWith[row](`INSERT INTO email_routes (` + columns + `)
		VALUES (:id, :account_id, :address, :kinds, :created_by, :created_at, :asked, :asked_at, :confirmed_at, :deleted_at)`)
	askedSince = db.Q[int64](`SELECT CAST(COALESCE(SUM(asked), 0) AS BIGINT) FROM email_routes WHERE account_id = $1 AND asked_at > $2`)
	askAgain   = db.S(`UPDATE email_routes SET asked = asked + 1, asked_at = $3 WHERE account_id = $1 AND id = $2`)
	confirm    = db.S(`UPDATE email_routes SET confirmed_at = $3 WHERE account_id = $1 AND id = $2 AND confirmed_at IS NULL`)
	setKinds   = db.S(`UPDATE email_routes SET kinds = $3 WHERE account_id = $1 AND id = $2`)
	erase      = db.S(`UPDATE email_routes SET address = '', kinds = '[]', deleted_at = $3 WHERE account_id = $1 AND id = $2`)
	forget     = db.S(`DELETE FROM email_routes WHERE account_id = $1 AND deleted_at IS NOT NULL AND asked_at < $2`)
)
