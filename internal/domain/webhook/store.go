package webhook

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/hook"
	"yardmaster/internal/seal/keys"
)

type row struct {
	ID          string
	AccountID   string
	Name        string
	Masked      string
	Sealed      string
	Types       db.JSON[[]string]
	CreatedBy   string
	CreatedAt   time.Time
	UnhealthyAt *time.Time
	DeletedAt   *time.Time
	Format      hook.Format
	UserID      *string    // whose own it is; nil: the account's
	FailingAt   *time.Time `db:"failing_since"` // since when no attempt has succeeded
}

// attemptRow is a row of the ledger.
type attemptRow struct {
	ID             string
	AccountID      string
	HookID         string
	EventID        string
	DeliveryID     string
	Type           string
	Attempt        int64
	State          string
	ResponseStatus *int64
	Excerpt        string
	Error          *string
	Took           int64 // microseconds
	NextAt         *time.Time
	At             time.Time
}

// shownAttempt is an attempt with the name of its webhook.
type shownAttempt struct {
	attemptRow
	Name string
}

const (
	columns = `id, account_id, name, masked, sealed, types, created_by, created_at, unhealthy_at, deleted_at, format, user_id,
		failing_since`
	attemptColumns = `id, account_id, hook_id, event_id, delivery_id, type, attempt, state, response_status, excerpt, error, took, next_at, at`
)

