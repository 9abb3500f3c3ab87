package db_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/migrations"
)

var update = flag.Bool("update", false,
	"write schema/sqlite.sql and the image of it from the migrations, and add new ones to testdata/migrations.txt")

// empty opens a database with nothing in it.
func empty(t *testing.T, e db.Engine) *sql.DB {
	t.Helper()
	driver, at := "sqlite", "file:"+url.PathEscape(t.TempDir()+"/empty.db")+"?_txlock=immediate&_busy_timeout=60000"
	if e == db.Postgres {
		driver, at = "pgx", dbtest.DSN(t, e)
	}
	pool, err := sql.Open(driver, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	if e == db.Postgres {
		if _, err := pool.Exec(`DROP SCHEMA public CASCADE; CREATE SCHEMA public`); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// list runs a query and returns its rows, each as one line.
func list(t *testing.T, pool *sql.DB, query string) (out []string) {
	t.Helper()
	rows, err := pool.Query(query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, to := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		words := make([]string, len(names))
		for i, v := range values {
			if words[i] = v.String; !v.Valid {
				words[i] = "NULL"
			}
		}
		out = append(out, strings.Join(words, " | "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// tables, and everything else that a schema is made of, by the engine's own catalog.
var (
	tables = [...]string{
		db.SQLite:   `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`,
		db.Postgres: `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`,
	}
	objects = [...][]string{
		db.SQLite: {`SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name`},
		db.Postgres: {
			`SELECT 'relation', c.relname, c.relkind, c.relpersistence, c.reloptions::TEXT,
				pg_get_viewdef(CASE WHEN c.relkind IN ('v', 'm') THEN c.oid END)
				FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace ORDER BY c.relname`,
			`SELECT 'column', c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
				a.attgenerated, a.attisdropped, a.attcollation::regcollation, a.attstorage, pg_get_expr(d.adbin, d.adrelid)
				FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
				WHERE c.relnamespace = 'public'::regnamespace AND c.relkind <> 'i' AND a.attnum > 0 ORDER BY c.relname, a.attnum`,
			`SELECT 'constraint', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid), c.condeferrable, c.condeferred, c.convalidated
				FROM pg_constraint c WHERE c.connamespace = 'public'::regnamespace ORDER BY 2, 3`,
			`SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 2`,
			`SELECT 'trigger', pg_get_triggerdef(g.oid) FROM pg_trigger g WHERE NOT g.tgisinternal ORDER BY 2`,
			`SELECT 'function', pg_get_functiondef(p.oid) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace ORDER BY 2`,
			`SELECT 'type', t.typname, t.typtype FROM pg_type t WHERE t.typnamespace = 'public'::regnamespace ORDER BY 2`,
			`SELECT 'sequence', sequencename, start_value, increment_by, last_value FROM pg_sequences WHERE schemaname = 'public' ORDER BY 2`,
		},
	}
)

// told lists a whole database: its objects by its catalog, and the rows of its tables. The
// times at which migrations were applied are left out.
func told(t *testing.T, e db.Engine, pool *sql.DB) (out []string) {
	t.Helper()
	for _, query := range objects[e] {
		out = append(out, list(t, pool, query)...)
	}
	for _, table := range list(t, pool, tables[e]) {
		columns := "*"
		if table == "goose_db_version" {
			columns = "id, version_id, is_applied"
		}
		for _, row := range list(t, pool, fmt.Sprintf(`SELECT %s FROM %q ORDER BY 1`, columns, table)) {
			out = append(out, "row of "+table+": "+row)
		}
	}
	return out
}

// A new database is, on both engines, what the migrations make of an empty one: tables,
// columns, types, defaults, indexes, constraints, triggers, rows, and the record of what was
// applied.
func TestNewDatabaseEqualsMigrated(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			ladder, step, log := empty(t, e), empty(t, e), slog.New(slog.DiscardHandler)
			if err := db.Climb(t.Context(), ladder, e, migrations.FS, log); err != nil {
				t.Fatal(err)
			}
			if e == db.SQLite && *update {
				text := script(t, ladder)
				if err := errors.Join(os.WriteFile("schema/sqlite.sql", []byte(text), 0o644),
					os.WriteFile("schema/sqlite.db.zst", image(t, text), 0o644)); err != nil {
					t.Fatal(err)
				}
				return // this binary still has the image from before
			}
			if err := db.Begin(t.Context(), step, e, migrations.FS, log); err != nil {
				t.Fatal(err)
			}
			want, got := told(t, e, ladder), told(t, e, step)
			if e == db.SQLite {
				if text, err := os.ReadFile("schema/sqlite.sql"); err != nil || string(text) != script(t, step) {
					t.Error("schema/sqlite.sql is not what a new database has", err)
				}
				if wrong := list(t, step, `PRAGMA integrity_check`); !slices.Equal(wrong, []string{"ok"}) {
					t.Error(wrong)
				}
			}
			if len(want) < 500 {
				t.Errorf("the migrations make only %d things", len(want))
			}
			for _, what := range want {
				if !slices.Contains(got, what) {
					t.Errorf("a new database lacks %s", what)
				}
			}
			for _, what := range got {
				if !slices.Contains(want, what) {
					t.Errorf("a new database has %s, which the migrations do not make", what)
				}
			}
			if t.Failed() && e == db.SQLite {
				t.Error("go test ./internal/db -run TestNewDatabaseEqualsMigrated -update writes it from the migrations")
			}
		})
	}
}

// script writes a migrated SQLite database as statements: objects in the order in which they
// were made, then the rows of the tables.
func script(t *testing.T, pool *sql.DB) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("-- Written by: go test ./internal/db -run TestNewDatabaseEqualsMigrated -update\n")
	const made = ` FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' `
	for _, text := range list(t, pool, `SELECT sql`+made+`ORDER BY rowid`) {
		b.WriteString(text + ";\n")
	}
	for _, table := range list(t, pool, `SELECT name`+made+`AND type = 'table' ORDER BY rowid`) {
		columns := list(t, pool, fmt.Sprintf(`SELECT name FROM pragma_table_info('%s') ORDER BY cid`, table))
		columns = slices.DeleteFunc(columns, func(name string) bool { return table == "goose_db_version" && name == "tstamp" })
		query := "SELECT quote(" + strings.Join(columns, ") || ', ' || quote(") + ") FROM " + table
		for _, row := range list(t, pool, query) {
			fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES (%s);\n", table, strings.Join(columns, ", "), row)
		}
	}
	return b.String()
}

// image packs the file that SQLite makes of a script. Its bytes depend on the script and on the
// version of SQLite alone.
func image(t *testing.T, script string) []byte {
	t.Helper()
	at := t.TempDir() + "/image.db"
	pool, err := sql.Open("sqlite", "file:"+url.PathEscape(at)+"?_pragma=page_size(4096)&_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	for _, text := range []string{"BEGIN", script, `UPDATE goose_db_version SET tstamp = '2000-01-01 00:00:00'`, "COMMIT"} {
		if _, err := pool.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(256<<10),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(file)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// Nodes that start together on an empty database get one schema.
func TestNodesThatBeginTogether(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			pool, log := empty(t, e), slog.New(slog.DiscardHandler)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := db.Begin(context.WithoutCancel(t.Context()), pool, e, migrations.FS, log); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			applied := list(t, pool, `SELECT version_id FROM goose_db_version`)
			if unique := slices.Compact(slices.Sorted(slices.Values(applied))); len(applied) < 80 || len(unique) != len(applied) {
				t.Errorf("%d migrations are recorded, %d of them once", len(applied), len(unique))
			}
		})
	}
}

// A database that has anything in it does not begin anew.
func TestWhatHasTablesIsLeftToMigrations(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			pool := empty(t, e)
			if _, err := pool.Exec(`CREATE TABLE somebodys (id TEXT)`); err != nil {
				t.Fatal(err)
			}
			if err := db.Begin(t.Context(), pool, e, migrations.FS, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if got := list(t, pool, tables[e]); !slices.Equal(got, []string{"somebodys"}) {
				t.Errorf("it has %q", got)
			}
		})
	}
}
