package db_test

import (
	"errors"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
)

// A transaction that waits for another one's lock for longer than its caller does is refused, and undone.
func TestPatienceOfATransaction(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.DSN(t, db.Postgres), db.Options{})
	lock := func(tx *db.Tx) error {
		_, err := db.Select[string](tx, db.Build(`SELECT pg_advisory_xact_lock(1)::TEXT`))
		return err
	}
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		if err := lock(tx); err != nil {
			return err
		}
		err := d.Write(db.WithPatience(t.Context(), 50*time.Millisecond), lock)
		if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Kind != fault.Unavailable || f.RetryAfter == 0 {
			t.Errorf("the other one ends with %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(db.WithPatience(t.Context(), time.Hour), lock); err != nil {
		t.Error(err)
	}
}

// The server ends a transaction whose client says nothing.
func TestSilentTransactionsEnd(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.DSN(t, db.Postgres), db.Options{})
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		all, err := db.Select[string](tx, db.Build(`SHOW idle_in_transaction_session_timeout`))
		if err == nil && (len(all) != 1 || all[0] != "10s") {
			t.Errorf("after %v", all)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
