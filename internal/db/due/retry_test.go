package due

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

type busy time.Duration

func (b busy) Error() string             { return "busy" }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

// The far side's wish counts if it is longer, the ladder spreads, tries are counted, and what
// fails for good is told to the domain.
func TestRetry(t *testing.T) {
	l := Ladder{First: time.Second, Longest: time.Minute}
	seen := map[time.Duration]bool{}
	for range 100 {
		d := l.wait(3, 0)
		if d < 4*time.Second || d > 5*time.Second {
			t.Fatal(d)
		}
		seen[d] = true
		if d := l.wait(1, time.Hour); d < time.Hour {
			t.Fatal("earlier than the far side asked:", d)
		}
		if d := l.wait(1<<40, 0); d > 75*time.Second {
			t.Fatal(d)
		}
	}
	steep := Ladder{First: 10 * time.Second, Factor: 6, Longest: 2 * time.Hour}
	waits := []time.Duration{10 * time.Second, 10 * time.Second, time.Minute, 6 * time.Minute, 36 * time.Minute, 2 * time.Hour}
	for i, want := range waits {
		if got := steep.After(i); got != want {
			t.Errorf("after %d tries: %s", i, got)
		}
	}
	if len(seen) < 90 {
		t.Error("no jitter")
	}
	onBoth(t, func(t *testing.T, dsn string) {
		d := dbtest.Open(t, dsn, db.Options{})
		var up atomic.Value
		var tries atomic.Int64
		n := start(t, d, "a", Queue[job]{Retry: Ladder{First: time.Millisecond, Longest: time.Millisecond, Tries: 3},
			Work: func(_ context.Context, j Job[job]) Outcome {
				switch n := tries.Add(1); {
				case j.Key == "limit" && n == 1:
					return Again(fmt.Errorf("a call: %w", busy(time.Hour)))
				case j.Key == "limit":
					return Done(nil)
				}
				return Again(errors.New("no"))
			},
			GiveUp: func(tx *db.Tx, key, why string) error {
				tx.AfterCommit(func() { up.Store(key + ": " + why) })
				return nil
			},
		}).run(t)
		n.put(t, "limit", "acme")
		soon(t, "the wait", func() bool { s, _ := n.state(t, "limit"); return s.State == "waits" })
		if s, _ := n.state(t, "limit"); s.DueAt.Before(time.Now().Add(59 * time.Minute)) {
			t.Errorf("%+v", s)
		}
		n.put(t, "no", "acme")
		soon(t, "the end", func() bool { return up.Load() == "no: no" })
		if n := tries.Load(); n != 4 {
			t.Errorf("%d tries", n)
		}
	})
}

// A row that always panics, one that cannot be loaded and one whose end cannot be recorded
// keep no other from being worked on, and are told.
func TestPoison(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		d := dbtest.Open(t, dsn, db.Options{})
		n := start(t, d, "a", Queue[job]{AtOnce: 2, Retry: Ladder{First: time.Millisecond, Longest: 2 * time.Millisecond, Tries: 3},
			Load: func(tx *db.Tx, key string) (job, bool, error) {
				if key == "unreadable" {
					return job{}, false, errors.New("not JSON")
				}
				return loadJob(tx, key)
			},
			Work: func(_ context.Context, j Job[job]) Outcome {
				switch j.Key {
				case "panics":
					panic("nil map")
				case "unrecordable":
					return Done(func(*db.Tx) error { return errors.New("a constraint") })
				case "panics at its end":
					return Done(func(*db.Tx) error { panic("here") })
				case "spoils":
					return Done(func(tx *db.Tx) error { _, err := nowhere.Exec(tx); return err })
				}
				return Done(finished("a", j.Key))
			}})
		for _, k := range []string{"panics", "unreadable", "unrecordable", "panics at its end", "spoils"} {
			n.put(t, k, "acme")
		}
		for i := range 50 {
			n.put(t, fmt.Sprint("good", i), "acme")
		}
		n.run(t)
		soon(t, "the good ones", func() bool { return count(t, d, records) == 50 })
		soon(t, "the bad ones", func() bool { return count(t, d, asides) == 5 })
		s, _ := n.state(t, "panics")
		if !strings.Contains(s.Why, "nil map") || s.Tries != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// A row that is gone takes its entry along.
func TestRowGone(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		n := start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{
			Work: func(context.Context, Job[job]) Outcome { panic("worked on") },
		})
		must(t, n.DB, func(tx *db.Tx) error { n.jobs.Add(tx, "nobody", Entry{}); return nil })
		n.run(t)
		soon(t, "the end", func() bool { _, there := n.state(t, "nobody"); return !there })
	})
}

