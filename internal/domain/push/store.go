package push

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/seal/keys"
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
	CreatedAt                            int64
}

const (
	columns        = `id, account_id, user_id, digest, service, label, sealed, created_at, sent_at`
	messageColumns = `id, account_id, subscription_id, topic, urgent, sealed, created_at`
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
	dropSent = db.Q[string](`DELETE FROM push_messages WHERE subscription_id = $1 RETURNING topic`)

	put = db.SWith[messageRow](`INSERT INTO push_messages (` + messageColumns + `)
		VALUES (:id, :account_id, :subscription_id, :topic, :urgent, :sealed, :created_at)
		ON CONFLICT (subscription_id, topic) DO UPDATE SET id = excluded.id, urgent = excluded.urgent, sealed = excluded.sealed,
			created_at = excluded.created_at`)
	message  = db.Q[messageRow](`SELECT ` + messageColumns + ` FROM push_messages WHERE subscription_id = $1 AND topic = $2`)
	openKeys = db.Q[due.Open](`SELECT subscription_id || '/' || topic AS key, account_id AS account FROM push_messages LIMIT $1`)
	// done leaves a message that has taken the place of this one.
	done = db.S(`DELETE FROM push_messages WHERE id = $1`)
)

// remove forgets a browser, and what is on its way to it.
func (s *Service) remove(tx *db.Tx, subscriptionID string) error {
	topics, err := dropSent.All(tx, subscriptionID)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		s.queue.Drop(tx, key(subscriptionID, topic))
	}
	_, err = drop.Exec(tx, subscriptionID)
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
