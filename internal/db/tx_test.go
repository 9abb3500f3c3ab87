package db_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
)

func TestTxCarriesTimeAndAccount(t *testing.T) {
	clock := func() time.Time {
		return time.Date(2031, 2, 3, 4, 5, 6, 789012345, time.FixedZone("", 3600))
	}
	dbtest.RunWith(t, db.Options{Clock: clock}, func(t *testing.T, d *db.DB) {
		ctx := db.WithAccount(t.Context(), "acme")
		for _, transact := range []func(context.Context, func(*db.Tx) error) error{d.Read, d.Write} {
			err := transact(ctx, func(tx *db.Tx) error {
				want := time.Date(2031, 2, 3, 3, 5, 6, 789012000, time.UTC)
				if tx.Now != want || db.Time(tx.Micros()) != want {
					t.Errorf("Now is %v, Micros %d", tx.Now, tx.Micros())
				}
				if tx.Account != "acme" || tx.Engine() != d.Engine() {
					t.Errorf("account %q on %v", tx.Account, tx.Engine())
				}
				failed := errors.New("failed")
				err := tx.As("other", func() error {
					if tx.Account != "other" {
						t.Errorf("about %q as the other", tx.Account)
					}
					return failed
				})
				if err != failed || tx.Account != "acme" {
					t.Errorf("%v, and then about %q", err, tx.Account)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		if err := d.Ping(ctx); err != nil {
			t.Error(err)
		}
	})
}

var errUndo = errors.New("undo")

func TestAfterCommit(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		var calls []string
		call := func(name string) func() { return func() { calls = append(calls, name) } }
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			tx.AfterCommit(call("undone"))
			return errors.Join(put(tx, thing{ID: "undone"}), errUndo)
		})
		if !errors.Is(err, errUndo) || len(calls) != 0 {
			t.Errorf("after a rollback: %v, called %v", err, calls)
		}
		write(t, d, func(tx *db.Tx) error {
			tx.AfterCommit(call("first"))
			tx.AfterCommit(func() {
				// Outside of the transaction its rows are visible, and another one
				// may begin, even with its context.
				if got := ids(t, d); len(got) != 1 {
					t.Errorf("rows %v", got)
				}
				err := d.Write(tx.Context(), func(tx *db.Tx) error { return put(tx, thing{ID: "later"}) })
				if err != nil {
					t.Error(err)
				}
				call("second")()
			})
			return put(tx, thing{ID: "kept"})
		})
		if got := strings.Join(calls, " "); got != "first second" {
			t.Errorf("called %s", got)
		}
	})
}

func TestNestedTransactionIsRefused(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		nothing := func(*db.Tx) error { return nil }
		inside := func(tx *db.Tx) error {
			for _, transact := range []func(context.Context, func(*db.Tx) error) error{d.Read, d.Write} {
				if err := transact(tx.Context(), nothing); !errors.Is(err, db.ErrNested) {
					t.Errorf("nested: %v", err)
				}
			}
			return nil
		}
		if err := d.Write(t.Context(), inside); err != nil {
			t.Error(err)
		}
		if err := d.Read(t.Context(), inside); err != nil {
			t.Error(err)
		}
	})
}

func TestFailedStatementSpoilsItsTransaction(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "a"}) })
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			if err := put(tx, thing{ID: "b"}); err != nil {
				return err
			}
			if err := put(tx, thing{ID: "a"}); !db.IsUnique(err) {
				t.Errorf("same id: %v", err)
			}
			if err := put(tx, thing{ID: "c"}); err == nil {
				t.Error("a statement ran after a failed one")
			}
			return nil
		})
		if !db.IsUnique(err) {
			t.Errorf("Write: %v", err)
		}
		if got := ids(t, d); len(got) != 1 {
			t.Errorf("rows %v, want only a", got)
		}
	})
}

func TestPanicUndoesAndPasses(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		func() {
			defer func() {
				if got := recover(); got != "boom" {
					t.Errorf("recovered %v", got)
				}
			}()
			_ = d.Write(t.Context(), func(tx *db.Tx) error {
				if err := put(tx, thing{ID: "a"}); err != nil {
					t.Error(err)
				}
				panic("boom")
			})
		}()
		write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "b"}) })
		if got := ids(t, d); len(got) != 1 || got[0] != "b" {
			t.Errorf("rows %v, want only b", got)
		}
	})
}

