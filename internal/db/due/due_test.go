package due

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// What is added is worked on and recorded with the domain's row; what is rolled back is not.
func TestOneTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		n := start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{
			Work: func(_ context.Context, j Job[job]) Outcome { return Done(finished("a", j.Key)) },
		}).run(t)
		n.put(t, "kept", "acme")
		undo := errors.New("undone")
		err := n.DB.Write(t.Context(), func(tx *db.Tx) error {
			return errors.Join(n.add(tx, "undone", "acme", Entry{}), undo)
		})
		if !errors.Is(err, undo) {
			t.Fatal(err)
		}
		soon(t, "the job", func() bool { return count(t, n.DB, records) == 1 })
		if left := count(t, n.DB, entries); left != 0 {
			t.Errorf("%d entries are left", left)
		}
		read(t, n.DB, func(tx *db.Tx) error {
			_, there, err := jobByID.Maybe(tx, "undone")
			if there {
				t.Error("what was rolled back is there")
			}
			return err
		})
	})
}

// A key that is added while it is worked on is worked on once more, and one that waits after
// a failure is not hurried.
func TestAddedAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		begun, go_ := make(chan int, 8), make(chan Outcome)
		n := start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome {
			begun <- j.Tries
			return <-go_
		}}).run(t)
		n.put(t, "k", "acme")
		<-begun
		for range 3 {
			must(t, n.DB, func(tx *db.Tx) error { n.jobs.Add(tx, "k", Entry{Account: "acme"}); return nil })
		}
		go_ <- Done(nil)
		<-begun // once more, not three times
		go_ <- Again(errors.New("busy"))
		soon(t, "the wait", func() bool { s, _ := n.state(t, "k"); return s.State == "waits" })
		must(t, n.DB, func(tx *db.Tx) error { n.jobs.Add(tx, "k", Entry{Account: "acme"}); return nil })
		if s, _ := n.state(t, "k"); s.State != "waits" || s.Why != "busy" || s.Tries != 1 {
			t.Errorf("%+v", s)
		}
		must(t, n.DB, func(tx *db.Tx) error { n.jobs.Hurry(tx, "k"); return nil })
		<-begun
		go_ <- Done(nil)
		soon(t, "the end", func() bool { _, there := n.state(t, "k"); return !there })
	})
}

// The hold is renewed while the work lasts; a worker whose hold was lost is told, and records
// nothing.
func TestRenewAndFence(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		d := dbtest.Open(t, dsn, db.Options{})
		block := make(chan bool)
		var told atomic.Value
		var renewals, calls atomic.Int64
		a := start(t, d, "a", Queue[job]{Hold: 300 * time.Millisecond, Work: func(ctx context.Context, j Job[job]) Outcome {
			if calls.Add(1) > 1 { // the same node may be the next one to have it
				return Done(finished("b", j.Key))
			}
			<-block
			<-ctx.Done()
			told.Store(context.Cause(ctx))
			return Done(finished("a", j.Key)) // too late
		}})
		a.point = func(name string) {
			if name == "renewed" && renewals.Add(1) == 6 {
				block <- true
			}
		}
		a.run(t)
		a.put(t, "k", "acme")
		soon(t, "six renewals", func() bool { return renewals.Load() >= 6 })
		if n := count(t, d, triesOf); n != 1 {
			t.Errorf("tries: %d", n)
		}
		// Another node takes it, as it would after the hold of a node that is cut off.
		must(t, d, func(tx *db.Tx) error {
			_, err := readyAll.Exec(tx)
			return err
		})
		b := start(t, d, "b", Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome { return Done(finished("b", j.Key)) }}).run(t)
		soon(t, "the other node", func() bool { return count(t, b.DB, recordsBy, "b") == 1 })
		soon(t, "that the first is told", func() bool { return told.Load() == ErrLost })
		a.end()
		if n := count(t, d, records); n != 1 {
			t.Errorf("recorded %d times", n)
		}
	})
}

// A late worker that does not look at its context is undone by the fence alone.
func TestFence(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		d := dbtest.Open(t, dsn, db.Options{})
		begun, late := make(chan bool), make(chan bool)
		a := start(t, d, "a", Queue[job]{Hold: time.Hour, Work: func(_ context.Context, j Job[job]) Outcome {
			begun <- true
			<-late
			return Done(finished("a", j.Key))
		}}).run(t)
		a.put(t, "k", "acme")
		<-begun
		must(t, d, func(tx *db.Tx) error { _, err := dropAll.Exec(tx); return err })
		must(t, d, func(tx *db.Tx) error { a.jobs.Add(tx, "k", Entry{Account: "acme"}); return nil }) // the same key, in another life
		<-begun
		late <- true // either of the two: the first life must not end the second
		late <- true
		soon(t, "the end", func() bool { return count(t, d, entries) == 0 })
		if n := count(t, d, records); n != 1 {
			t.Errorf("recorded %d times", n)
		}
	})
}
