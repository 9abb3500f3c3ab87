package db_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/migrations"
)

var engineOfPair = db.Q[string](`SELECT engine FROM pair`)

// next is the real schema and one more migration, as a pair.
func next(t *testing.T) fs.FS {
	t.Helper()
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, name := range names {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	for _, e := range []string{"sqlite", "postgres"} {
		files["9000_pair."+e+".sql"] = &fstest.MapFile{Data: []byte(
			"-- +goose Up\nCREATE TABLE pair (engine TEXT NOT NULL);\nINSERT INTO pair (engine) VALUES ('" + e + "');\n")}
	}
	return files
}

func TestMigrationPairs(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			dsn, schema := dbtest.DSN(t, e), next(t)
			for _, migrated := range []bool{true, false} { // the second finds nothing to do
				var log bytes.Buffer
				d, err := db.OpenSchema(t.Context(), dsn, db.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, schema)
				if err != nil {
					t.Fatal(err)
				}
				if got := read(t, d, func(tx *db.Tx) (string, error) { return engineOfPair.One(tx) }); got != e.String() {
					t.Errorf("ran the migration of %s", got)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				if got := strings.Contains(log.String(), "schema migrated"); got != migrated {
					t.Errorf("logged %q", log.String())
				}
			}
		})
	}
}

func TestNodesThatStartTogether(t *testing.T) {
	dsn, schema := dbtest.DSN(t, db.Postgres), next(t)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			d, err := db.OpenSchema(t.Context(), dsn, db.Options{MaxConns: 2}, schema)
			if err != nil {
				t.Error(err)
				return
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestEveryMigrationOfAPairHasItsOther(t *testing.T) {
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for _, name := range names {
		for _, pair := range [][2]string{{".sqlite.", ".postgres."}, {".postgres.", ".sqlite."}} {
			if other := strings.Replace(name, pair[0], pair[1], 1); !there[other] {
				t.Errorf("%s has no %s", name, other)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, dsn := range map[string]string{
		"address must begin": "mysql://user:hunter2@127.0.0.1/x",
		"open sqlite":        "sqlite:" + t.TempDir() + "/missing/x.db",
		"open postgres":      "postgres://user:hunter2@127.0.0.1:1/x?connect_timeout=1",
	} {
		d, err := db.Open(context.Background(), dsn, db.Options{})
		if err == nil {
			t.Errorf("opened %s", dsn)
			_ = d.Close()
			continue
		}
		if !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func TestSQLiteFileIsPrivate(t *testing.T) {
	path := t.TempDir() + "/a b%3f?#.db"
	d := dbtest.Open(t, "sqlite:"+path, db.Options{})
	if err := d.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", info.Name(), info.Mode())
		}
	}
}
