package db_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/migrations"
)

// later is the schema of a release after this one, whose migrations have the given texts from
// version 9001 on.
func later(t *testing.T, texts ...string) fs.FS {
	t.Helper()
	files := next(t).(fstest.MapFS)
	for i, text := range texts {
		files["900"+string(rune('1'+i))+"_later.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text + "\n")}
	}
	return files
}

// A program refuses a database that a newer one has migrated, before it writes, and names both
// versions; unless each migration that it does not know says that it may go on.
func TestOlderProgramOnNewerSchema(t *testing.T) {
	t.Parallel()
	fits := func(version, oldest int) string {
		return fmt.Sprintf("INSERT INTO schema_releases (version, oldest, program) VALUES (%d, %d, '');", version, oldest)
	}
	for name, c := range map[string]struct {
		texts []string
		works bool
	}{
		"unknown":        {[]string{"ALTER TABLE schedules RENAME TO recurring;"}, false},
		"declared":       {[]string{"ALTER TABLE schedules ADD COLUMN colour TEXT; " + fits(9001, 330)}, true},
		"one of two":     {[]string{fits(9001, 330), "CREATE TABLE colours (name TEXT);"}, false},
		"both":           {[]string{fits(9001, 330), fits(9002, 330)}, true},
		"for newer ones": {[]string{fits(9001, 9000)}, false},
	} {
		for _, e := range []db.Engine{db.SQLite, db.Postgres} {
			t.Run(name+" "+e.String(), func(t *testing.T) {
				t.Parallel()
				dsn := dbtest.DSN(t, e)
				// 9000 is the pair of next, which says of itself that older programs can live with it.
				texts := append([]string{c.texts[0] + fits(9000, 330)}, c.texts[1:]...)
				d, err := db.OpenSchema(t.Context(), dsn, db.Options{Program: "7.1.0"}, later(t, texts...))
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					d, err = db.OpenSchema(t.Context(), dsn, db.Options{Program: "7.0.0"}, migrations.FS)
					if err == nil {
						d.Close()
					}
					newer, refused := errors.AsType[*db.NewerError](err)
					if refused == c.works || err != nil && !refused {
						t.Fatalf("refused: %v", err)
					}
					if refused && (newer.Program != "7.1.0" || newer.Have != int64(9000+len(texts)) || newer.Know < 330 ||
						newer.Know > 8999 ||
						!strings.Contains(err.Error(), "start yardmaster 7.1.0 again")) {
						t.Errorf("%+v: %v", newer, err)
					}
				}
			})
		}
	}
}
