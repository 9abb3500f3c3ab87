package mail

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/seal/keys"
)

// States of a mail.
const (
	due    = "due"
	sent   = "sent"
	failed = "failed"
)

type row struct {
	ID        string
	Recipient string
	Subject   string
	Sealed    string
	Tries     int
	CreatedAt time.Time
}

var (
	insert = db.S(`INSERT INTO mails (id, recipient, subject, sealed, state, due_at, created_at) VALUES ($1, $2, $3, $4, 'due', $5, $5)`)
	// Taken rows stay due: due_at is the end of the lease, so the mails of a node
	// that dies become due again.
	takeDue = db.Q[row](`UPDATE mails SET due_at = $2, tries = tries + 1
		WHERE id IN (SELECT id FROM mails WHERE state = 'due' AND due_at <= $1 ORDER BY due_at LIMIT 8)
			AND state = 'due' AND due_at <= $1
		RETURNING id, recipient, subject, sealed, tries, created_at`)
	selectOldest = db.Q[*time.Time](`SELECT MIN(created_at) FROM mails WHERE state = 'due'`)
	// tries is the number of the lease: the holder of an older one changes no row.
	delivered = db.S(`UPDATE mails SET state = 'sent', sealed = '', sent_at = $3, last_error = NULL
		WHERE id = $1 AND tries = $2 AND state = 'due'`)
	refused = db.S(`UPDATE mails SET state = $3, due_at = $4, last_error = $5 WHERE id = $1 AND tries = $2 AND state = 'due'`)
)

// Sealed is the column with the texts of mails that are not yet sent.
var Sealed = keys.Column{
	Table: "mails", Name: "sealed",
	Count:   db.Q[keys.Held](keys.Tally + `mails WHERE sealed <> '' GROUP BY 1`),
	Rows:    db.Q[keys.Row](`SELECT id AS key, '' AS account, sealed FROM mails WHERE id > $1 AND sealed <> '' ORDER BY id LIMIT $2`),
	Put:     db.S(`UPDATE mails SET sealed = $3 WHERE id = $1 AND sealed = $2`),
	Purpose: func(r keys.Row) string { return purpose(r.Key) },
}

// longestWait is the longest that a mail waits for its next try once the clock was set back.
const longestWait = 30 * time.Minute

var pullIn = db.S(`UPDATE mails SET due_at = $1 WHERE state = 'due' AND due_at > $2`)

// ClockSetBack makes mails due that would wait for longer than longestWait.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Now, tx.Now.Add(longestWait))
	return err
}