// A node that stops gives back what it has, at once, and no try is counted.
func TestStop(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		d := dbtest.Open(t, dsn, db.Options{})
		begun := make(chan bool)
		a := start(t, d, "a", Queue[job]{Hold: time.Hour, Work: func(ctx context.Context, j Job[job]) Outcome {
			begun <- true
			<-ctx.Done()
			return Again(ctx.Err())
		}}).run(t)
		a.put(t, "k", "acme")
		<-begun
		a.end()
		if s, _ := a.state(t, "k"); s.State != "ready" || s.Tries != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A clock that is set back by an hour, with or without a restart, prolongs no wait by more
// than itself; a time of the calendar stays. One that is set forward makes all due.
func TestClockSet(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		var by atomic.Int64
		now := func() time.Time { return time.Unix(1_800_000_000, by.Load()) }
		d := dbtest.Open(t, dsn, db.Options{Clock: now})
		worked := make(chan string, 8)
		n := start(t, d, "a", Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome { worked <- j.Key; return Done(nil) }})
		morning := now().Add(10 * time.Minute)
		must(t, d, func(tx *db.Tx) error {
			return errors.Join(n.add(tx, "relative", "acme", Entry{After: 2 * time.Minute}),
				n.add(tx, "calendar", "acme", Entry{At: morning}))
		})
		advance := func(d time.Duration) {
			by.Add(int64(d))
			if err := n.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		advance(0)
		advance(-time.Hour)
		if s, _ := n.state(t, "relative"); !s.DueAt.Equal(now().Add(2 * time.Minute)) {
			t.Errorf("after the clock was set back by an hour it waits until %v", s.DueAt.Sub(now()))
		}
		if s, _ := n.state(t, "calendar"); !s.DueAt.Equal(morning) {
			t.Errorf("moved to %v", s.DueAt)
		}
		advance(3 * time.Minute)
		if k := patience.Receive(t, "the wait", worked); k != "relative" {
			t.Error(k)
		}
		advance(2 * time.Hour)
		if k := patience.Receive(t, "the time", worked); k != "calendar" {
			t.Error(k)
		}
	})
}

// What is added while it is worked on is looked at once more, also where the work ends in a
// wait.
func TestAddedBeforeWait(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		var n *node
		looks := 0
		n = start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{Work: func(ctx context.Context, j Job[job]) Outcome {
			if looks++; looks == 1 {
				if err := n.DB.Write(ctx, func(tx *db.Tx) error { n.jobs.Add(tx, j.Key, Entry{}); return nil }); err != nil {
					t.Error(err)
				}
			}
			return Wait(time.Hour)
		}})
		n.put(t, "k", "acme")
		if err := n.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s, _ := n.state(t, "k"); looks != 2 || s.State != Waits || s.Tries != 0 {
			t.Errorf("%d looks, %+v", looks, s)
		}
	})
}

// What a record does to its own entry comes after the outcome.
func TestOwnEntryInRecord(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		var n *node
		n = start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome {
			return Done(func(tx *db.Tx) error {
				if j.Key == "drop" {
					n.jobs.Drop(tx, j.Key)
					return finished("a", j.Key)(tx)
				}
				n.jobs.Add(tx, j.Key, Entry{After: time.Hour})
				return nil
			})
		}})
		n.put(t, "drop", "acme")
		n.put(t, "later", "acme")
		if err := n.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s, _ := n.state(t, "later"); s.State != Waits || count(t, n.DB, entries) != 1 || count(t, n.DB, records) != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// An outcome may be found in the transaction that records it; if that fails, the try has.
func TestDecide(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		looks := 0
		n := start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome {
			looks++
			return Decide(func(tx *db.Tx) (Outcome, error) {
				switch {
				case j.Key == "no":
					return Outcome{}, errors.New("no")
				case looks == 1:
					return Wait(0).With(func(tx *db.Tx) error { _, err := note.Exec(tx, "looked", "a"); return err }), nil
				}
				return Done(finished("a", j.Key)), nil
			})
		}})
		n.put(t, "k", "acme")
		// By the time of a server, what waits for no time may be due a moment later.
		patience.Until(t, "the job is over", func() bool {
			if err := n.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			return count(t, n.DB, entries) == 0
		})
		if looks != 2 || count(t, n.DB, records) != 2 || count(t, n.DB, entries) != 0 {
			t.Errorf("%d looks", looks)
		}
		n.put(t, "no", "acme")
		if err := n.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s, _ := n.state(t, "no"); s.State != Waits || s.Tries != 1 || !strings.Contains(s.Why, "no") {
			t.Errorf("%+v", s)
		}
	})
}

// What work writes on its way is undone if the node has lost the entry.
func TestRenewInTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		var n *node
		n = start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{Work: func(ctx context.Context, j Job[job]) Outcome {
			write := func(id string) error {
				return n.DB.Write(ctx, func(tx *db.Tx) error {
					j.Renew(tx)
					_, err := note.Exec(tx, id, "a")
					return err
				})
			}
			if err := write("mine"); err != nil {
				t.Error(err)
			}
			must(t, n.DB, func(tx *db.Tx) error { n.jobs.Drop(tx, j.Key); return nil })
			if err := write("lost"); !errors.Is(err, ErrLost) {
				t.Error(err)
			}
			return Done(nil)
		}})
		n.put(t, "k", "acme")
		if err := n.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := count(t, n.DB, records); got != 1 {
			t.Errorf("%d records", got)
		}
	})
}
