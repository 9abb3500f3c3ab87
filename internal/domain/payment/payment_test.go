package payment

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/till"
)

// month is the end of the period that is under way at the beginning of a test.
func (y *yard) month() time.Time { return time.Unix(1_700_000_000, 0).UTC().Add(30 * day) }

func (y *yard) seats(status string, n int64) till.Subscription {
	return till.Subscription{ID: "sub_1", Status: status, Price: "price_seat", Quantity: n, PeriodEnd: y.month()}
}

// Seats that are paid for give the tier and the number, and take both away at the end of what
// was paid. The events of it are recorded once.
func TestSeatsAreBought(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		y.want("before it pays", has{people.TierFree, 0, false})
		y.till.Has(cus, y.seats("incomplete", 4))
		y.nudge(0, "evt_1", cus, accepted)
		y.work()
		y.want("before the card was taken", has{people.TierFree, 0, false})
		y.till.Has(cus, y.seats(active, 4))
		y.nudge(1, "evt_2", cus, accepted)
		y.work()
		y.want("once it pays", has{people.TierTeam, 4, false})
		y.till.Has(cus, y.seats(active, 6))
		y.nudge(1, "evt_3", cus, accepted)
		y.work()
		y.want("with two more", has{people.TierTeam, 6, false})
		gone := y.seats(active, 6)
		gone.Ends = true
		y.till.Has(cus, gone)
		y.nudge(0, "evt_4", cus, accepted)
		y.work()
		y.want("after it said that it ends", has{people.TierTeam, 6, false})
		y.till.Has(cus, y.seats(canceled, 6)) // as if at once
		y.nudge(0, "evt_5", cus, accepted)
		y.later(29 * day)
		y.want("until the end of what was paid", has{people.TierTeam, 6, false})
		y.later(day)
		y.want("at the end", has{people.TierFree, 0, false})
		want := []string{
			"checkout_begun", "subscription_changed", "subscription_changed", "plan_changed", "subscription_changed", "plan_changed",
			"subscription_changed", "subscription_changed", "plan_changed",
		}
		if got := y.events(); !slices.Equal(got, want) {
			y.t.Errorf("recorded are %v", got)
		}
	})
}

// TestA15EventsOnlyNudge: events come twice, in any order and at two nodes at once; what counts is what Stripe has now.
func TestA15EventsOnlyNudge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		y.till.Has(cus, y.seats(active, 3))
		var all sync.WaitGroup
		kinds := make([]string, 16)
		for i := range kinds {
			all.Go(func() {
				body := till.Event(fmt.Sprint("evt_", i/4), "customer.subscription.created", cus)
				_, kinds[i], _ = y.deliver(i%2, body, till.Sign(body, till.Secret, y.now()))
			})
		}
		all.Wait()
		slices.Sort(kinds)
		got := slices.Compact(slices.Clone(kinds))
		if !slices.Equal(got, []string{accepted, known}) || kinds[3] != accepted || kinds[4] != known {
			y.t.Errorf("16 deliveries of 4 events: %v", kinds)
		}
		y.work()
		y.want("after the events", has{people.TierTeam, 3, false})
		if got := y.events(); !slices.Equal(got, []string{"checkout_begun", "subscription_changed", "plan_changed"}) {
			y.t.Errorf("recorded are %v", got)
		}
		calls := len(y.till.Calls())
		y.nudge(0, "evt_2", cus, known)
		y.work()
		if got := len(y.till.Calls()); got != calls {
			y.t.Errorf("an event that is known makes %d calls", got-calls)
		}
		// "Created" comes after "updated": its body says incomplete, as those of the till do.
		y.nudge(0, "evt_created", cus, accepted)
		y.work()
		y.want("after a late event", has{people.TierTeam, 3, false})
	})
}

// TestA17NewestReadingWins: an event that comes while the customer is read has it read once more.
func TestA17NewestReadingWins(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		y.till.Has(cus, y.seats(active, 3))
		y.nudge(0, "evt_1", cus, accepted)
		y.till.Before(func() { // the answer is made, and not here yet
			y.till.Has(cus, y.seats(active, 5))
			y.nudge(1, "evt_2", cus, accepted)
		})
		y.work()
		y.want("at last", has{people.TierTeam, 5, false})
	})
}

// What is not signed for this endpoint, or is stale, is 400 and changes nothing.
func TestForgedEvents(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		calls := len(y.till.Calls())
		y.till.Has(cus, y.seats(active, 3))
		body := till.Event("evt_1", "customer.subscription.updated", cus)
		for name, c := range map[string]struct{ signature, want string }{
			"forged":         {till.Sign(body, "whsec_other", y.now()), "payment-signature"},
			"of another one": {till.Sign([]byte("{}"), till.Secret, y.now()), "payment-signature"},
			"unsigned":       {"", "payment-signature"},
			"stale":          {till.Sign(body, till.Secret, y.now().Add(-5*time.Minute-time.Second)), "payment-signature"},
			"ahead":          {till.Sign(body, till.Secret, y.now().Add(5*time.Minute+time.Second)), "payment-signature"},
		} {
			if status, _, problem := y.deliver(0, body, c.signature); status != http.StatusBadRequest || problem != c.want {
				y.t.Errorf("%s: %d %s", name, status, problem)
			}
		}
		none := []byte(`{"no": "event"}`)
		if status, _, _ := y.deliver(0, none, till.Sign(none, till.Secret, y.now())); status != http.StatusBadRequest {
			y.t.Errorf("no event: %d", status)
		}
		y.work()
		if got := len(y.till.Calls()); got != calls {
			y.t.Errorf("%d calls were made", got-calls)
		}
		y.want("after forgeries", has{people.TierFree, 0, false})
		y.nudge(0, "evt_1", cus, accepted) // its id was not used up
		y.nudge(0, "evt_2", "cus_unknown", ignored)
		y.nudge(0, "evt_2", "cus_unknown", known)
	})
}

