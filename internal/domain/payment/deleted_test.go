package payment

import (
	"sync"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
)

// TestDeletedCustomer: a customer who was deleted at Stripe keeps what was paid until its end, is
// told what to do, and pays anew as another one.
func TestDeletedCustomer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		y.till.Has(cus, y.seats(active, 4))
		y.nudge(0, "evt_1", cus, accepted)
		y.work()
		y.till.Delete(cus)
		if _, err := y.nodes[0].portal(y.ctx, op.None{}); fault.From(err).Slug != "no-customer" {
			y.t.Errorf("the portal: %v", err)
		}
		y.work()
		y.want("until what was paid ends", has{people.TierTeam, 4, false})
		y.nudge(1, "evt_2", cus, accepted) // that it was deleted
		y.work()
		b, err := y.nodes[1].get(y.ctx, op.None{})
		if err != nil || b.Payment.Customer || b.Payment.LastError == nil || *b.Payment.LastError != deletedCustomer ||
			len(b.Subscriptions) != 1 || b.Subscriptions[0].Status != canceled || !b.Subscriptions[0].InForce {
			y.t.Errorf("%+v, %v", b, err)
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				if p, err := y.nodes[i%2].checkout(y.ctx, checkoutIn{Kind: Seats, Quantity: 2}); err != nil || p.URL == "" {
					y.t.Errorf("paying anew: %+v, %v", p, err)
				}
			})
		}
		all.Wait()
		var c customer
		y.write(func(tx *db.Tx) (err error) { c, err = customerOf.One(tx, "acme"); return err })
		if c.CustomerID == cus {
			y.t.Fatal("the customer is the one that was deleted")
		}
		one := y.seats(active, 2)
		one.ID = "sub_2"
		y.till.Has(c.CustomerID, one)
		y.nudge(0, "evt_3", c.CustomerID, accepted)
		y.nudge(0, "evt_4", cus, ignored)
		y.work()
		y.want("with what was paid before and since", has{people.TierTeam, 6, false})
		if b, err := y.nodes[1].get(y.ctx, op.None{}); err != nil || !b.Payment.Customer || b.Payment.LastError != nil {
			y.t.Errorf("%+v, %v", b.Payment, err)
		}
		if _, err := y.nodes[0].portal(y.ctx, op.None{}); err != nil {
			y.t.Error(err)
		}
	})
}

// TestEndOfADeletedCustomer: nothing is left to end of a customer who was deleted, also while it is ended.
func TestEndOfADeletedCustomer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cus := y.customer()
		y.till.Has(cus, y.seats(active, 4))
		y.till.Before(func() { y.till.Delete(cus) })
		for range 2 {
			if err := y.nodes[0].End(y.ctx, "acme"); err != nil {
				y.t.Error(err)
			}
		}
	})
}
