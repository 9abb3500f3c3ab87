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
	Failures  int
	CreatedAt time.Time
	Notice    int64  // 1: after all that are 0
	AccountID string // with UserID, whose notice it is
	UserID    string
}

var (
	insert = db.SWith[insertArgs](`INSERT INTO mails (id, recipient, subject, sealed, state, due_at, wanted_at, created_at, notice, account_id,
			user_id)
		VALUES (:id, :recipient, :subject, :sealed, 'due', :due_at, :due_at, :created_at, :notice, :account_id, :user_id)`)
	// Taken rows stay due: due_at is the end of the lease, so the mails of a node
	// that dies become due again.
	takeDue = db.Q[row](`UPDATE mails SET due_at = $2, leased_until = $2, tries = tries + 1
		WHERE id IN (SELECT id FROM mails WHERE state = 'due' AND due_at <= $1 ORDER BY notice, id LIMIT 8)
			AND state = 'due' AND due_at <= $1
		RETURNING id, recipient, subject, sealed, tries, failures, created_at, notice, account_id, user_id`)
	selectOldest = db.Q[*time.Time](`SELECT MIN(CASE WHEN wanted_at > created_at THEN wanted_at ELSE created_at END) FROM mails
		WHERE state = 'due' AND (tries > 0 OR due_at <= $1)`)
	// tries is the number of the lease: the holder of an older one changes no row.
	delivered = db.S(`UPDATE mails SET state = 'sent', sealed = '', sent_at = $3, last_error = NULL
		WHERE id = $1 AND tries = $2 AND state = 'due'`)
	forget  = db.S(`DELETE FROM mails WHERE state <> 'due' AND created_at < $1`)
	over    = db.Q[int64](`SELECT COUNT(*) AS n FROM mails WHERE state <> 'due' AND created_at < $1`)
	dropped = db.S(`DELETE FROM mails WHERE id = $1 AND tries = $2 AND state = 'due'`)
	refused = db.SWith[refusedArgs](`UPDATE mails SET state = :state, due_at = :due_at, last_error = :last_error, failures = :failures,
		leased_until = 0
		WHERE id = :id AND tries = :tries AND state = 'due'`)

	outage    = db.Q[outageRow](`SELECT server, reason, tries, since, until FROM mail_outages`)
	setOutage = db.SWith[outageRow](`INSERT INTO mail_outages (server, reason, tries, since, until)
		VALUES (:server, :reason, :tries, :since, :until) ON CONFLICT (server) DO UPDATE
		SET reason = excluded.reason, tries = excluded.tries, until = excluded.until`)
	endOutage = db.S(`DELETE FROM mail_outages`)

	refusal    = db.Q[refusalRow](`SELECT address, reason, refused_at FROM mail_refusals WHERE address = $1`)
	refusals   = db.Q[refusalRow](`SELECT address, reason, refused_at FROM mail_refusals WHERE address > $1 ORDER BY address LIMIT $2`)
	setRefusal = db.S(`INSERT INTO mail_refusals (address, reason, refused_at) VALUES ($1, $2, $3)
		ON CONFLICT (address) DO UPDATE SET reason = excluded.reason, refused_at = excluded.refused_at`)
	endRefusal = db.S(`DELETE FROM mail_refusals WHERE address = $1`)

	queued = db.Q[Queued](`SELECT id, recipient, state, tries, failures, due_at, created_at, last_error FROM mails
		WHERE state <> 'sent' AND ($1 = '' OR state = $1) AND id > $2 ORDER BY id LIMIT $3`)
	queuedByID = db.Q[Queued](`SELECT id, recipient, state, tries, failures, due_at, created_at, last_error FROM mails WHERE id = $1`)
	again      = db.S(`UPDATE mails SET state = 'due', due_at = $2, failures = 0
		WHERE id = $1 AND state <> 'sent' AND leased_until <= $2`)
)

type outageRow struct {
	Server, Reason string
	Tries          int64
	Since, Until   time.Time
}

type refusalRow struct {
	Address, Reason string
	RefusedAt       time.Time
}

// refusedArgs are the parameters of refused.
type refusedArgs struct {
	ID        string
	Tries     int
	State     string
	DueAt     time.Time
	LastError string
	Failures  int
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, Recipient, Subject, Sealed string
	DueAt, CreatedAt               int64
	Notice                         int64
	AccountID, UserID              string
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

var (
	pullIn     = db.S(`UPDATE mails SET due_at = $1 WHERE state = 'due' AND due_at > $2`)
	pullOutage = db.S(`UPDATE mail_outages SET until = $1 WHERE until > $2`)
)

// ClockSetBack makes mails due that would wait for longer than longestWait.
func ClockSetBack(tx *db.Tx) error {
	if _, err := pullIn.Exec(tx, tx.Now, tx.Now.Add(longestWait)); err != nil {
		return err
	}
	_, err := pullOutage.Exec(tx, tx.Now, tx.Now.Add(pauses[len(pauses)-1]))
	return err
}

// Old counts the mails that are older than a time and are sent, or have failed: those that go next.
func Old(tx *db.Tx, at time.Time) (int64, error) { return over.One(tx, at) }

var idsOf = db.Q[string](`SELECT id FROM mails WHERE account_id = $1 ORDER BY id`)

// IDsOf lists the mails that members of an account were told something by.
func IDsOf(tx *db.Tx, account string) ([]string, error) { return idsOf.All(tx, account) }
