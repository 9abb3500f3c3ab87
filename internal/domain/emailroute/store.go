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
	Digest                 string // of the address
	Mailbox                string // digest of mailbox(Address)
}

type countedArgs struct {
	RouteID, Kind string
	Now, Within   int64 // microseconds
}

type askAgainArgs struct {
	AccountID, ID string
	Now, Since    int64
}

const columns = `id, account_id, address, kinds, created_by, created_at, asked, asked_at, confirmed_at, deleted_at, digest, mailbox`

var (
	living = db.Q[row](`SELECT ` + columns + ` FROM email_routes WHERE account_id = $1 AND deleted_at IS NULL ORDER BY created_at DESC, id DESC`)
	byID   = db.Q[row](`SELECT ` + columns + ` FROM email_routes WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`)
	insert = db.SWith[row](`INSERT INTO email_routes (` + columns + `)
		VALUES (:id, :account_id, :address, :kinds, :created_by, :created_at, :asked, :asked_at, :confirmed_at, :deleted_at, :digest,
			:mailbox)`)
	askedSince = db.Q[int64](`SELECT CAST(COALESCE(SUM(asked), 0) AS BIGINT) FROM email_routes WHERE account_id = $1 AND asked_at > $2`)
	// The questions of an address by an account, and those of a mailbox by all accounts.
	askedThere = db.Q[int64](`SELECT CAST(COALESCE(SUM(asked), 0) AS BIGINT) FROM email_routes
		WHERE digest = $1 AND asked_at > $2 AND account_id = $3`)
	askedAnywhere = db.Q[int64](`SELECT CAST(COALESCE(SUM(asked), 0) AS BIGINT) FROM email_routes WHERE mailbox = $1 AND asked_at > $2`)
	// askAgain counts the questions since :since.
	askAgain = db.SWith[askAgainArgs](`UPDATE email_routes SET asked = CASE WHEN asked_at > :since THEN asked + 1 ELSE 1 END, asked_at = :now
		WHERE account_id = :account_id AND id = :id`)
	confirm  = db.S(`UPDATE email_routes SET confirmed_at = $3 WHERE account_id = $1 AND id = $2 AND confirmed_at IS NULL`)
	setKinds = db.S(`UPDATE email_routes SET kinds = $3 WHERE account_id = $1 AND id = $2`)
	erase    = db.S(`UPDATE email_routes SET address = '', kinds = '[]', deleted_at = $3 WHERE account_id = $1 AND id = $2`)
	// counted counts a mail of a kind, and answers how many there were since the first of
	// them, which was less than :within before.
	counted = db.QWith[countedArgs, int64](`INSERT INTO email_route_mails (route_id, kind, begun, mailed) VALUES (:route_id, :kind, :now, 1)
		ON CONFLICT (route_id, kind) DO UPDATE SET
		mailed = CASE WHEN excluded.begun >= email_route_mails.begun AND excluded.begun < email_route_mails.begun + :within
			THEN email_route_mails.mailed + 1 ELSE 1 END,
		begun = CASE WHEN excluded.begun >= email_route_mails.begun AND excluded.begun < email_route_mails.begun + :within
			THEN email_route_mails.begun ELSE excluded.begun END
		RETURNING mailed`)
	// unsure lists the routes that somebody has made and that nobody has confirmed.
	unsure = db.Q[row](`SELECT ` + columns + ` FROM email_routes
		WHERE created_by = $1 AND confirmed_at IS NULL AND deleted_at IS NULL ORDER BY id`)
	forget = db.S(`DELETE FROM email_routes WHERE account_id = $1 AND deleted_at IS NOT NULL AND asked_at < $2`)
)
