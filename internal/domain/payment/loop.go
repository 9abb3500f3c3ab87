package payment

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
	"yardmaster/internal/stripe"
)

const (
	// sweep is how often a customer is read of whom no event comes.
	sweep = 6 * time.Hour
	// warnTime is how long before the end of what a failed payment leaves people are told.
	warnTime = 3 * 24 * time.Hour
	// answer is how long a reading may take.
	answer = time.Minute
)

// ladder has a reading tried again until the provider answers.
var ladder = due.Ladder{First: 10 * time.Second, Longest: 15 * time.Minute}

func load(tx *db.Tx, key string) (customer, bool, error) { return customerOf.Maybe(tx, key) }

func open(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// work reads the subscriptions of a customer and stores what they give. It looks again when
// that changes by itself, and every few hours. A node that has lost the customer to another one
// stores nothing, so the newest reading stands. Without a provider only time passes. A customer who
// was deleted has no subscriptions.
func (s *Service) work(ctx context.Context, j due.Job[customer]) due.Outcome {
	var all []stripe.Subscription
	missing := false
	if s.Provider != nil {
		call, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		var err error
		all, err = s.Provider.Subscriptions(call, j.Row.CustomerID)
		if missing = errors.Is(err, stripe.ErrMissing); missing {
			all, err = nil, nil
		}
		if err != nil {
			observe.Complain(ctx, s.Logger, "read the subscriptions of an account", err, slog.String("account", j.Key))
			return due.Again(err).With(func(tx *db.Tx) error { _, err := failed.Exec(tx, j.Key, err.Error()); return err })
		}
	}
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) {
		next, err := s.store(tx, j.Key, reading{customer: j.Row.CustomerID, missing: missing, all: all})
		if err != nil {
			return due.Outcome{}, err
		}
		if next == nil || next.Sub(tx.Now) > sweep {
			return due.Wait(sweep), nil
		}
		return due.WaitUntil(*next), nil
	})
}

// deletedCustomer is the last error of an account whose customer was deleted at Stripe.
const deletedCustomer = "the customer was deleted at Stripe; billing.checkout makes another one"

// reading is what Stripe has said of a customer.
type reading struct {
	customer string
	missing  bool // there is none
	all      []stripe.Subscription
}

// store stores a reading, and what the account has by it. It answers when that changes by itself.
// A reading of a customer who was replaced meanwhile says nothing of the one that is now.
func (s *Service) store(tx *db.Tx, account string, was reading) (next *time.Time, err error) {
	if ok, err := people.LockAccount(tx, account); err != nil || !ok {
		return nil, err
	}
	c, ok, err := lockCustomer.Maybe(tx, account)
	if err != nil || !ok {
		return nil, err
	}
	if s.Provider != nil && was.customer != c.CustomerID {
		return new(tx.Now), nil
	}
	if s.Provider != nil {
		if err := s.merge(tx, account, was.all); err != nil {
			return nil, err
		}
		if c.ReadAt, c.LastError = new(tx.Now), nil; was.missing {
			c.LastError = new(deletedCustomer)
		}
	}
	rows, err := subscriptionsOf.All(tx, account)
	if err != nil {
		return nil, err
	}
	if err := s.warn(tx, rows); err != nil {
		return nil, err
	}
	has := s.total(rows, tx.Now)
	if err := s.entitle(tx, &c, has); err != nil {
		return nil, err
	}
	_, err = putCustomer.Exec(tx, c)
	return has.next, err
}

// warn tells people once of each subscription that ends soon because a payment has failed.
func (s *Service) warn(tx *db.Tx, rows []subscription) error {
	for _, r := range rows {
		ends, due := r.warnDue(r.standing(tx.Now, s.Grace), tx.Now)
		if !due {
			continue
		}
		r.WarnedAt = &tx.Now
		if _, err := putSubscription.Exec(tx, r); err != nil {
			return err
		}
		if err := GraceEndsEvent.Record(tx, event.Subject{ID: r.ID}, graceData{Kind: Kind(r.Kind), EndsAt: ends}); err != nil {
			return err
		}
	}
	return nil
}

