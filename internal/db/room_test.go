package db_test

import (
	"errors"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
)

var (
	// The ways to have no space: the file of SQLite may not grow, PostgreSQL raises
	// the error of a full disk.
	noGrowth = db.Q[int64](`PRAGMA max_page_count = 1`)
	growth   = db.Q[int64](`PRAGMA max_page_count = 1000000`)
	diskFull = db.S(`DO $$ BEGIN RAISE disk_full; END $$`)
)

// TestDiskFull holds that a write on a full disk fails with its fault, is undone, and
// does not keep a later one from being stored.
func TestDiskFull(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		createTables(t, d)
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			if tx.Engine() == db.Postgres {
				_, err := diskFull.Exec(tx)
				return err
			}
			if _, err := noGrowth.One(tx); err != nil {
				return err
			}
			return put(tx, thing{ID: strings.Repeat("large", 1<<18)})
		})
		if !fault.IsKind(err, fault.StorageFull) || fault.From(err).Slug != "storage-full" || errors.Unwrap(err) == nil {
			t.Errorf("no room: %v", err)
		}
		if !d.DiskFull() {
			t.Error("nobody can tell that there is no room")
		}
		write(t, d, func(tx *db.Tx) error {
			if tx.Engine() == db.SQLite {
				if _, err := growth.One(tx); err != nil {
					return err
				}
			}
			return put(tx, thing{ID: "small"})
		})
		if got := ids(t, d); len(got) != 1 || d.DiskFull() {
			t.Errorf("with room again: %q, no room: %t", got, d.DiskFull())
		}
	})
}
