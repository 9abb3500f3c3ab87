package payment

import (
	"slices"
	"time"

	"yardmaster/internal/stripe"
)

// Status is what a subscription is, in Stripe's words.
type Status string

// Statuses of subscriptions. With incomplete, incomplete_expired and paused
// nothing was paid; what Stripe may add counts as paused.
const (
	active   = "active"
	trialing = "trialing"
	pastDue  = "past_due" // a payment failed; it is tried again
	unpaid   = "unpaid"   // all tries have failed
	canceled = "canceled" // it has ended
	paused   = "paused"
)

// Values lists all that are known.
func (Status) Values() []string {
	return []string{"incomplete", "incomplete_expired", trialing, active, pastDue, unpaid, canceled, paused}
}

// subscription is one thing that an account pays for, or has paid for.
type subscription struct {
	ID        string
	Kind      string
	AccountID string
	Status    string
	Quantity  int64
	Seats     int64
	LowersAt  *time.Time
	PaidUntil *time.Time
	FailedAt  *time.Time
	CancelsAt *time.Time
	CreatedAt time.Time
	WarnedAt  *time.Time // when people were told that it ends soon
}

// standing is what a subscription gives at a time.
type standing struct {
	inForce bool
	seats   int64
	ends    *time.Time // when it is not in force any more unless something is paid; nil: not known
	next    *time.Time // when this changes by itself; nil: it does not
}

// standing is what r gives at a time. A payment that has failed is waited for so long.
func (r subscription) standing(now time.Time, grace time.Duration) (out standing) {
	switch r.Status {
	case active, trialing:
		out.inForce = true
	case pastDue, unpaid, canceled:
		// What was paid is given, and a payment that failed is waited for.
		out.ends = r.PaidUntil
		if r.FailedAt != nil && r.PaidUntil != nil {
			out.ends = later(out.ends, r.FailedAt.Add(grace))
		}
		out.inForce = out.ends != nil && now.Before(*out.ends)
	}
	if !out.inForce {
		return standing{ends: out.ends}
	}
	out.next = out.ends
	if out.seats = r.Seats; r.LowersAt != nil {
		if now.Before(*r.LowersAt) {
			out.next = sooner(out.next, *r.LowersAt)
		} else {
			out.seats = r.Quantity
		}
	}
	return out
}

// read is r after a reading of the provider; the zero value is one that is new here.
func (r subscription) read(s stripe.Subscription, i stripe.Item, now time.Time) subscription {
	was := r
	r.Status, r.Quantity, r.CancelsAt, r.CreatedAt = s.Status, i.Quantity, s.CancelAt, s.Created
	if !slices.Contains(Status("").Values(), s.Status) {
		r.Status = paused
	}
	switch s.Status {
	case active, trialing:
		r.PaidUntil, r.FailedAt, r.WarnedAt = new(i.PeriodEnd), nil, nil
	case pastDue, unpaid:
		if r.FailedAt == nil {
			r.FailedAt = new(now)
		}
	}
	lowersAt := was.LowersAt
	if lowersAt == nil {
		lowersAt = was.PaidUntil // of the period in which more was paid for
	}
	if i.Quantity >= was.Seats || lowersAt == nil || !now.Before(*lowersAt) {
		r.Seats, r.LowersAt = i.Quantity, nil
	} else {
		r.Seats, r.LowersAt = was.Seats, lowersAt
	}
	return r
}

// gone is r once the provider does not know it any more.
func (r subscription) gone() subscription {
	r.Status = canceled
	return r
}

// same tells whether two rows are equal.
func (r subscription) same(o subscription) bool {
	return r.ID == o.ID && r.Kind == o.Kind && r.Status == o.Status && r.Quantity == o.Quantity && r.Seats == o.Seats &&
		equal(r.LowersAt, o.LowersAt) && equal(r.PaidUntil, o.PaidUntil) && equal(r.FailedAt, o.FailedAt) &&
		equal(r.CancelsAt, o.CancelsAt)
}

// warnDue tells whether people are to be told that r ends soon, because a payment has failed, and
// when that is.
func (r subscription) warnDue(is standing, now time.Time) (ends time.Time, due bool) {
	if r.FailedAt == nil || r.WarnedAt != nil || !is.inForce || is.ends == nil {
		return ends, false
	}
	return *is.ends, is.ends.Sub(now) <= warnTime
}

// data is what people are told of r.
func (r subscription) data(is standing) subscriptionData {
	out := subscriptionData{
		Kind: Kind(r.Kind), Status: Status(r.Status), Quantity: r.Quantity, InForce: is.inForce, FailedAt: r.FailedAt,
		CancelsAt: r.CancelsAt,
	}
	if r.Kind == Seats {
		out.Seats = is.seats
	}
	return out
}

// same tells whether people would be told nothing new.
func (d subscriptionData) same(o subscriptionData) bool {
	return d.Status == o.Status && d.Quantity == o.Quantity && d.Seats == o.Seats && d.InForce == o.InForce &&
		equal(d.FailedAt, o.FailedAt) && equal(d.CancelsAt, o.CancelsAt)
}

// sum is what all subscriptions of an account give together.
type sum struct {
	seats int64
	donor bool
	next  *time.Time
}

func (s *Service) total(all []subscription, now time.Time) (out sum) {
	for _, r := range all {
		is := r.standing(now, s.Grace)
		if is.next != nil {
			out.next = sooner(out.next, *is.next)
		}
		switch {
		case !is.inForce:
		case r.Kind == Seats:
			out.seats += is.seats
		case r.Kind == OSSDonor:
			out.donor = true
		}
	}
	return out
}

func equal(a, b *time.Time) bool { return a == nil && b == nil || a != nil && b != nil && a.Equal(*b) }

func sooner(a *time.Time, b time.Time) *time.Time {
	if a == nil || b.Before(*a) {
		return &b
	}
	return a
}

func later(a *time.Time, b time.Time) *time.Time {
	if a == nil || b.After(*a) {
		return &b
	}
	return a
}
