package budget

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

var allStops = db.Q[string](`SELECT id FROM budget_stops WHERE account_id = $1 ORDER BY id`)

// stops are the ids of what may make no further call.
func (w *world) stops() (ids []string) {
	w.t.Helper()
	w.write(func(tx *db.Tx) (err error) {
		ids, err = allStops.All(tx, "acme")
		return err
	})
	return ids
}

// TestAllowedCallStopsNothing: a call whose session has set aside all that the limit leaves is
// cut to that, and neither stops the run nor holds the task.
func TestAllowedCallStopsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Task: 1_000_000}, func(t *testing.T, w *world) {
		s := w.node()
		left := int64(1_000_000)
		for range 10 {
			n, err := s.Reserve(t.Context(), "s1", 1_920_000, 18_000)
			if err != nil || n != left {
				t.Fatalf("%d of %d, %v", n, left, err)
			}
			w.settle(s, "s1", n, 3_900)
			left -= 3_900
		}
		if stops := w.stops(); len(stops) > 0 || len(w.halted) > 0 {
			t.Errorf("stops %v, halted %v", stops, w.halted)
		}
	})
}

// end ends a session as the program does.
func (w *world) end(s *Service, session string) {
	w.t.Helper()
	w.write(func(tx *db.Tx) error {
		if err := s.SessionEnded(tx, session); err != nil {
			return err
		}
		_, err := seed.EndSession.Exec(tx, session, tx.Micros())
		return err
	})
}

// hold holds the task as a run does that has handed in what it has.
func (w *world) hold() {
	w.t.Helper()
	w.write(func(tx *db.Tx) error { _, err := seed.HoldTask.Exec(tx, "task", SlugExhausted); return err })
}

func (w *world) reserved() int64 {
	w.t.Helper()
	return w.meters()["task task"].Reserved
}

// TestEndedSessionGivesBack: what a session has set aside is there again with the transaction
// that ends it, but for the calls that are under way; the rest of those comes back as they end.
func TestEndedSessionGivesBack(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Task: 1_000_000}, func(t *testing.T, w *world) {
		s := w.node()
		n, err := s.Reserve(t.Context(), "s1", 1_920_000, 18_000)
		if err != nil {
			t.Fatal(err)
		}
		w.settle(s, "s1", n, 3_900)
		w.end(s, "s1")
		if got := w.reserved(); got != 0 {
			t.Errorf("%d are set aside for a session that has ended", got)
		}
		if n, err = s.Reserve(t.Context(), "s2", 1_920_000, 18_000); err != nil || n != 996_100 {
			t.Errorf("the next session has %d, %v", n, err)
		}
		w.settle(s, "s2", n, 100)
		if n, err = s.Reserve(t.Context(), "s2", 50_000, 18_000); err != nil {
			t.Fatal(err)
		}
		w.end(s, "s2")
		if got := w.reserved(); got != n {
			t.Errorf("%d are set aside for a call with %d", got, n)
		}
		if _, err := s.Reserve(t.Context(), "s2", 1, 1); !fault.IsKind(err, fault.Unauthenticated) {
			t.Errorf("%v for a call of a session that has ended", err)
		}
		w.settle(s, "s2", n, 7)
		if m := w.meters()["task task"]; m.Reserved != 0 || m.Spent != 3_900+100+7 {
			t.Errorf("%+v", m)
		}
		if stops := w.stops(); len(stops) > 0 {
			t.Errorf("stops %v", stops)
		}
	})
}

// TestEndTellsTheOtherNode: another node than the one with the calls ends the session.
func TestEndTellsTheOtherNode(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Task: 1_000_000}, func(t *testing.T, w *world) {
		calls, other := w.node(), w.node()
		n, err := calls.Reserve(t.Context(), "s1", 500_000, 18_000)
		if err != nil {
			t.Fatal(err)
		}
		w.settle(calls, "s1", n, 10)
		w.end(other, "s1")
		if err := calls.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.reserved(); got != 0 {
			t.Errorf("%d are set aside", got)
		}
	})
}

