package db_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// TestCloseFoldsTheLog holds that after Close the file alone is the whole database.
func TestCloseFoldsTheLog(t *testing.T) {
	dsn := dbtest.DSN(t, db.SQLite)
	d, err := db.Open(t.Context(), dsn, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	createTables(t, d)
	for _, id := range []string{"a", "b", "c"} {
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return put(tx, thing{ID: id}) }); err != nil {
			t.Fatal(err)
		}
	}
	ids(t, d) // readers have been at it
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	file := strings.TrimPrefix(dsn, "sqlite:")
	for _, beside := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(file + beside); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", filepath.Base(file)+beside, err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "alone.db")
	if err := os.WriteFile(alone, text, fs.FileMode(0o600)); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, dbtest.Open(t, "sqlite:"+alone, db.Options{})); strings.Join(got, "") != "abc" {
		t.Errorf("the file alone has %q", got)
	}
}