var (
	living = db.Q[row](`SELECT ` + columns + ` FROM webhooks WHERE account_id = $1 AND deleted_at IS NULL AND user_id IS NULL
		ORDER BY id`)
	byName = db.Q[row](`SELECT ` + columns + ` FROM webhooks WHERE account_id = $1 AND name = $2 AND deleted_at IS NULL`)
	byID   = db.Q[row](`SELECT ` + columns + ` FROM webhooks WHERE account_id = $1 AND id = $2`)
	insert = db.SWith[insertArgs](
		`INSERT INTO webhooks (id, account_id, name, masked, sealed, types, created_by, created_at, format, user_id)
		VALUES (:id, :account_id, :name, :masked, :sealed, :types, :created_by, :created_at, :format, :user_id)`,
	)
	// erase takes the address and the secret out of the row. The row stays, so that a
	// deletion can be repeated and the ledger explained.
	erase = db.S(`UPDATE webhooks SET deleted_at = $3, sealed = '' WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`)
	// mark sets since when a webhook is unhealthy, unless it is already.
	mark = db.S(`UPDATE webhooks SET unhealthy_at = $2 WHERE id = $1 AND unhealthy_at IS NULL AND deleted_at IS NULL`)
	// failing sets since when no attempt at a webhook has succeeded, unless it is set.
	failing    = db.S(`UPDATE webhooks SET failing_since = $2 WHERE id = $1 AND failing_since IS NULL AND deleted_at IS NULL`)
	succeeding = db.S(`UPDATE webhooks SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL`)
	revive     = db.S(`UPDATE webhooks SET unhealthy_at = NULL, failing_since = NULL
		WHERE account_id = $1 AND id = $2 AND unhealthy_at IS NOT NULL`)

	insertEvent = db.SWith[insertEventArgs](`INSERT INTO webhook_events (id, account_id, type, body, source, created_at)
		VALUES (:id, :account_id, :type, :body, :source, :created_at) ON CONFLICT (account_id, source) DO NOTHING`)
	insertDelivery = db.SWith[insertDeliveryArgs](
		`INSERT INTO webhook_deliveries (id, account_id, hook_id, event_id, state, due_at, created_at)
		VALUES (:id, :account_id, :hook_id, :event_id, :state, :due_at, :created_at)`,
	)
	insertAttempt = db.SWith[attemptRow](`INSERT INTO webhook_attempts (` + attemptColumns + `)
		VALUES (:id, :account_id, :hook_id, :event_id, :delivery_id, :type, :attempt, :state, :response_status, :excerpt, :error, :took,
			:next_at, :at)`)
	// trimLedger keeps the newest $2 attempts of an account.
	trimLedger = db.S(`DELETE FROM webhook_attempts WHERE account_id = $1 AND id < (SELECT id FROM webhook_attempts
		WHERE account_id = $1 ORDER BY id DESC LIMIT 1 OFFSET ($2 - 1))`)
	ledger = db.Q[shownAttempt](
		`SELECT a.id, a.account_id, a.hook_id, a.event_id, a.delivery_id, a.type, a.attempt, a.state, a.response_status,
		a.excerpt, a.error, a.took, a.next_at, a.at, h.name FROM webhook_attempts a JOIN webhooks h ON h.id = a.hook_id
		WHERE a.account_id = $1 ORDER BY a.id DESC LIMIT $2`,
	)
	attemptByID = db.Q[attemptRow](`SELECT ` + attemptColumns + ` FROM webhook_attempts WHERE account_id = $1 AND id = $2`)
	eventKept   = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM webhook_events WHERE account_id = $1 AND id = $2)`)

	// hooksDue answers the webhooks to which something is to be sent, with one look into an
	// index for each.
	hooksDue = db.Q[hookDue](`SELECT h.id, h.account_id FROM webhooks h WHERE h.deleted_at IS NULL
		AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.hook_id = h.id AND d.due_at <= $1)`)
	// take keeps the deliveries of a webhook that are due from other nodes until :lease.
	take = db.QWith[takeArgs, delivery](`UPDATE webhook_deliveries SET due_at = :lease, holder = :holder
		WHERE id IN (SELECT id FROM webhook_deliveries WHERE hook_id = :hook_id AND due_at <= :now ORDER BY due_at, id LIMIT :most)
			AND due_at <= :now
		RETURNING id, event_id, tries, due_at`)
	// leased are the bodies of what take has taken.
	leased = db.Q[eventRow](`SELECT e.id, e.type, e.body FROM webhook_deliveries d JOIN webhook_events e ON e.id = d.event_id
		WHERE d.hook_id = $1 AND d.due_at = $2`)
	// moved changes nothing if another node has taken the delivery meanwhile.
	moved = db.SWith[movedArgs](`UPDATE webhook_deliveries SET state = :state, tries = :tries, due_at = :due_at, holder = ''
		WHERE id = :id AND due_at = :lease`)
	release = db.S(`UPDATE webhook_deliveries SET due_at = $3, holder = '' WHERE hook_id = $1 AND due_at = $2`)
	// restarted makes due what any process had.
	restarted = db.S(`UPDATE webhook_deliveries SET due_at = $1, holder = '' WHERE holder <> '' AND due_at IS NOT NULL`)
	// dropAll ends the deliveries of a webhook.
	dropAll = db.S(`UPDATE webhook_deliveries SET state = 'skipped', due_at = NULL WHERE hook_id = $1 AND due_at IS NOT NULL`)
	// handoffsDue answers the hand-offs that are on their way to a webhook.
	handoffsDue = db.Q[eventRow](`SELECT e.id, e.type, e.body FROM webhook_deliveries d JOIN webhook_events e ON e.id = d.event_id
		WHERE d.hook_id = $1 AND d.due_at IS NOT NULL AND e.type = 'issue.handoff' ORDER BY e.id`)
	// handoffEvent answers an event if it is a hand-off.
	handoffEvent = db.Q[eventRow](`SELECT id, type, body FROM webhook_events WHERE account_id = $1 AND id = $2
		AND type = 'issue.handoff'`)

	forgetDeliveries = db.S(`DELETE FROM webhook_deliveries WHERE due_at IS NULL AND created_at < $1`)
	forgetEvents     = db.S(`DELETE FROM webhook_events WHERE created_at < $1
		AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.event_id = webhook_events.id)`)
	pullIn = db.S(`UPDATE webhook_deliveries SET due_at = $1 WHERE due_at > $2`)
)

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, Name, Masked, Sealed string
	Types                               db.JSON[[]string]
	CreatedBy                           string
	Format                              hook.Format
	UserID                              *string
	CreatedAt                           int64
}

// insertEventArgs are the parameters of insertEvent.
type insertEventArgs struct {
	ID, AccountID, Type, Body, Source string
	CreatedAt                         int64
}

// insertDeliveryArgs are the parameters of insertDelivery.
type insertDeliveryArgs struct {
	ID, AccountID, HookID, EventID, State string
	DueAt                                 *int64
	CreatedAt                             int64
}

type hookDue struct{ ID, AccountID string }

// delivery is an event that is sent to a webhook now. DueAt is the end of the lease.
type delivery struct {
	ID, EventID string
	Tries       int64
	DueAt       int64
}

type eventRow struct{ ID, Type, Body string }

// takeArgs are the parameters of take.
type takeArgs struct {
	HookID     string
	Holder     string
	Now, Lease int64
	Most       int
}

// movedArgs are the parameters of moved.
type movedArgs struct {
	ID, State    string
	Tries, Lease int64
	DueAt        *int64
}

// gone makes due what processes had. It answers how many.
func gone(tx *db.Tx, processes []string) (int, error) {
	all, err := db.Select[string](tx, db.Build(`UPDATE webhook_deliveries SET holder = '', due_at = `, tx.Micros()).
		SQL(` WHERE due_at IS NOT NULL`).In("holder", processes).SQL(` RETURNING id`))
	return len(all), err
}

// list answers a page of the webhooks of tx.Account, newest first.
func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns+` FROM webhooks WHERE deleted_at IS NULL AND user_id IS NULL AND account_id = `, tx.Account)
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[row](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}

// Sealed is the column of addresses and secrets.
var Sealed = keys.Column{
	Table: "webhooks", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `webhooks WHERE sealed <> '' GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT id AS key, account_id AS account, sealed FROM webhooks
		WHERE id > $1 AND sealed <> '' ORDER BY id LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE webhooks SET sealed = $3 WHERE id = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Key) },
}

// ClockSetBack makes those deliveries due that would wait for longer than is ever asked.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(ladder[len(ladder)-1]+lease)))
	return err
}