// TestUnusedMoneyStopsNothing: before a call is refused, what other sessions have set aside and
// do not use comes back, and the cost of calls that are under way is waited for.
func TestUnusedMoneyStopsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Task: 1_000_000}, func(t *testing.T, w *world) {
		s := w.node()
		n, err := s.Reserve(t.Context(), "s1", 1_920_000, 18_000)
		if err != nil {
			t.Fatal(err)
		}
		w.settle(s, "s1", n, 100_000)
		if n, err = s.Reserve(t.Context(), "s2", 400_000, 18_000); err != nil || n != 400_000 {
			t.Fatalf("%d, %v while another session has all, and uses nothing", n, err)
		}
		all, err := s.Reserve(t.Context(), "s1", 1_920_000, 18_000)
		if err != nil {
			t.Fatal(err)
		}
		type answer struct {
			n   int64
			err error
		}
		third := make(chan answer, 1)
		go func() {
			n, err := s.Reserve(t.Context(), "s3", 300_000, 300_000)
			third <- answer{n, err}
		}()
		patience.Until(t, "the call waits", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.changed != nil
		})
		w.settle(s, "s1", all, 100)
		if a := patience.Receive(t, "the call", third); a.err != nil || a.n != 300_000 {
			t.Errorf("%d, %v when the others are over", a.n, a.err)
		}
		if stops := w.stops(); len(stops) > 0 || len(w.halted) > 0 {
			t.Errorf("stops %v, halted %v", stops, w.halted)
		}
	})
}

// TestHeldTaskGoesOn: a held task is freed by one look as soon as its limit has room for the
// call that was refused, and not before.
func TestHeldTaskGoesOn(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Task: 1_000_000, Member: 800_000}, func(t *testing.T, w *world) {
		s := w.node()
		s.patience = 0
		n, err := s.Reserve(t.Context(), "s1", 700_000, 700_000)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Reserve(t.Context(), "s2", 300_000, 300_000); !fault.IsKind(err, fault.PaymentRequired) {
			t.Fatal(err)
		}
		w.end(s, "s2")
		w.hold()
		look := func(s *Service, when string, freed int) {
			t.Helper()
			if err := s.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(w.freed) != freed {
				t.Errorf("%s: freed %v", when, w.freed)
			}
		}
		look(s, "while the other call is under way", 0)
		w.settle(s, "s1", n, 600_000)
		look(w.node(), "while this node has all", 0)
		look(s, "for 200,000 of 300,000", 0)
		w.end(s, "s1")
		look(s, "for 200,000", 0)
		more := int64(900_000)
		w.write(func(tx *db.Tx) error { return storeLimit(tx, Member, "ada", &more) }) // nobody is told
		look(s, "for 300,000", 1)
		if stops := w.stops(); len(stops) > 0 {
			t.Errorf("stops %v", stops)
		}
	})
}

// TestNewMonthFreesTheTask: what the limit of a month has stopped goes on in the next one.
func TestNewMonthFreesTheTask(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Member: 1000}, func(t *testing.T, w *world) {
		s := w.node()
		n, err := s.Reserve(t.Context(), "s1", 900, 900)
		if err != nil {
			t.Fatal(err)
		}
		w.settle(s, "s1", n, 900)
		if _, err := s.Reserve(t.Context(), "s1", 500, 500); !fault.IsKind(err, fault.PaymentRequired) {
			t.Fatal(err)
		}
		w.write(func(tx *db.Tx) error {
			all, err := stopsOf.All(tx, "acme")
			if err != nil {
				return err
			}
			for _, months := range []int{0, 2} {
				tx.Now = tx.Now.AddDate(0, months, 0)
				if ok, err := s.mayGoOn(tx, all[0], newGlance()); err != nil || ok != (months > 0) {
					t.Errorf("after %d months: %v, %v", months, ok, err)
				}
			}
			return nil
		})
	})
}

// TestPriceFreesTheTask: a look frees what a model without a price has stopped, once it has one.
func TestPriceFreesTheTask(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Member: 1000}, func(t *testing.T, w *world) {
		s := w.node()
		err := s.ReserveUnpriced(t.Context(), "s1", Model{Provider: "compatible", Name: "qwen", Key: "key"})
		if fault.From(err).Slug != SlugUnpriced {
			t.Fatal(err)
		}
		w.hold()
		for freed, priced := range []bool{false, true} {
			w.priced = priced
			if err := s.pass(t.Context()); err != nil || len(w.freed) != freed {
				t.Errorf("priced %v: freed %v, %v", priced, w.freed, err)
			}
		}
	})
}

var loseMeters = db.S(`ALTER TABLE budgets RENAME TO lost_budgets`)

// TestMetersThatCannotBeRead: a database that fails between two statements fails the call alone,
// not the process.
func TestMetersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Task: 1_000_000}, func(t *testing.T, w *world) {
		s := w.node()
		w.write(func(tx *db.Tx) error { _, err := loseMeters.Exec(tx); return err })
		for _, most := range []int64{0, 100} { // one that has a reserve made, and one that only asks for room
			if n, err := s.Reserve(t.Context(), "s1", most, 0); err == nil {
				t.Errorf("%d of %d", n, most)
			}
		}
	})
}
