package db_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// TestWhoFailsHalfwayIsUndoneAlone holds that a writer without a savepoint that
// fails halfway makes its group run again without losing anything, and that one
// that has changed nothing disturbs no other.
func TestWhoFailsHalfwayIsUndoneAlone(t *testing.T) {
	const n, bad = 6, 3
	for name, changed := range map[string]bool{"after a change": true, "before any": false} {
		t.Run(name, func(t *testing.T) {
			d := dbtest.SQLite(t)
			createTables(t, d)
			runs := make([]int, n)
			errs := line(t, d, n, func(tx *db.Tx, i int) error {
				runs[i]++
				if i == bad && !changed {
					return errUndo
				}
				if err := put(tx, thing{ID: fmt.Sprint(i)}); err != nil {
					return err
				}
				if i == bad {
					return errUndo
				}
				return nil
			})
			again := 0
			for i, err := range errs {
				if errors.Is(err, errUndo) != (i == bad) || err != nil && i != bad {
					t.Errorf("writer %d: %v", i, err)
				}
				if i < n && runs[i] > 1 {
					again++
				}
			}
			if got := ids(t, d); len(got) != n-1 || slices.Contains(got, fmt.Sprint(bad)) {
				t.Errorf("rows %v", got)
			}
			if (again > 0) != changed {
				t.Errorf("%d writers ran again", again)
			}
		})
	}
}

// TestConflictAtFirstDisturbsNobody holds that no writer runs again if the first
// change of one violates a constraint, because that undoes only its own statement.
func TestConflictAtFirstDisturbsNobody(t *testing.T) {
	d := dbtest.SQLite(t)
	createTables(t, d)
	write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "2"}) })
	const n = 5
	runs := 0
	for i, err := range line(t, d, n, func(tx *db.Tx, i int) error {
		runs++
		return put(tx, thing{ID: fmt.Sprint(i)})
	}) {
		if db.IsUnique(err) != (i == 2) || err != nil && i != 2 {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if got := ids(t, d); len(got) != n || runs != n {
		t.Errorf("rows %v after %d runs", got, runs)
	}
}

// TestCounterOfAGroup holds that the writers of a commit write their changes of a
// counter together, that each sees the changes of those before it beside its own, and
// that only the writer whose change makes the write fail fails.
func TestCounterOfAGroup(t *testing.T) {
	d := dbtest.SQLite(t)
	createTables(t, d)
	var calls [][]int
	refuse, refused := errors.New("refused"), -1
	step := db.CountAtEnd(db.First, func(tx *db.Tx, all []int) error {
		calls = append(calls, all)
		if slices.Contains(all, refused) {
			return refuse
		}
		for _, v := range all {
			if err := put(tx, thing{ID: fmt.Sprint("step ", v)}); err != nil {
				return err
			}
		}
		return nil
	})
	const n = 4
	ahead := make([]int, n)
	fn := func(from int) func(tx *db.Tx, i int) error {
		return func(tx *db.Tx, i int) error {
			step.Add(tx, from+i)
			ahead[i] = 0
			for range step.Unwritten(tx) {
				ahead[i]++
			}
			if own := step.Added(tx); !slices.Equal(own, []int{from + i}) {
				t.Errorf("writer %d has added %v", i, own)
			}
			return put(tx, thing{ID: fmt.Sprint(from + i)})
		}
	}
	for i, err := range line(t, d, n, fn(0)) {
		if err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if len(calls) != 1 || len(calls[0]) != n {
		t.Errorf("the step was taken with %v, want once with all", calls)
	}
	if slices.Sort(ahead); !slices.Equal(ahead, []int{0, 1, 2, 3}) {
		t.Errorf("writers saw %v ahead", ahead)
	}
	if got := ids(t, d); len(got) != 2*n {
		t.Errorf("rows %v", got)
	}

	refused = 12
	for i, err := range line(t, d, n, fn(10)) {
		if errors.Is(err, refuse) != (i == 2) || err != nil && i != 2 {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	got := ids(t, d)
	if len(got) != 4*n-2 || slices.Contains(got, "12") || slices.Contains(got, "step 12") {
		t.Errorf("rows %v", got)
	}
}

var (
	keptSize = db.Q[int64](`SELECT n FROM thing WHERE id = $1`).Kept()
	resize   = db.S(`UPDATE thing SET n = $2 WHERE id = $1`)
	dropped  = db.S(`DELETE FROM thing WHERE id = $1`)
	// resizeBy names another table before the one that it changes.
	resizeBy = db.S(`WITH one (n) AS (SELECT COUNT(*) + 1 FROM owner WHERE FALSE)
		UPDATE thing SET n = thing.n + one.n FROM one WHERE id = $1`)
)

// TestKept holds that kept rows are those of the database, whichever writer has
// changed them.
func TestKept(t *testing.T) {
	dsn := dbtest.DSN(t, db.SQLite)
	d, other := dbtest.Open(t, dsn, db.Options{}), dbtest.Open(t, dsn, db.Options{})
	createTables(t, d)
	write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "a", Count: 1}) })
	size := func(tx *db.Tx) int64 {
		n, ok, err := keptSize.Maybe(tx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return -1
		}
		return n
	}
	is := func(want int64, when string) {
		t.Helper()
		write(t, d, func(tx *db.Tx) error {
			for range 2 { // read, and kept
				if n := size(tx); n != want {
					t.Errorf("%s: %d, want %d", when, n, want)
				}
			}
			return nil
		})
	}
	set := func(on *db.DB, n int64, fail error) {
		t.Helper()
		err := on.Write(t.Context(), func(tx *db.Tx) error {
			before := size(tx)
			if _, err := resize.Exec(tx, "a", n); err != nil {
				return err
			}
			if got := size(tx); got != n || before == n {
				t.Errorf("in the transaction that makes it %d: %d", n, got)
			}
			return fail
		})
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
	}
	is(1, "at first")
	set(d, 2, nil)
	is(2, "after a change")
	set(d, 3, errUndo)
	is(2, "after one that was undone")
	set(other, 4, nil)
	is(4, "after that of another process")
	write(t, d, func(tx *db.Tx) error {
		_, err := resizeBy.Exec(tx, "a")
		return err
	})
	is(5, "after a statement that reads another table first")
	write(t, d, func(tx *db.Tx) error {
		_, err := dropped.Exec(tx, "a")
		return err
	})
	is(-1, "after it is gone")
	if err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := keptSize.One(tx, 1)
		return err
	}); err == nil {
		t.Error("a parameter that is no text was taken")
	}
}
