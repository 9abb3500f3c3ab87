package webhook

import (
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// What is said to go next is what goes: an event stays as long as a delivery of it is still to be made.
func TestOldIsWhatGoes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.hook("coder")
		y.send(merged("one"))
		y.wait(time.Hour)
		old := func() (events, deliveries int64) {
			y.t.Helper()
			err := y.nodes[0].DB.Read(y.t.Context(), func(tx *db.Tx) (err error) {
				if events, err = OldEvents(tx, tx.Now); err != nil {
					return err
				}
				deliveries, err = OldDeliveries(tx, tx.Now)
				return err
			})
			if err != nil {
				y.t.Fatal(err)
			}
			return events, deliveries
		}
		if events, deliveries := old(); events != 0 || deliveries != 0 {
			y.t.Errorf("%d events and %d deliveries go before they were delivered", events, deliveries)
		}
		y.pass()
		if events, deliveries := old(); events != 1 || deliveries != 1 {
			y.t.Errorf("%d events and %d deliveries go, want one each", events, deliveries)
		}
		y.nodes[0].Keep = 0
		if err := y.nodes[0].DB.Write(y.t.Context(), y.nodes[0].forget); err != nil {
			y.t.Fatal(err)
		}
		if events, deliveries := old(); events != 0 || deliveries != 0 {
			y.t.Errorf("%d events and %d deliveries are left", events, deliveries)
		}
	})
}

// A delivery that outlives its event is not made again: nobody knows any more what it said.
func TestEventIsGone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.hook("coder")
		y.send(merged("one"))
		y.pass()
		made := y.ledger()[0].ID
		if err := y.nodes[0].DB.Write(y.t.Context(), func(tx *db.Tx) error {
			_, err := db.S(`DELETE FROM webhook_deliveries`).Exec(tx)
			if err == nil {
				_, err = db.S(`DELETE FROM webhook_events`).Exec(tx)
			}
			return err
		}); err != nil {
			y.t.Fatal(err)
		}
		if _, err := y.nodes[0].redeliver(y.as("acme"), attemptIn{ID: made}); fault.From(err).Slug != "event-gone" {
			y.t.Errorf("%v", err)
		}
	})
}
