package payment

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/stripe"
)

const group = "Billing keys, donations, grants, onboarding, MCP"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadBilling), policy.Require(policy.WriteBilling)
	away := []op.Refusal{{Status: 503, Slug: "payment-unavailable"}, {Status: 503, Slug: "payment-refused"}}
	return []op.Op{
		op.Raw(op.Row{
			ID: "billing.stripe_webhook", Method: "POST", Path: "/v1/billing/stripe/webhook", Group: "Service and discovery",
			Rule: policy.Public(), MaxBody: maxBody,
			Refuses: []op.Refusal{{Status: 400, Slug: "payment-signature"}},
			Takes:   Payload{}, Body: Receipt{},
			Summary: "Stripe delivers an event",
			Doc: "Signed with the secret of the endpoint (Stripe-Signature) within the last five minutes. The event is stored once by its " +
				"id and answered; the customer that it names is read from Stripe afterwards.",
		}, s.receive),
		op.New(op.Row{
			ID: "billing.get", Method: "GET", Path: "/v1/billing", Group: group, Rule: read,
			Summary: "The account's plan, what it pays for, and what it has spent this month",
			Doc:     "payment.provider is null on a server that takes no payment: there nothing has to be paid.",
		}, s.get),
		op.New(op.Row{
			ID: "billing.checkout", Method: "POST", Path: "/v1/billing/checkout", Group: group, Rule: write, Status: 201, NoStore: true,
			Refuses: append([]op.Refusal{{Status: 409, Slug: "no-payment"}, {Status: 409, Slug: "already-subscribed"}}, away...),
			Summary: "Open a page at Stripe on which seats, or being a donor to open source, are paid for",
			Doc: "What was paid counts some seconds later. Other numbers of seats, cards and the end of a subscription are changed in " +
				"billing.portal.",
		}, s.checkout),
		op.New(op.Row{
			ID: "billing.portal", Method: "POST", Path: "/v1/billing/portal", Group: group, Rule: write, Status: 201, NoStore: true,
			Refuses: append([]op.Refusal{{Status: 409, Slug: "no-payment"}, {Status: 409, Slug: "no-customer"}}, away...),
			Summary: "Open the page at Stripe for cards, invoices and subscriptions",
			Doc:     "The address is for the caller alone, and is good for some minutes.",
		}, s.portal),
	}
}

// Billing is what an account has and pays for.
type Billing struct {
	_             struct{}       `doc:"An account's plan, what it pays for, and what it has spent this month." schema:"Billing"`
	Tier          people.Tier    `json:"tier" doc:"what it is entitled to"`
	Private       bool           `json:"private_repos" example:"true" doc:"whether private repositories are covered"`
	Seats         int64          `json:"seats" example:"4" doc:"AI developers of its own, paid for or given"`
	PaidSeats     int64          `json:"paid_seats" example:"4" doc:"AI developers that are paid for now"`
	OSSDonor      bool           `json:"oss_donor" example:"false" doc:"whether it may give machines and model keys to open source: it pays for that, or needs not"`
	Payment       Payment        `json:"payment" doc:"how the server takes payment"`
	Subscriptions []Subscription `json:"subscriptions" doc:"newest first, those that ended too"`
	Spend         Spent          `json:"spend" doc:"this month's models"`
}

// Payment is how the server takes payment, and where the account stands with it.
type Payment struct {
	_         struct{}   `doc:"How the server takes payment." schema:"BillingPayment"`
	Provider  *string    `json:"provider" enum:"stripe" example:"stripe" doc:"null: the server takes none, and nothing has to be paid"`
	Sells     []Kind     `json:"sells" example:"[\"seats\"]" doc:"what can be paid for"`
	GraceDays int64      `json:"grace_days" example:"14" doc:"days for which a subscription stands whose payment failed"`
	Customer  bool       `json:"customer" example:"true" doc:"whether there is something to look after in billing.portal"`
	ReadAt    *time.Time `json:"read_at" doc:"when the provider was last read; null: never"`
	LastError *string    `json:"last_error" example:"null" doc:"why the last reading failed; null: it did not"`
}