// A card that fails costs nothing for two weeks. It ends then, or goes on once it is taken.
func TestGrace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		y.till.Has(cus, y.seats(active, 4))
		y.nudge(0, "evt_1", cus, accepted)
		y.later(30 * day)
		next := y.seats(pastDue, 4)
		next.PeriodEnd = y.month().Add(30 * day) // it runs, and is not paid
		y.till.Has(cus, next)
		y.nudge(0, "evt_2", cus, accepted)
		y.work()
		y.want("when the card fails", has{people.TierTeam, 4, false})
		y.later(13 * day)
		y.want("13 days later", has{people.TierTeam, 4, false})
		y.later(12 * time.Hour)
		told := slices.DeleteFunc(y.events(), func(kind string) bool { return kind != "grace_ends" })
		if len(told) != 1 {
			y.t.Errorf("people are told %d times that it ends", len(told))
		}
		y.later(12 * time.Hour)
		next.Status = unpaid
		y.till.Has(cus, next)
		y.nudge(0, "evt_unpaid", cus, accepted)
		y.work()
		y.want("14 days later", has{people.TierFree, 0, false})
		next.Status = active
		y.till.Has(cus, next)
		y.nudge(0, "evt_3", cus, accepted)
		y.work()
		y.want("once it pays", has{people.TierTeam, 4, false})
	})
}

// Seats that are given up are there until the end of the period in which they were paid.
func TestSeatsAreLoweredAtTheEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		y.till.Has(cus, y.seats(active, 6))
		y.nudge(0, "evt_1", cus, accepted)
		y.work()
		y.till.Has(cus, y.seats(active, 4))
		y.nudge(0, "evt_2", cus, accepted)
		y.work()
		y.till.Has(cus, y.seats(active, 2))
		y.nudge(0, "evt_3", cus, accepted)
		y.later(29 * day)
		y.want("before the end", has{people.TierTeam, 6, false})
		b, err := y.nodes[0].get(y.ctx, op.None{})
		if err != nil || len(b.Subscriptions) != 1 || b.Subscriptions[0].Quantity != 2 || b.Subscriptions[0].LowersAt == nil ||
			!b.Subscriptions[0].LowersAt.Equal(y.month()) {
			y.t.Errorf("%+v, %v", b.Subscriptions, err)
		}
		next := y.seats(active, 2)
		next.PeriodEnd = y.month().Add(30 * day)
		y.till.Has(cus, next)
		y.later(day)
		y.want("at the end", has{people.TierTeam, 2, false})
	})
}

// What operators set stands until what is paid for changes, and comes back after it.
func TestOperatorsAndPayment(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		set := func(tier people.Tier, seats int64) {
			y.write(func(tx *db.Tx) error {
				return errors.Join(people.SetTier(tx, "acme", tier), people.SetSeats(tx, "acme", seats))
			})
		}
		set(people.TierSelfHosted, 2)
		cus := y.customer()
		y.till.Has(cus, y.seats(active, 4))
		y.nudge(0, "evt_1", cus, accepted)
		y.work()
		y.want("paying", has{people.TierSelfHosted, 4, false})
		set(people.TierOSS, 10)
		y.later(sweep)
		y.want("after the operator", has{people.TierOSS, 10, false})
		y.till.Has(cus, y.seats(active, 12))
		y.later(sweep) // no event came
		y.want("paying for more", has{people.TierOSS, 12, false})
		set(people.TierFree, 12)
		y.later(sweep)
		y.want("after the tier was taken", has{people.TierTeam, 12, false})
		y.till.Has(cus, y.seats(canceled, 12))
		y.later(30 * day)
		y.want("paying no more", has{people.TierFree, 10, false})
		set(people.TierTeam, 3)
		y.later(sweep)
		y.want("by the operator's gift", has{people.TierTeam, 3, false})
	})
}

// A donor to open source is one as long as it pays, whatever else it has.
func TestDonor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		donor := till.Subscription{ID: "sub_2", Status: active, Price: "price_donor", Quantity: 1, PeriodEnd: y.month()}
		y.till.Has(cus, donor, till.Subscription{ID: "sub_3", Status: active, Price: "price_of_others", Quantity: 9, PeriodEnd: y.month()})
		y.nudge(0, "evt_1", cus, accepted)
		y.work()
		y.want("giving", has{people.TierFree, 0, true})
		y.till.Has(cus) // the provider knows nothing of it any more
		y.later(29 * day)
		y.want("before the end", has{people.TierFree, 0, true})
		y.later(day)
		y.want("at the end", has{people.TierFree, 0, false})
	})
}