// merge stores the subscriptions of a reading, and an event for each that is another one now.
func (s *Service) merge(tx *db.Tx, account string, all []stripe.Subscription) error {
	rows, err := subscriptionsOf.All(tx, account)
	if err != nil {
		return err
	}
	for _, r := range s.merged(rows, all, account, tx.Now) {
		i := slices.IndexFunc(rows, func(o subscription) bool { return o.ID == r.ID && o.Kind == r.Kind })
		if i >= 0 && rows[i].same(r) {
			continue
		}
		if _, err := putSubscription.Exec(tx, r); err != nil {
			return err
		}
		is := r.standing(tx.Now, s.Grace)
		if i >= 0 && rows[i].data(rows[i].standing(tx.Now, s.Grace)).same(r.data(is)) {
			continue // another period has begun, and nothing else
		}
		if err := ChangedEvent.Record(tx, event.Subject{ID: r.ID}, r.data(is)); err != nil {
			return err
		}
	}
	return nil
}

// merged is what is known of subscriptions after a reading, in the order of the reading. Items of
// one kind in one subscription count together.
func (s *Service) merged(rows []subscription, all []stripe.Subscription, account string, now time.Time) (out []subscription) {
	for _, sub := range all {
		for _, kind := range []string{Seats, OSSDonor} {
			item, ok := s.item(sub, kind)
			if !ok {
				continue
			}
			r := subscription{ID: sub.ID, Kind: kind, AccountID: account}
			if i := slices.IndexFunc(rows, func(o subscription) bool { return o.ID == r.ID && o.Kind == kind }); i >= 0 {
				r = rows[i]
			}
			out = append(out, r.read(sub, item, now))
		}
	}
	for _, r := range rows {
		if !slices.ContainsFunc(out, func(o subscription) bool { return o.ID == r.ID && o.Kind == r.Kind }) {
			out = append(out, r.gone())
		}
	}
	return out
}

// item is what a subscription has of a kind.
func (s *Service) item(sub stripe.Subscription, kind string) (out stripe.Item, ok bool) {
	for _, i := range sub.Items {
		if s.kind(i.Price) != kind {
			continue
		}
		out.Quantity += i.Quantity
		if !ok || i.PeriodEnd.Before(out.PeriodEnd) {
			out.PeriodEnd = i.PeriodEnd
		}
		ok = true
	}
	return out, ok
}

// entitle gives the account the tier and the seats that it pays for, see the package comment.
func (s *Service) entitle(tx *db.Tx, c *customer, has sum) error {
	a, err := people.AccountByID(tx, c.AccountID)
	if err != nil {
		return err
	}
	now, err := people.Seats(tx, c.AccountID)
	if err != nil {
		return err
	}
	d := planData{TierFrom: a.Tier, Tier: a.Tier, SeatsFrom: now, Seats: now}
	if has.seats != c.Seats {
		if now != max(c.OwnSeats, c.Seats) || c.Seats == 0 {
			c.OwnSeats = now // what the server or an operator has given
		}
		c.Seats, d.Seats = has.seats, max(c.OwnSeats, has.seats)
	}
	switch paid := has.seats > 0; {
	case paid && a.Tier == people.TierFree:
		d.Tier, c.GaveTier = people.TierTeam, true
	case !paid && c.GaveTier && a.Tier == people.TierTeam:
		d.Tier, c.GaveTier = people.TierFree, false
	case a.Tier != people.TierTeam:
		c.GaveTier = false
	}
	if d.Tier == d.TierFrom && d.Seats == d.SeatsFrom {
		return nil
	}
	if d.Seats != d.SeatsFrom {
		if err := people.SetSeats(tx, c.AccountID, d.Seats); err != nil {
			return err
		}
	}
	if d.Tier != d.TierFrom {
		if err := people.SetTier(tx, c.AccountID, d.Tier); err != nil {
			return err
		}
	}
	s.Hub.Notify(tx, event.QueueTopic(c.AccountID), event.QueueTopic(""))
	return entitledEvent.Record(tx, event.Subject{ID: c.AccountID}, d)
}
