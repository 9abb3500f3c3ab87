package db_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/migrations"
)

// again fills a database of today on each engine, runs the statements of a migration on it once
// more, and checks what became of the rows. Statements takes those out of the migration's text
// that can run twice; false: the migration is another one.
func again(t *testing.T, migration string, statements func(text string) (string, bool), fill, check func(*db.Tx) error) {
	t.Helper()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			dsn := dbtest.DSN(t, e)
			d, err := db.Open(t.Context(), dsn, db.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Write(t.Context(), fill); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			text, err := fs.ReadFile(migrations.FS, migration)
			if err != nil {
				t.Fatal(err)
			}
			whole, _, _ := strings.Cut(strings.TrimPrefix(string(text), "-- +goose Up\n"), "-- +goose Down")
			rest, ok := statements(whole)
			if !ok {
				t.Fatal("the migration is another one")
			}
			schema := next(t).(fstest.MapFS)
			schema["9001_again.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + rest)}
			if d, err = db.OpenSchema(t.Context(), dsn, db.Options{}, schema); err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if err := d.Read(t.Context(), check); err != nil {
				t.Fatal(err)
			}
		})
	}
}
