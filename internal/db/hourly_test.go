package db_test

import (
	"errors"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// What is done hourly is done at the start, an hour later, and when the clock was set back;
// a failure is not repeated at once.
func TestHourly(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	d := dbtest.Open(t, dbtest.DSN(t, db.SQLite), db.Options{Clock: func() time.Time { return now }})
	var h db.Hourly
	runs, fails := 0, false
	do := func() error {
		return h.Do(t.Context(), d, func(*db.Tx) error {
			runs++
			if fails {
				return errors.New("full")
			}
			return nil
		})
	}
	for i, step := range []struct {
		after time.Duration
		fails bool
		runs  int
	}{
		{0, false, 1}, {0, false, 1}, {59 * time.Minute, false, 1}, {time.Minute, true, 2}, {30 * time.Minute, false, 2},
		{30 * time.Minute, false, 3}, {-2 * time.Hour, false, 4}, {time.Minute, false, 4},
	} {
		now = now.Add(step.after)
		fails = step.fails
		if err := do(); (err != nil) != step.fails || runs != step.runs {
			t.Errorf("step %d: %d runs, %v", i, runs, err)
		}
	}
}
