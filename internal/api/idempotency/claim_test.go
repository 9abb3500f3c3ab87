package idempotency

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/patience"
)

var use = op.Use{Account: "acme", Key: "k", Print: "p"}

// timed gives both databases a clock that the test moves.
func timed(t *testing.T, fn func(t *testing.T, d *db.DB, pass func(time.Duration))) {
	var moved atomic.Int64
	start := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { return start.Add(time.Duration(moved.Load())) }
	dbtest.RunWith(t, db.Options{Clock: clock}, func(t *testing.T, d *db.DB) {
		fn(t, d, func(by time.Duration) { moved.Add(int64(by)) })
	})
}

func write(d *db.DB, ctx context.Context, name string) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		_, err := effect.Exec(tx, "effect "+name, "")
		return err
	})
}

func done(context.Context) op.Kept { return op.Kept{Status: 200, Body: []byte("{}")} }

func inFlightError(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Slug == "idempotency-in-flight" && f.Kind == fault.Conflict
}

func TestTwinInFlight(t *testing.T) {
	timed(t, func(t *testing.T, d *db.DB, _ func(time.Duration)) {
		l, other := ledger(d), ledger(d) // on two nodes, whose hubs do not talk
		other.Patience = 50 * time.Millisecond
		_, _, err := l.Once(t.Context(), use, func(ctx context.Context) op.Kept {
			if _, _, err := other.Once(t.Context(), use, done); !inFlightError(err) {
				t.Errorf("the twin is answered %v", err)
			}
			return done(ctx)
		})
		if err != nil {
			t.Error(err)
		}
		if a, replayed, err := other.Once(t.Context(), use, done); err != nil || !replayed || a.Status != 200 {
			t.Errorf("afterwards: %+v %v %v", a, replayed, err)
		}
	})
}

// TestDeadHolder holds that a claim of a dead holder is taken over if the holder
// had changed nothing, and otherwise never.
func TestDeadHolder(t *testing.T) {
	timed(t, func(t *testing.T, d *db.DB, pass func(time.Duration)) {
		l := ledger(d)
		l.Patience = time.Millisecond
		harmless, harmful := use, use
		harmful.Key = "h"
		for _, u := range []op.Use{harmless, harmful} {
			if _, stored, err := l.claim(t.Context(), u, "dead"); stored || err != nil {
				t.Fatal(stored, err)
			}
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := mark.Exec(tx, harmful.Account, harmful.Key, "dead")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Once(t.Context(), harmless, done); !inFlightError(err) {
			t.Errorf("before it counts as dead: %v", err)
		}
		pass(abandoned)
		restarted := harmless
		restarted.Key = "r"
		if _, stored, err := l.claim(t.Context(), restarted, "dead"); stored || err != nil {
			t.Fatal(stored, err)
		}
		if _, replayed, err := l.Once(t.Context(), harmless, done); err != nil || replayed {
			t.Errorf("a claim without effect: %v %v", replayed, err)
		}
		if _, _, err := l.Once(t.Context(), harmful, done); !inFlightError(err) {
			t.Errorf("a claim with effect: %v", err)
		}
		dead, other := *l, restarted
		dead.Process, other.Key = "b", "g"
		if _, stored, err := dead.claim(t.Context(), other, "b.1"); stored || err != nil {
			t.Fatal(stored, err)
		}
		for _, gone := range [][]string{{"a", "bb"}, {"a", "b"}} {
			if err := l.DB.Write(t.Context(), func(tx *db.Tx) error { return Gone(tx, gone) }); err != nil {
				t.Fatal(err)
			}
			if _, replayed, err := l.Once(t.Context(), other, done); replayed || (gone[1] == "b") != (err == nil) {
				t.Errorf("a claim, after %v are gone: %v %v", gone, replayed, err)
			}
		}
		if err := l.Restarted(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, replayed, err := l.Once(t.Context(), restarted, done); err != nil || replayed {
			t.Errorf("a claim of the server before: %v %v", replayed, err)
		}
		if _, _, err := l.Once(t.Context(), harmful, done); !inFlightError(err) {
			t.Errorf("a claim with effect of the server before: %v", err)
		}
	})
}

// TestSlowHolder holds that a slow holder cannot commit once its claim was taken
// over.
func TestSlowHolder(t *testing.T) {
	timed(t, func(t *testing.T, d *db.DB, pass func(time.Duration)) {
		l := ledger(d)
		var late error
		a, _, err := l.Once(t.Context(), use, func(ctx context.Context) op.Kept {
			pass(abandoned)
			if _, replayed, err := l.Once(t.Context(), use, func(ctx context.Context) op.Kept {
				if err := write(d, ctx, "quick"); err != nil {
					t.Error(err)
				}
				return done(ctx)
			}); err != nil || replayed {
				t.Errorf("the quick twin: %v %v", replayed, err)
			}
			late = write(d, ctx, "slow")
			return op.Kept{Status: 409}
		})
		if err != nil || a.Status != 409 || !inFlightError(late) {
			t.Errorf("the slow twin: %+v %v, its write %v", a, err, late)
		}
		if n := count(t, d); n != 1 {
			t.Errorf("%d effects", n)
		}
		if a, replayed, err := l.Once(t.Context(), use, done); err != nil || !replayed || a.Status != 200 {
			t.Errorf("what is kept: %+v %v %v", a, replayed, err)
		}
	})
}

func TestADay(t *testing.T) {
	timed(t, func(t *testing.T, d *db.DB, pass func(time.Duration)) {
		l := ledger(d)
		once := func() bool {
			_, replayed, err := l.Once(t.Context(), use, done)
			if err != nil {
				t.Fatal(err)
			}
			return replayed
		}
		if once() || !once() {
			t.Fatal("a key is not kept")
		}
		pass(kept - time.Second)
		if !once() {
			t.Error("a key is forgotten too early")
		}
		pass(time.Second)
		if once() {
			t.Error("a key is kept for more than a day")
		}
		pass(kept)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Loop(ctx) }()
		patience.Until(t, "old keys go", func() (gone bool) {
			if err := d.Read(t.Context(), func(tx *db.Tx) error {
				_, left, err := find.Maybe(tx, use.Account, use.Key)
				gone = !left
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return gone
		})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