func TestReadSeesOneSnapshotAndChangesNothing(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		err := d.Read(t.Context(), func(tx *db.Tx) error {
			if _, err := countThings.One(tx); err != nil {
				return err
			}
			write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "a"}) })
			n, err := countThings.One(tx)
			if n != 0 {
				t.Errorf("%d rows in a snapshot of none", n)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		err = d.Read(t.Context(), func(tx *db.Tx) error { return put(tx, thing{ID: "b"}) })
		if err == nil {
			t.Error("Read wrote")
		}
		if got := ids(t, d); len(got) != 1 {
			t.Errorf("rows %v, want only a", got)
		}
	})
}

func TestContextIsHonoured(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		err := d.Write(ctx, func(tx *db.Tx) error {
			if err := put(tx, thing{ID: "a"}); err != nil {
				return err
			}
			cancel()
			return put(tx, thing{ID: "b"})
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled inside: %v", err)
		}
		for _, transact := range []func(context.Context, func(*db.Tx) error) error{d.Read, d.Write} {
			err := transact(ctx, func(*db.Tx) error {
				t.Error("ran after its context")
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled before: %v", err)
			}
		}
		if got := ids(t, d); len(got) != 0 {
			t.Errorf("rows %v, want none", got)
		}
	})
}

func TestUseAfterTheEnd(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		var kept *db.Tx
		write(t, d, func(tx *db.Tx) error {
			kept = tx
			return nil
		})
		if err := put(kept, thing{ID: "a"}); err == nil || !strings.Contains(err.Error(), "after its end") {
			t.Errorf("dead transaction: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		for _, transact := range []func(context.Context, func(*db.Tx) error) error{d.Read, d.Write} {
			if err := transact(t.Context(), func(*db.Tx) error { return nil }); !errors.Is(err, db.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
}

var (
	growThing = db.S(`UPDATE thing SET size = size + $2 WHERE id = $1`)
	sizeOf    = db.Q[int64](`SELECT size FROM thing WHERE id = $1`)
)

// TestDeadlockedWriteRunsAgain has two writers change the same rows in opposite
// order: PostgreSQL ends one of them because of the deadlock, and Write runs it
// again.
func TestDeadlockedWriteRunsAgain(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		write(t, d, func(tx *db.Tx) error { return errors.Join(put(tx, thing{ID: "a"}), put(tx, thing{ID: "b"})) })
		var (
			wg    sync.WaitGroup
			runs  = make(chan struct{}, 100)
			met   = make(chan struct{})
			start sync.WaitGroup
		)
		start.Add(2)
		go func() { start.Wait(); close(met) }()
		for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
			wg.Go(func() {
				var first sync.Once
				committed := 0
				err := d.Write(t.Context(), func(tx *db.Tx) error {
					runs <- struct{}{}
					tx.AfterCommit(func() { committed++ })
					if _, err := growThing.Exec(tx, order[0], 1); err != nil {
						return err
					}
					first.Do(func() {
						start.Done()
						if tx.Engine() == db.Postgres {
							<-met // both hold one row and want the other's
						}
					})
					_, err := growThing.Exec(tx, order[1], 10)
					return err
				})
				if err != nil || committed != 1 {
					t.Errorf("%v, AfterCommit ran %d times", err, committed)
				}
			})
		}
		wg.Wait()
		if d.Engine() == db.Postgres && len(runs) < 3 {
			t.Errorf("%d runs: nobody was run again", len(runs))
		}
		for _, id := range []string{"a", "b"} {
			if n := read(t, d, func(tx *db.Tx) (int64, error) { return sizeOf.One(tx, id) }); n != 11 {
				t.Errorf("size of %s is %d, want 11", id, n)
			}
		}
	})
}

// TestObserve holds that Observe is called for every transaction, with its outcome.
func TestObserve(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			var got []string
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Observe: func(ctx context.Context, o db.Transaction) {
				got = append(got, o.Kind+" "+o.Outcome)
				if o.Took <= 0 || o.Begun.IsZero() || o.Tries != 1 || ctx != t.Context() {
					t.Errorf("told of %+v", o)
				}
			}})
			for _, answer := range []error{nil, fault.Missing("thing"), errors.New("no")} {
				if err := d.Write(t.Context(), func(*db.Tx) error { return answer }); !errors.Is(err, answer) {
					t.Error(err)
				}
			}
			if err := d.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if err := d.Read(t.Context(), func(*db.Tx) error { return context.Canceled }); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if want := []string{"write done", "write refused", "write failed", "read done", "read cancelled"}; !slices.Equal(got, want) {
				t.Errorf("told of %q, want %q", got, want)
			}
		})
	}
}
