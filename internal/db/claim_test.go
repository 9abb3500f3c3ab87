package db_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

var dueAt = db.Q[bool](`SELECT $1 >= 2000000`)

// A pass that finds nothing due does not write; one that does answers what it took.
func TestClaim(t *testing.T) {
	t.Parallel()
	now, writes := time.Unix(1, 0), 0
	dbtest.RunWith(t, db.Options{
		Clock: func() time.Time { return now },
		Observe: func(_ context.Context, x db.Transaction) {
			if x.Kind == "write" {
				writes++
			}
		},
	}, func(t *testing.T, d *db.DB) {
		now, writes = time.Unix(1, 0), 0
		take := func(*db.Tx) ([]string, error) { return []string{"one", "two"}, nil }
		if rows, err := db.Claim(t.Context(), d, dueAt, take); err != nil || len(rows) != 0 || writes != 0 {
			t.Errorf("nothing is due: %q after %d writes, %v", rows, writes, err)
		}
		now = time.Unix(2, 0)
		if rows, err := db.Claim(t.Context(), d, dueAt, take); err != nil || !slices.Equal(rows, []string{"one", "two"}) || writes != 1 {
			t.Errorf("something is due: %q after %d writes, %v", rows, writes, err)
		}
		failed := errors.New("failed")
		_, err := db.Claim(t.Context(), d, dueAt, func(*db.Tx) ([]string, error) { return nil, failed })
		if !errors.Is(err, failed) {
			t.Errorf("a failure is %v", err)
		}
	})
}

// Rows of one claim are worked on at the same time, claim after claim, until none are due.
func TestDrain(t *testing.T) {
	t.Parallel()
	dbtest.RunWith(t, db.Options{}, func(t *testing.T, d *db.DB) {
		claims, left := 0, 3
		met := make(chan int)
		err := db.Drain(t.Context(), d, db.Q[bool](`SELECT CAST($1 AS BIGINT) > 0`), func(*db.Tx) ([]int, error) {
			if claims++; left == 0 {
				return nil, nil
			}
			left--
			return []int{1, 2}, nil
		}, func(n int) {
			if n == 1 {
				met <- n // only beside the other
				return
			}
			<-met
		})
		if err != nil || left != 0 || claims != 4 {
			t.Errorf("%d are left after %d claims, %v", left, claims, err)
		}
		failed := errors.New("failed")
		fail := func(*db.Tx) ([]int, error) { return nil, failed }
		err = db.Drain(t.Context(), d, db.Q[bool](`SELECT CAST($1 AS BIGINT) > 0`), fail, func(int) {})
		if !errors.Is(err, failed) {
			t.Errorf("a failure is %v", err)
		}
	})
}
