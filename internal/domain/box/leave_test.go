package box

import (
	"context"
	"fmt"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

func TestBoxThatLeavesIsOfflineAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		var handed []string
		Left.On(f.DB, func(tx *db.Tx, l Farewell) error {
			handed = append(handed, fmt.Sprint(l.BoxID, l.Held, tx.Account))
			return nil
		})
		f.run()
		m := f.join()
		ready := protocol.Presence{Version: "1.1.0", State: "ready", Slots: 4, Free: 3}
		f.hello(m, protocol.Hello{Version: "1.1.0", Slots: 4})
		m.beat(ready)
		patience.Until(t, "the box comes online", func() bool { return f.box(m.ID).Presence.Status == Online })

		gone := protocol.Presence{Version: "1.1.0", State: protocol.PresenceLeft, Slots: 4, Runs: []protocol.RunRef{{Run: "r", Attempt: 2}}}
		m.beat(gone)
		if p := f.box(m.ID).Presence; p.Status != Offline || p.Telemetry.State != "left" {
			t.Errorf("after its goodbye: %+v", p)
		}
		if want := fmt.Sprint(m.ID, gone.Runs, "acme"); len(handed) != 1 || handed[0] != want || f.runs.dismissed != 1 {
			t.Errorf("handed back %q, want %q; dismissed %d times", handed, want, f.runs.dismissed)
		}
		m.beat(gone)
		if len(handed) != 1 || read(f, countAudit, m.ID, "box.offline") != 1 {
			t.Errorf("the goodbye, twice: %q, %d audit rows", handed, read(f, countAudit, m.ID, "box.offline"))
		}
		// An earlier beat that arrives on another node does not bring the box
		// back.
		if err := f.store(t.Context(), map[string]protocol.Presence{m.ID: ready}); err != nil {
			t.Fatal(err)
		}
		if got := f.box(m.ID).Presence.Status; got != Offline {
			t.Errorf("after a late beat: %s", got)
		}
		if err := f.age(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.hello(m, protocol.Hello{Version: "1.1.0", Slots: 4})
		m.beat(ready)
		patience.Until(t, "the box is back", func() bool { return f.box(m.ID).Presence.Status == Online })

		// A draining box that says goodbye without runs has handed back its
		// last.
		f.want(200, "", "POST", "/v1/runners/"+m.ID+"/drain", nil)
		m.beat(gone)
		if got := f.box(m.ID).State; got != Draining {
			t.Errorf("a draining box that left with a run is %s", got)
		}
		f.hello(m, protocol.Hello{Version: "1.1.0", Slots: 4})
		m.beat(protocol.Presence{Version: "1.1.0", State: protocol.PresenceLeft, Slots: 4})
		if got := f.box(m.ID).State; got != Drained {
			t.Errorf("a draining box that left with nothing is %s", got)
		}
	})
}

// TestGoodbyeIsOneTransaction holds that a goodbye that fails leaves the box as
// it was.
func TestGoodbyeIsOneTransaction(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		boxID := f.enrolled(publicKey(t)).ID
		if err := f.store(t.Context(), map[string]protocol.Presence{boxID: {Version: "1.0.0", State: "ready"}}); err != nil {
			t.Fatal(err)
		}
		Left.On(f.DB, func(*db.Tx, Farewell) error { return context.DeadlineExceeded })
		if err := f.leave(t.Context(), boxID, protocol.Presence{State: protocol.PresenceLeft}); err == nil {
			t.Fatal("no error")
		}
		if got := f.box(boxID).Presence.Status; got != Online {
			t.Errorf("it is %s", got)
		}
	})
}
