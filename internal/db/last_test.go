package db_test

import (
	"errors"
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// TestTurns holds that steps run in the order of their turns, whichever was added
// to first, and again if an earlier step adds to them.
func TestTurns(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		var took []string
		late := db.AtEnd(db.Third, func(*db.Tx, []int) error { took = append(took, "late"); return nil })
		middle := db.AtEnd(db.Second, func(tx *db.Tx, _ []int) error { took = append(took, "middle"); late.Add(tx, 2); return nil })
		early := db.AtEnd(db.First, func(tx *db.Tx, _ []int) error { took = append(took, "early"); middle.Add(tx, 2); return nil })
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			late.Add(tx, 1)
			early.Add(tx, 1)
			return nil
		})
		if err != nil || !slices.Equal(took, []string{"early", "middle", "late"}) {
			t.Errorf("%v, %v", took, err)
		}
	})
}

// TestAtEnd holds that the values of a step are handled once, together, at the end.
func TestAtEnd(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		var calls [][]int
		refuse := errors.New("refused")
		var fail error
		told := 0
		step := db.AtEnd(db.First, func(tx *db.Tx, all []int) error {
			calls = append(calls, all)
			tx.AfterCommit(func() { told++ })
			if err := tx.Context().Err(); err != nil {
				return err
			}
			return fail
		})
		write := func(fn func(tx *db.Tx) error) error { return d.Write(t.Context(), fn) }
		add := func(err error) func(*db.Tx) error {
			return func(tx *db.Tx) error {
				step.Add(tx, 1)
				step.Add(tx, 2)
				if len(calls) != 0 {
					t.Error("the step was taken before the end")
				}
				return err
			}
		}
		if err := write(add(refuse)); !errors.Is(err, refuse) || calls != nil {
			t.Errorf("after a failure: %v, %v", calls, err)
		}
		if err := write(add(nil)); err != nil || len(calls) != 1 || !slices.Equal(calls[0], []int{1, 2}) {
			t.Errorf("%v, %v", calls, err)
		}
		if told != 1 {
			t.Errorf("what a step owes to the commit was done %d times", told)
		}
		calls, fail = nil, refuse
		committed := false
		err := write(func(tx *db.Tx) error {
			tx.AfterCommit(func() { committed = true })
			return add(nil)(tx)
		})
		if !errors.Is(err, refuse) || committed || told != 1 {
			t.Errorf("a step that fails: committed %t, %v", committed, err)
		}
	})
}
