package payment

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

// customer is an account that pays, or was about to.
type customer struct {
	AccountID  string
	CustomerID string
	Seats      int64
	OwnSeats   int64
	GaveTier   bool
	ReadAt     *time.Time
	LastError  *string
}

const columns = `id, kind, account_id, status, quantity, seats, lowers_at, paid_until, failed_at, cancels_at, created_at, warned_at`

var (
	customerOf = db.Q[customer](`SELECT account_id, customer_id, seats, own_seats, gave_tier, read_at, last_error
		FROM payment_customers WHERE account_id = $1`)
	lockCustomer = customerOf.ForUpdate()
	accountOf    = db.Q[string](`SELECT account_id FROM payment_customers WHERE customer_id = $1`)
	openKeys     = db.Q[due.Open](`SELECT account_id AS key, account_id AS account FROM payment_customers LIMIT $1`)
	addCustomer  = db.SWith[addCustomerArgs](`INSERT INTO payment_customers (account_id, customer_id, created_at)
		VALUES (:account_id, :customer_id, :created_at) ON CONFLICT DO NOTHING`)
	putCustomer = db.SWith[customer](`UPDATE payment_customers SET seats = :seats, own_seats = :own_seats, gave_tier = :gave_tier,
		read_at = :read_at, last_error = :last_error WHERE account_id = :account_id`)
	replaceCustomer = db.S(`UPDATE payment_customers SET customer_id = $3, last_error = NULL WHERE account_id = $1 AND customer_id = $2`)
	failed          = db.S(`UPDATE payment_customers SET last_error = $2 WHERE account_id = $1`)

	subscriptionsOf = db.Q[subscription](`SELECT ` + columns + ` FROM paid_subscriptions WHERE account_id = $1
		ORDER BY created_at DESC, id DESC, kind LIMIT 1000`)
	putSubscription = db.SWith[subscription](`INSERT INTO paid_subscriptions (` + columns + `)
		VALUES (:id, :kind, :account_id, :status, :quantity, :seats, :lowers_at, :paid_until, :failed_at, :cancels_at, :created_at, :warned_at)
		ON CONFLICT (id, kind) DO UPDATE SET status = excluded.status, quantity = excluded.quantity, seats = excluded.seats,
			lowers_at = excluded.lowers_at, paid_until = excluded.paid_until, failed_at = excluded.failed_at,
			cancels_at = excluded.cancels_at, warned_at = excluded.warned_at
			WHERE paid_subscriptions.account_id = excluded.account_id`)

	addEvent = db.SWith[addEventArgs](`INSERT INTO payment_events (id, account_id, kind, received_at)
		VALUES (:id, :account_id, :kind, :received_at) ON CONFLICT DO NOTHING`)
	oldEvents = db.S(`DELETE FROM payment_events WHERE id IN (SELECT id FROM payment_events WHERE received_at < $1
		ORDER BY received_at LIMIT 100)`)
)

// addCustomerArgs are the parameters of addCustomer.
type addCustomerArgs struct {
	AccountID, CustomerID string
	CreatedAt             time.Time
}

// addEventArgs are the parameters of addEvent.
type addEventArgs struct {
	ID         string
	AccountID  *string
	Kind       string
	ReceivedAt time.Time
}
