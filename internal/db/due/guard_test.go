package due

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/patience"
)

// A row that nobody added, and an entry whose row is over, are told.
func TestAstray(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		n := start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{})
		n.put(t, "right", "acme")
		must(t, n.DB, func(tx *db.Tx) error {
			n.jobs.Add(tx, "rowless", Entry{})
			_, err := insertJob.Exec(tx, "forgotten", "acme")
			return err
		})
		read(t, n.DB, func(tx *db.Tx) error {
			got, err := n.Astray(tx)
			want := []string{"jobs: a row without an entry: forgotten", "jobs: an entry without a row: rowless"}
			if !slices.Equal(got, want) {
				t.Errorf("%q", got)
			}
			return err
		})
	})
}

// A row without an entry, as a program of an older release leaves it, gets one.
func TestAdopted(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		n := start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{
			Work: func(_ context.Context, j Job[job]) Outcome { return Done(finished(j.Account, j.Key)) },
		})
		must(t, n.DB, func(tx *db.Tx) error {
			_, err := insertJob.Exec(tx, "forgotten", "acme")
			return err
		})
		if err := errors.Join(n.guard(t.Context()), n.Drain(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := count(t, n.DB, recordsBy, "acme"); got != 1 {
			t.Errorf("%d are done for the row's account", got)
		}
	})
}

// What is known of many entries is read at once, however many they are.
func TestStates(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		const entries = looksAtOnce + 3
		n := start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{})
		all := []string{"nobody's"}
		must(t, n.DB, func(tx *db.Tx) error {
			for i := range entries {
				all = append(all, fmt.Sprint(i))
				n.jobs.Add(tx, fmt.Sprint(i), Entry{After: time.Duration(i) * time.Minute})
			}
			return nil
		})
		read(t, n.DB, func(tx *db.Tx) error {
			got, err := n.jobs.States(tx, all)
			if err != nil || len(got) != entries {
				t.Fatal(len(got), err)
			}
			one, _, err := n.jobs.State(tx, "2")
			if got["2"] != one || one.State != Waits || got["0"].State != Ready {
				t.Errorf("%+v, alone %+v", got["2"], one)
			}
			return err
		})
	})
}

// An idle node asks the database once for all queues, and writes nothing.
func TestIdle(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		var reads, writes atomic.Int64
		d := dbtest.Open(t, dsn, db.Options{Observe: func(_ context.Context, x db.Transaction) {
			if x.Kind == "read" {
				reads.Add(1)
			} else {
				writes.Add(1)
			}
		}})
		n := start(t, d, "a", Queue[job]{})
		for i := range 20 {
			Register(n.Kernel, Queue[job]{Name: fmt.Sprint("other", i), Load: loadJob})
		}
		must(t, d, func(tx *db.Tx) error { n.jobs.Add(tx, "later", Entry{After: time.Hour}); return nil })
		reads.Store(0)
		writes.Store(0)
		var working sync.WaitGroup
		if _, err := n.pass(t.Context(), &working, false); err != nil {
			t.Fatal(err)
		}
		working.Wait()
		if reads.Load() != 1 || writes.Load() != 0 {
			t.Errorf("%d times, and wrote %d times", reads.Load(), writes.Load())
		}
	})
}

// What one node adds, another one hears of at once, by the relays of their hubs.
func TestHeardByOthers(t *testing.T) {
	dsn := database(t, db.Postgres)
	ctx, stop := context.WithCancel(t.Context())
	var relays sync.WaitGroup
	defer relays.Wait()
	defer stop()
	worked := make(chan string, 1)
	nodes := make([]*node, 2)
	for i := range nodes {
		nodes[i] = start(t, dbtest.Open(t, dsn, db.Options{}), fmt.Sprint(i), Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome {
			worked <- j.Key
			return Done(finished("b", j.Key))
		}})
		nodes[i].Every = 24 * time.Hour
		r := event.NewRelay(nodes[i].DB, nodes[i].Hub, slog.New(slog.DiscardHandler))
		heard := nodes[i].Hub.Watch("connected") // it wakes all when it hears
		relays.Go(func() { _ = r.Loop(ctx) })
		patience.Ended(t, "the relay", heard)
	}
	nodes[1].run(t)
	nodes[0].put(t, "k", "acme")
	if k := patience.Receive(t, "the other node", worked); k != "k" {
		t.Error(k)
	}
}

// Where work is short, entries are claimed ahead of the places; a node that stops gives back
// those that it has not begun, and no try is counted.
func TestClaimedAhead(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		d := dbtest.Open(t, dsn, db.Options{})
		begun := make(chan string, 64)
		n := start(t, d, "a", Queue[job]{AtOnce: 2, Share: 2, Hold: time.Hour, Work: func(ctx context.Context, j Job[job]) Outcome {
			begun <- j.Key
			<-ctx.Done()
			return Again(ctx.Err())
		}})
		must(t, d, func(tx *db.Tx) (err error) {
			for i := range 9 {
				err = errors.Join(err, n.add(tx, fmt.Sprint(i), "acme", Entry{Account: "acme"}))
			}
			return err
		})
		n.queues["jobs"].took = time.Millisecond
		n.run(t)
		patience.Receive(t, "the first", begun)
		patience.Receive(t, "the second", begun)
		if got := count(t, d, heldBy, "a"); got != 6 {
			t.Errorf("%d are held, two in work and four ahead", got)
		}
		n.end()
		if got := count(t, d, heldBy, "a"); got != 0 || len(begun) != 0 {
			t.Errorf("%d are held after the end; %d more were begun", got, len(begun))
		}
		for i := range 9 {
			if s, _ := n.state(t, fmt.Sprint(i)); s.State != Ready || s.Tries != 0 {
				t.Errorf("%d: %+v", i, s)
			}
		}
	})
}

// What a node had that is gone is worked on again at once; what another one has, is not.
func TestGone(t *testing.T) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			d := dbtest.Open(t, database(t, e), db.Options{})
			for _, name := range []string{"dead", "alive"} {
				n := start(t, d, name, Queue[job]{Hold: time.Hour})
				n.put(t, name, "acme")
				if got, _, err := n.claim(t.Context(), n.queues["jobs"]); err != nil || len(got) != 1 {
					t.Fatal(len(got), err)
				}
			}
			n := start(t, d, "a", Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome { return Done(finished("a", j.Key)) }})
			must(t, d, func(tx *db.Tx) error { return n.Gone(tx, []string{"dead", "other"}) })
			if err := n.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			if count(t, d, entries) != 1 || count(t, d, records) != 1 {
				t.Error("not one is done, and one left")
			}
		})
	}
}

// What nodes that have died had is worked on again when the only node of a database starts.
func TestRestarted(t *testing.T) {
	d := dbtest.Open(t, database(t, db.SQLite), db.Options{})
	dead := start(t, d, "dead", Queue[job]{Hold: time.Hour})
	dead.put(t, "k", "acme")
	got, _, err := dead.claim(t.Context(), dead.queues["jobs"])
	if err != nil || len(got) != 1 {
		t.Fatal(len(got), err)
	}
	n := start(t, d, "a", Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome { return Done(finished("a", j.Key)) }})
	must(t, d, n.Restarted)
	if err := n.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if count(t, d, entries) != 0 || count(t, d, records) != 1 {
		t.Error("it is not done")
	}
}