// Subscription is one thing that an account pays for, or has paid for.
type Subscription struct {
	_         struct{}   `doc:"What an account pays for, or has paid for." schema:"BillingSubscription"`
	ID        string     `json:"id" example:"sub_1MowQVLkdIwHu7ixeRlqHVzs" doc:"its id at the provider"`
	Kind      Kind       `json:"kind" doc:"what is paid for"`
	Status    Status     `json:"status" example:"active" doc:"in the provider's words"`
	Quantity  int64      `json:"quantity" example:"4" doc:"how many are subscribed to"`
	Seats     int64      `json:"seats" example:"4" doc:"AI developers that it gives now"`
	InForce   bool       `json:"in_force" example:"true" doc:"whether it counts"`
	LowersAt  *time.Time `json:"lowers_at" example:"null" doc:"when quantity is in force, which is lower; null: it is"`
	PaidUntil *time.Time `json:"paid_until" doc:"end of the last period that was paid; null: none was"`
	FailedAt  *time.Time `json:"payment_failed_at" example:"null" doc:"since when a payment is waited for; null: none is"`
	EndsAt    *time.Time `json:"ends_at" example:"null" doc:"when it ends, or has ended; null: it goes on"`
	CreatedAt time.Time  `json:"created_at" doc:"when it began"`
}

func (s *Service) get(ctx context.Context, _ op.None) (out Billing, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = s.billing(tx)
		return err
	})
	return out, err
}

// billing is what tx.Account has and pays for.
func (s *Service) billing(tx *db.Tx) (out Billing, err error) {
	a, err := people.AccountByID(tx, tx.Account)
	if err != nil {
		return out, err
	}
	out = Billing{Tier: a.Tier, Private: a.Tier != people.TierFree, Subscriptions: []Subscription{}, Payment: s.payment()}
	if out.Seats, err = people.Seats(tx, tx.Account); err != nil {
		return out, err
	}
	c, known, err := customerOf.Maybe(tx, tx.Account)
	if err != nil {
		return out, err
	}
	out.Payment.Customer, out.Payment.ReadAt, out.Payment.LastError = known && !c.deleted(), c.ReadAt, c.LastError
	rows, err := subscriptionsOf.All(tx, tx.Account)
	if err != nil {
		return out, err
	}
	has := s.total(rows, tx.Now)
	out.PaidSeats = has.seats
	if out.OSSDonor, err = s.Donor(tx, tx.Account); err != nil {
		return out, err
	}
	for _, r := range rows {
		out.Subscriptions = append(out.Subscriptions, r.wire(r.standing(tx.Now, s.Grace)))
	}
	out.Spend, err = s.Spending.Spent(tx)
	return out, err
}

// payment is how the server takes payment.
func (s *Service) payment() Payment {
	out := Payment{Sells: []Kind{}, GraceDays: int64(s.Grace / (24 * time.Hour))}
	if s.Provider == nil {
		return out
	}
	out.Provider = new("stripe")
	for _, k := range []string{Seats, OSSDonor} {
		if len(s.Prices[k]) > 0 {
			out.Sells = append(out.Sells, Kind(k))
		}
	}
	return out
}

func (r subscription) wire(is standing) Subscription {
	d := r.data(is)
	out := Subscription{
		ID: r.ID, Kind: Kind(r.Kind), Status: Status(r.Status), Quantity: r.Quantity, Seats: d.Seats, InForce: is.inForce,
		PaidUntil: r.PaidUntil, FailedAt: r.FailedAt, EndsAt: r.CancelsAt, CreatedAt: r.CreatedAt,
	}
	if is.inForce && is.seats != r.Quantity {
		out.LowersAt = r.LowersAt
	}
	if is.ends != nil {
		out.EndsAt = is.ends
	}
	return out
}

type checkoutIn struct {
	Kind     Kind  `json:"kind" doc:"what is to be paid for"`
	Quantity int64 `json:"quantity,omitempty" minimum:"1" maximum:"10000" example:"4" doc:"how many seats; 1 unless given, and of oss_donor always"`
}

// Page is a page at the provider.
type Page struct {
	_         struct{}   `doc:"A page at Stripe that the caller is to open." schema:"BillingPage"`
	URL       string     `json:"url" format:"uri" example:"https://checkout.stripe.com/c/pay/cs_test_a1" doc:"its address"`
	ExpiresAt *time.Time `json:"expires_at" doc:"when it ends; null: after some minutes"`
}