// A provider that does not answer changes nothing, is asked again, and its words are not kept.
func TestProviderIsAway(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		y.till.Has(cus, y.seats(active, 4))
		y.nudge(0, "evt_1", cus, accepted)
		y.work()
		for status, slug := range map[int]string{
			401: "payment-refused", 404: "payment-refused",
			429: "payment-unavailable", 500: "payment-unavailable", 302: "payment-unavailable",
		} {
			y.till.Fail(status)
			y.later(sweep)
			y.want(fmt.Sprint("after ", status), has{people.TierTeam, 4, false})
			b, err := y.nodes[0].get(y.ctx, op.None{})
			if err != nil || b.Payment.LastError == nil || !strings.HasPrefix(*b.Payment.LastError, "stripe ") {
				y.t.Errorf("%d: %+v, %v", status, b.Payment, err)
			}
			for _, call := range []func() error{
				func() error { _, err := y.nodes[0].checkout(y.ctx, checkoutIn{Kind: OSSDonor}); return err },
				func() error { _, err := y.nodes[0].portal(y.ctx, op.None{}); return err },
			} {
				if err := call(); fault.From(err).Slug != slug {
					y.t.Errorf("%d: %v", status, err)
				}
			}
		}
		y.till.Fail(0)
		y.nudge(0, "evt_2", cus, accepted) // which ends the wait for another try
		y.work()
		if b, err := y.nodes[0].get(y.ctx, op.None{}); err != nil || b.Payment.LastError != nil {
			y.t.Errorf("afterwards: %+v, %v", b.Payment, err)
		}
	})
}

// An account becomes one customer, whoever asks, and buys of each kind once.
func TestCheckout(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		slug := func(_ Page, err error) string {
			var refused *fault.Error
			if err != nil && !errors.As(err, &refused) {
				y.t.Error(err)
			} else if err != nil {
				return refused.Slug
			}
			return ""
		}
		if got := slug(y.nodes[0].portal(y.ctx, op.None{})); got != "no-customer" {
			y.t.Errorf("the portal of nobody: %q", got)
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				p, err := y.nodes[i%2].checkout(y.ctx, checkoutIn{Kind: Seats, Quantity: 2})
				if err != nil || p.URL == "" || p.ExpiresAt == nil {
					y.t.Errorf("%+v, %v", p, err)
				}
			})
		}
		all.Wait()
		var cus string
		y.write(func(tx *db.Tx) error {
			c, err := customerOf.One(tx, "acme")
			cus = c.CustomerID
			return err
		})
		y.till.Has(cus, y.seats(pastDue, 2))
		y.work()
		if got := slug(y.nodes[0].checkout(y.ctx, checkoutIn{Kind: Seats})); got != "" {
			y.t.Errorf("what was never paid is in the way: %q", got)
		}
		y.till.Has(cus, y.seats(active, 2))
		y.nudge(0, "evt_1", cus, accepted)
		y.work()
		if got := slug(y.nodes[0].checkout(y.ctx, checkoutIn{Kind: Seats})); got != "already-subscribed" {
			y.t.Errorf("seats again: %q", got)
		}
		if got := slug(y.nodes[0].checkout(y.ctx, checkoutIn{Kind: OSSDonor, Quantity: 2})); got != "validation" && got != "invalid" {
			y.t.Errorf("two donors: %q", got)
		}
		if got := slug(y.nodes[0].portal(y.ctx, op.None{})); got != "" {
			y.t.Errorf("the portal: %q", got)
		}
		y.nodes[0].Provider = nil
		first, second := slug(y.nodes[0].checkout(y.ctx, checkoutIn{Kind: Seats})), slug(y.nodes[0].portal(y.ctx, op.None{}))
		if first != "no-payment" || second != "no-payment" {
			y.t.Errorf("without a provider: %q, %q", first, second)
		}
		if b, err := y.nodes[0].get(y.ctx, op.None{}); err != nil || b.Payment.Provider != nil || len(b.Payment.Sells) != 0 {
			y.t.Errorf("without a provider: %+v, %v", b.Payment, err)
		}
	})
}

// Without a provider what was paid ends by its time.
func TestProviderWasTakenAway(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		one := till.Subscription{ID: "sub_2", Status: active, Price: "price_seat", Quantity: 1, PeriodEnd: y.month()}
		y.till.Has(cus, y.seats(canceled, 4), one)
		y.nudge(0, "evt_1", cus, accepted)
		y.work()
		y.want("what was never seen to be paid gives nothing", has{people.TierTeam, 1, false})
		one.Status, one.Price = canceled, "price_old"
		y.till.Has(cus, y.seats(canceled, 4), one)
		y.nudge(0, "evt_2", cus, accepted)
		y.work()
		for _, n := range y.nodes {
			n.Provider = nil
		}
		y.later(30 * day)
		y.want("at the end", has{people.TierFree, 0, false})
	})
}
