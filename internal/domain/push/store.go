package push

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/seal/keys"
	"yardmaster/internal/webpush"
)

type subscriptionRow struct {
	ID, AccountID, UserID, Digest, Service, Label, Sealed string
	CreatedAt                                             time.Time
	SentAt                                                *time.Time
}

type messageRow struct {
	ID, AccountID, SubscriptionID, Topic string
	Urgent                               bool
	Sealed                               string
	Tries, DueAt, CreatedAt              int64
}

const (
	columns        = `id, account_id, user_id, digest, service, label, sealed, created_at, sent_at`
	messageColumns = `id, account_id, subscription_id, topic, urgent, sealed, tries, due_at, created_at`
)

var (
	ofPerson = db.Q[subscriptionRow](`SELECT ` + columns + ` FROM push_subscriptions WHERE account_id = $1 AND user_id = $2
		ORDER BY created_at, id`)
	// ofOthers answers the subscriptions of a browser by other people, in all accounts.
	ofOthers = db.Q[subscriptionRow](`SELECT ` + columns + ` FROM push_subscriptions WHERE digest = $1 AND user_id <> $2 ORDER BY id`)
	byID     = db.Q[subscriptionRow](`SELECT ` + columns + ` FROM push_subscriptions WHERE account_id = $1 AND id = $2`)
	insert   = db.SWith[subscriptionRow](`INSERT INTO push_subscriptions (` + columns + `)
		VALUES (:id, :account_id, :user_id, :digest, :service, :label, :sealed, :created_at, :sent_at)`)
	setSent  = db.S(`UPDATE push_subscriptions SET sent_at = $2 WHERE id = $1`)
	drop     = db.S(`DELETE FROM push_subscriptions WHERE id = $1`)
	dropSent = db.S(`DELETE FROM push_messages WHERE subscription_id = $1`)

	queue = db.SWith[messageRow](`INSERT INTO push_messages (` + messageColumns + `)
		VALUES (:id, :account_id, :subscription_id, :topic, :urgent, :sealed, :tries, :due_at, :created_at)
		ON CONFLICT (subscription_id, topic) DO UPDATE SET id = excluded.id, urgent = excluded.urgent, sealed = excluded.sealed,
			tries = 0, due_at = excluded.due_at, created_at = excluded.created_at`)
	anyDue = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM push_messages WHERE due_at <= $1)`)
	// take keeps messages from other nodes until $2.
	take = db.Q[messageRow](`UPDATE push_messages SET due_at = $2, tries = tries + 1
		WHERE id IN (SELECT id FROM push_messages WHERE due_at <= $1 ORDER BY due_at, id LIMIT $3) AND due_at <= $1
		RETURNING ` + messageColumns)
	// done and again are carried out by the node that has taken the message, if no other one
	// has taken its place.
	done   = db.S(`DELETE FROM push_messages WHERE id = $1 AND tries = $2`)
	again  = db.S(`UPDATE push_messages SET due_at = $3 WHERE id = $1 AND tries = $2`)
	pullIn = db.S(`UPDATE push_messages SET due_at = $1 WHERE due_at > $2`)
)

// remove forgets a browser, and what is on its way to it.
func remove(tx *db.Tx, subscriptionID string) error {
	if _, err := dropSent.Exec(tx, subscriptionID); err != nil {
		return err
	}
	_, err := drop.Exec(tx, subscriptionID)
	return err
}

// Sealed is the column of endpoints and keys of browsers.
var Sealed = keys.Column{
	Table: "push_subscriptions", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `push_subscriptions GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT id AS key, account_id AS account, sealed FROM push_subscriptions
		WHERE id > $1 ORDER BY id LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE push_subscriptions SET sealed = $3 WHERE id = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Key) },
}

// SealedMessages is the column of messages that are on their way.
var SealedMessages = keys.Column{
	Table: "push_messages", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `push_messages GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT subscription_id || '/' || topic AS key, account_id AS account, sealed FROM push_messages
		WHERE subscription_id || '/' || topic > $1 ORDER BY 1 LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE push_messages SET sealed = $3 WHERE subscription_id || '/' || topic = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return "push-message/" + r.Key },
}

// longestWait is the longest that a message waits once the clock was set back: quiet hours.
const longestWait = life

// ClockSetBack makes messages due that would wait for longer than longestWait.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(longestWait+webpush.Patience)))
	return err
}
