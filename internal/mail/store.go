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
	insert = db.SWith[insertArgs](`INSERT INTO mails (id, recipient, subject, sealed, state, due_at, created_at)
		VALUES (:id, :recipient, :subject, :sealed, 'due', :due_at, :created_at)`)
	// Taken rows stay due: due_at is the end of the lease, so the mails of a node
	// that dies become due again.
	takeDue = db.Q[row](`UPDATE mails SET due_at = $2, tries = tries + 1
		WHERE id IN (SELECT id FROM mails WHERE state = 'due' AND due_at <= $1 ORDER BY due_at LIMIT 8)
			AND state = 'due' AND due_at <= $1
		RETURNING id, recipient, subject, sealed, tries, created_at`)
	selectOldest = db.Q[*time.Time](`SELECT MIN(created_at) FROM mails WHERE state = 'due' AND (tries > 0 OR due_at <= $1)`)
	// tries is the number of the lease: the holder of an older one changes no row.
	delivered = db.S(`UPDATE mails SET state = 'sent', sealed = '', sent_at = $3, last_error = NULL
		WHERE id = $1 AND tries = $2 AND state = 'due'`)
	refused = db.SWith[refusedArgs](`UPDATE mails SET state = :state, due_at = :due_at, last_error = :last_error
		WHERE id = :id AND tries = :tries AND state = 'due'`)
)

// refusedArgs are the parameters of refused.
type refusedArgs struct {
	ID        string
	Tries     int
	State     string
	DueAt     time.Time
	LastError string
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, Recipient, Subject, Sealed string
	DueAt, CreatedAt               int64
}

// Sealed is the column with the texts of mails that are not yet sent.
var Sealed = keys.Column{
	Table: "mails", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `mails WHERE sealed <> '' GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT id AS key, '' AS account, sealed FROM mails WHERE id > $1 AND sealed <> '' ORDER BY id
		LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE mails SET sealed = $3 WHERE id = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Key) },
}

// longestWait is the longest that a mail waits once the clock was set back: quiet hours.
const longestWait = 24 * time.Hour

var pullIn = db.S(`UPDATE mails SET due_at = $1 WHERE state = 'due' AND due_at > $2`)

// ClockSetBack makes mails due that would wait for longer than longestWait.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Now, tx.Now.Add(longestWait))
	return err
}
