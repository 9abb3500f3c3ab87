package hostlimit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/pace"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// yard is two nodes of a server, with a clock that waiting moves.
type yard struct {
	t     *testing.T
	db    *db.DB
	nodes [2]pace.Limits

	mu  sync.Mutex
	now time.Time
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *yard) later(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

// Wait implements pace.Waiter.
func (y *yard) Wait(_ context.Context, d time.Duration) error {
	y.later(d)
	return nil
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := &yard{t: t, now: time.Unix(1_800_000_000, 0)}
			y.db = dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.clock})
			for i := range y.nodes {
				y.nodes[i] = New(Needs{DB: y.db, Logger: slog.New(slog.DiscardHandler), Waiter: y}).Of("elsewhere")
			}
			fn(t, y)
		})
	}
}

// after is how long a node is to wait for a call; 0: it may call.
func (y *yard) after(node int, c pace.Cost) time.Duration {
	y.t.Helper()
	err := y.nodes[node].Take(y.t.Context(), "a", c)
	if err == nil {
		return 0
	}
	busy, is := errors.AsType[*codehost.BusyError](err)
	if !is || !busy.Limit {
		y.t.Fatal(err)
	}
	return busy.After
}

// What blocks one node blocks the other, for so long; another payer, and another host,
// may call.
func TestBlockedTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.nodes[0].Note("a", pace.Note{Blocked: time.Minute})
		y.nodes[1].Note("a", pace.Note{Blocked: time.Second}) // of a call that began before
		people := pace.Cost{Urgency: codehost.ForPeople}
		for node := range y.nodes {
			if got := y.after(node, people); got != time.Minute {
				t.Errorf("node %d waits %s", node, got)
			}
		}
		if err := y.nodes[1].Take(t.Context(), "b", people); err != nil {
			t.Errorf("another payer: %v", err)
		}
		y.later(time.Minute)
		if got := y.after(1, people); got != 0 {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// An hour that is used up for one node is used up for both, by resource; the answers come
// in any order.
func TestHoursTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		reset := y.now.Add(10 * time.Minute)
		note := func(node, remaining int, reset time.Time) {
			y.nodes[node].Note("a", pace.Note{Resource: pace.Core, Limit: 5000, Remaining: remaining, Reset: reset})
		}
		note(0, 0, reset)
		note(1, 4000, reset)                 // an answer that was on its way
		note(1, 4000, reset.Add(-time.Hour)) // of the hour before
		for node := range y.nodes {
			if got := y.after(node, pace.Cost{Urgency: codehost.ForPeople}); got != 10*time.Minute {
				t.Errorf("node %d waits %s", node, got)
			}
		}
		if got := y.after(1, pace.Cost{Resource: "graphql"}); got != 0 {
			t.Errorf("another resource waits %s", got)
		}
		y.later(10 * time.Minute)
		note(0, 4999, reset.Add(time.Hour))
		if got := y.after(1, pace.Cost{Urgency: codehost.ForSweeps}); got != 0 {
			t.Errorf("the next hour: %s", got)
		}
		note(1, 2400, reset.Add(time.Hour))
		sweeps, reviews := y.after(0, pace.Cost{Urgency: codehost.ForSweeps}), y.after(0, pace.Cost{Urgency: codehost.ForReviews})
		if sweeps == 0 || reviews != 0 {
			t.Errorf("below half: sweeps wait %s, reviews %s", sweeps, reviews)
		}
	})
}

// The writes of both nodes are a second apart, and what they make is counted together.
func TestWritesTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		start := y.clock()
		content := pace.Cost{Write: true, Content: true, Urgency: codehost.ForReviews}
		n := 0
		for ; y.after(n%2, content) == 0; n++ {
		}
		if n != 350 || y.clock().Sub(start) != 349*time.Second {
			t.Errorf("%d in %s", n, y.clock().Sub(start))
		}
		if got := y.after(0, pace.Cost{Write: true, Content: true, Urgency: codehost.ForPeople}); got != 0 {
			t.Errorf("people wait %s", got)
		}
		if got := y.after(1, pace.Cost{Write: true, Urgency: codehost.ForReviews}); got != 0 {
			t.Errorf("a write that makes nothing waits %s", got)
		}
	})
}

// What is noted is not stored at every call; what is left is known to the node all the
// same.
func TestNotesAreStoredTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		stored := func() (n int) {
			if err := y.db.Read(t.Context(), func(tx *db.Tx) error {
				rows, err := hoursOf.All(tx, "elsewhere", "a")
				if err == nil && len(rows) == 1 {
					n = rows[0].Remaining
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return n
		}
		reset := y.now.Add(time.Hour)
		note := func(remaining int) {
			y.nodes[0].Note("a", pace.Note{Resource: pace.Core, Limit: 5000, Remaining: remaining, Reset: reset})
		}
		for remaining := 2550; remaining >= 2460; remaining-- {
			note(remaining)
		}
		if n := stored(); n != 2550 {
			t.Errorf("%d are stored", n)
		}
		if y.after(0, pace.Cost{Urgency: codehost.ForSweeps}) == 0 {
			t.Error("the node that was told does not know")
		}
		note(2450)
		if n := stored(); n != 2450 {
			t.Errorf("%d are stored after a fiftieth", n)
		}
		y.later(saveEvery)
		note(2449)
		if n := stored(); n != 2449 {
			t.Errorf("%d are stored after %s", n, saveEvery)
		}
		note(0)
		if n := stored(); n != 0 {
			t.Errorf("%d are stored at the end", n)
		}
	})
}

// A clock that was set back blocks nobody, and what is old is forgotten.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.nodes[0].Note("a", pace.Note{Blocked: time.Hour, Resource: pace.Core, Limit: 10, Remaining: 0, Reset: y.now.Add(time.Hour)})
		y.later(-48 * time.Hour)
		if err := y.db.Write(t.Context(), ClockSetBack); err != nil {
			t.Fatal(err)
		}
		if got := y.after(1, pace.Cost{Write: true, Urgency: codehost.ForPeople}); got != 0 {
			t.Errorf("it waits %s", got)
		}
		y.nodes[1].Note("a", pace.Note{Resource: pace.Core, Limit: 10, Remaining: 9, Reset: y.now.Add(time.Hour)})
		y.later(2*forgotten + time.Hour)
		y.nodes[1].Note("b", pace.Note{Blocked: time.Second})
		if err := y.db.Read(t.Context(), func(tx *db.Tx) error {
			s, err := read(tx, "elsewhere", "a")
			if len(s.Hours) > 0 || !s.NextWrite.IsZero() {
				t.Errorf("%+v is kept", s)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	})
}

// A refusal that names no time blocks both nodes for a minute, and the next for two,
// whichever node it reaches; that two nodes are refused together counts once.
func TestRefusedTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		people := pace.Cost{Urgency: codehost.ForPeople}
		for i, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
			y.nodes[i%2].Note("a", pace.Note{Refused: true})
			y.nodes[(i+1)%2].Note("a", pace.Note{Refused: true})
			for node := range y.nodes {
				if got := y.after(node, people); got != want {
					t.Errorf("refusal %d: node %d waits %s, want %s", i+1, node, got, want)
				}
			}
			y.later(want)
			if got := y.after(1, people); got != 0 {
				t.Errorf("afterwards: %s", got)
			}
		}
	})
}