func (s *Service) checkout(ctx context.Context, in checkoutIn) (out Page, err error) {
	if s.Provider == nil || len(s.Prices[string(in.Kind)]) == 0 {
		return out, s.notSold(string(in.Kind))
	}
	if in.Quantity = max(in.Quantity, 1); in.Kind == OSSDonor && in.Quantity > 1 {
		return out, fault.Field("quantity", "must be 1 for oss_donor")
	}
	var c customer
	var known bool
	var account string
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		account = tx.Account
		rows, err := subscriptionsOf.All(tx, tx.Account)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.Kind == string(in.Kind) && r.Status != canceled && r.standing(tx.Now, s.Grace).inForce {
				return fault.Reason("already-subscribed", "The account has such a subscription. Change it in billing.portal.")
			}
		}
		c, known, err = customerOf.Maybe(tx, tx.Account)
		return err
	})
	if err != nil {
		return out, err
	}
	if !known {
		if c, err = s.enter(ctx, account, ""); err != nil {
			return out, err
		}
	}
	order := stripe.Order{
		Customer: c.CustomerID, Account: account, Price: s.Prices[string(in.Kind)][0], Quantity: in.Quantity, Back: s.back(),
	}
	page, err := s.Provider.Checkout(ctx, order)
	if errors.Is(err, stripe.ErrMissing) {
		if c, err = s.enter(ctx, account, c.CustomerID); err != nil {
			return out, err
		}
		order.Customer = c.CustomerID
		page, err = s.Provider.Checkout(ctx, order)
	}
	if err != nil {
		return out, refused(err)
	}
	out = wire(page)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		return begunEvent.Record(tx, event.Subject{ID: account}, begunData(in))
	})
	return out, err
}

// enter makes the account a customer of the provider, instead of one that was deleted there.
func (s *Service) enter(ctx context.Context, account, deleted string) (c customer, err error) {
	id, err := s.Provider.Customer(ctx, account, deleted)
	if err != nil {
		return c, refused(err)
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		if _, err = addCustomer.Exec(tx, addCustomerArgs{AccountID: tx.Account, CustomerID: id, CreatedAt: tx.Now}); err != nil {
			return err
		}
		if _, err = replaceCustomer.Exec(tx, tx.Account, deleted, id); err != nil {
			return err
		}
		s.look(tx, tx.Account)
		c, err = customerOf.One(tx, tx.Account) // another call may have been first
		return err
	})
	return c, err
}

func (s *Service) portal(ctx context.Context, _ op.None) (out Page, err error) {
	if s.Provider == nil {
		return out, s.notSold("")
	}
	var c customer
	var known bool
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		c, known, err = customerOf.Maybe(tx, tx.Account)
		return err
	})
	switch {
	case err != nil:
		return out, err
	case !known:
		return out, fault.Reason("no-customer", "The account has paid for nothing yet. Begin with billing.checkout.")
	}
	page, err := s.Provider.Portal(ctx, c.CustomerID, s.back())
	if errors.Is(err, stripe.ErrMissing) {
		if err = s.DB.Write(ctx, func(tx *db.Tx) error { s.look(tx, tx.Account); return nil }); err != nil {
			return out, err
		}
		return out, fault.Reason("no-customer", "The account's customer was deleted at Stripe. What was paid stands until its end; "+
			"pay anew with billing.checkout.")
	}
	if err != nil {
		return out, refused(err)
	}
	out = wire(page)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		return portalEvent.Record(tx, event.Subject{ID: tx.Account}, event.None{})
	})
	return out, err
}

// deleted tells whether the customer was missing at the last reading.
func (c customer) deleted() bool { return c.LastError != nil && *c.LastError == deletedCustomer }

// back is where a browser comes back to from the provider.
func (s *Service) back() string { return s.BaseURL + "/ui/settings/payment" }

func (s *Service) notSold(kind string) error {
	switch {
	case s.Provider == nil:
		return fault.Reason("no-payment", "This server takes no payment, and needs none: operators set tiers and seats.")
	case kind == OSSDonor:
		return fault.Reason("no-payment", "This server does not sell oss_donor.")
	}
	return fault.Reason("no-payment", "This server does not sell seats.")
}

func wire(p stripe.Page) Page {
	out := Page{URL: p.URL}
	if !p.ExpiresAt.IsZero() {
		out.ExpiresAt = &p.ExpiresAt
	}
	return out
}

// refused is a failure of the provider as the caller sees it.
func refused(err error) error {
	if _, busy := errors.AsType[*stripe.BusyError](err); busy {
		return fault.New(fault.Unavailable, "payment-unavailable", "Stripe does not answer. Try again later.").Because(err)
	}
	return fault.New(fault.Unavailable, "payment-refused",
		"Stripe refuses the call of this server. Its operator finds the reason in the log.").Because(err)
}
