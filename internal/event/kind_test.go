package event_test

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
)

// TestSubscribersAreCounted holds that subscribers count for their own signal or
// kind, on their own database, until they are detached.
func TestSubscribersAreCounted(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		want := func(when string, signals, kinds int) {
			t.Helper()
			if n, ok := event.SignalSubscribers(d)["thing.flipped"]; !ok || n != signals {
				t.Errorf("%s: %d subscribers of the signal, want %d", when, n, signals)
			}
			if n, ok := event.KindSubscribers(d)["thing.ready"]; !ok || n != kinds {
				t.Errorf("%s: %d subscribers of the kind, want %d", when, n, kinds)
			}
			if n := event.KindSubscribers(d)["thing.undone"]; n != 0 {
				t.Errorf("%s: %d subscribers of another kind", when, n)
			}
		}
		want("before", 0, 0)
		flipped.On(d, func(*db.Tx, string) error { return nil })
		flipped.On(d, func(*db.Tx, string) error { return nil })
		done.On(d, func(*db.Tx, event.Event[doneData]) error { return nil })
		want("subscribed", 2, 1)
		event.Detach(d)
		want("detached", 0, 0)
	})
}

// TestSignalsAreDeclaredOnce holds that a second signal of a name is refused.
func TestSignalsAreDeclaredOnce(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it is declared a second time")
		}
	}()
	event.DeclareSignal[string]("thing.flipped", "A thing was flipped again.")
}
