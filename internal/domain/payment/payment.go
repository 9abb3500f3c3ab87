// Package payment keeps what accounts pay for: seats, and being a donor to open source. The
// provider of payments is Stripe, which an operator of the server may set up; without it nothing
// is sold and nothing is missing.
//
// Stripe's events only say whom to look at. Each is stored once, by its id, and answered at once;
// a queue of package db/due then reads all subscriptions of the customer, outside of a
// transaction, and stores what it has read with the events of what changed. So events may come
// twice, late and in any order. The same queue looks again every few hours, and whenever a time
// comes at which something ends.
//
// Two decide about the tier and the seats of an account, operators and what is paid for:
//
//   - The tier team is given to an account of the tier free while seats are paid for, and taken
//     away with them. No other tier is touched, nor one that an operator has set.
//   - Seats are the greater of those that are paid for and those that the server or an operator
//     gave. They are written when the paid number changes; what an operator sets in between
//     stands until then, and counts as given.
//
// A card that fails costs nothing for the time of Needs.Grace. Seats that are taken back are there
// until the end of the period that was paid. No run is stopped for want of either.
//
// A customer who was deleted at Stripe pays for nothing more: what was paid stands until its end,
// and the next checkout makes another customer.
//
//   - payment.go: types, Needs and the Service
//   - standing.go: what a subscription gives at a time
//   - receive.go: events
//   - loop.go: readings
//   - end.go: the end of all that an account pays for
//   - ops.go, events.go: capabilities, events
//   - store.go: the statements
package payment

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
	"yardmaster/internal/stripe"
)

// Kind is what is paid for.
type Kind string

// Kinds of subscription.
const (
	Seats    = "seats"     // AI developers, each for a month or whatever its price says
	OSSDonor = "oss_donor" // gifts of machines and model keys to open source
)

// Values lists both.
func (Kind) Values() []string { return []string{Seats, OSSDonor} }

// Provider takes payments. It is *stripe.Client.
type Provider interface {
	Customer(ctx context.Context, account, deleted string) (id string, err error)
	Subscriptions(ctx context.Context, customer string) ([]stripe.Subscription, error)
	Cancel(ctx context.Context, subscription string) error
	Checkout(ctx context.Context, o stripe.Order) (stripe.Page, error)
	Portal(ctx context.Context, customer, back string) (stripe.Page, error)
}

// Spent is what an account has spent on models in a month.
type Spent struct {
	_        struct{} `doc:"What models have cost the account in this month." schema:"BillingSpend"`
	Period   string   `json:"period" example:"2026-03" doc:"the month, YYYY-MM in UTC"`
	Spent    string   `json:"spent_usd" format:"decimal" example:"112.40" doc:"decimal US dollars"`
	Reserved string   `json:"reserved_usd" format:"decimal" example:"1.20" doc:"decimal US dollars, set aside for calls under way"`
	Left     *string  `json:"left_usd" format:"decimal" example:"386.40" doc:"decimal US dollars, under the lower cap; null without one"`

	Forecast *budget.Forecast `json:"forecast" doc:"of this month; null: fewer than 7 whole days are known"`
}

// Spending knows what models cost.
type Spending interface {
	// Spent returns what tx.Account has spent in this month.
	Spent(tx *db.Tx) (Spent, error)
	// MayGive tells whether an account may give keys and boxes without paying for it.
	MayGive(tx *db.Tx, account string) (bool, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB       *db.DB
	Hub      *event.Hub
	Due      *due.Kernel
	Logger   *slog.Logger
	Spending Spending
	// Clock is the time that signatures are held against.
	Clock   func() time.Time
	BaseURL string `optional:""`
	// Provider is nil where the server takes no payment.
	Provider Provider `optional:""`
	// Secret signs the provider's events.
	Secret string `optional:""`
	// Prices are the provider's ids of prices by kind. The first of a kind is sold; who pays by
	// another one has the same.
	Prices map[string][]string `optional:""`
	// Grace is how long a subscription stands whose payment has failed.
	Grace time.Duration `optional:""`
}

// Service sells subscriptions and keeps what came of them.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[customer]{
		Name: "payment", Retry: ladder, Load: load, Work: s.work, Open: open,
	})
	return s
}

// kind is what a price buys; empty: nothing of this server.
func (s *Service) kind(price string) string {
	for _, k := range []string{Seats, OSSDonor} {
		if slices.Contains(s.Prices[k], price) {
			return k
		}
	}
	return ""
}

// Donor tells whether an account may give keys and boxes: it has a subscription as a donor to
// open source that is in force, or needs none.
func (s *Service) Donor(tx *db.Tx, account string) (bool, error) {
	if free, err := s.Spending.MayGive(tx, account); err != nil || free {
		return free, err
	}
	all, err := subscriptionsOf.All(tx, account)
	return s.total(all, tx.Now).donor, err
}
