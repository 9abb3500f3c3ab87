// Package dbtest gives tests real databases: each test its own, with the schema
// applied. SQLite is a file in the test's folder. PostgreSQL is one throwaway
// cluster for each test process, or the one that YARDMASTER_TEST_POSTGRES names
// (the address of a superuser), so that a run over many packages starts only one. A
// test never skips: without PostgreSQL's programs it fails.
package dbtest

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/seal"
)

// Run runs fn as the subtests "sqlite" and "postgres", each with a database of its
// own.
func Run(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	RunWith(t, db.Options{}, fn)
}

// RunWith is Run with options, for a test that sets the clock.
func RunWith(t *testing.T, o db.Options, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { fn(t, Open(t, DSN(t, e), o)) })
	}
}

// SQLite returns a fresh SQLite database, for tests that do not depend on the
// engine.
func SQLite(t testing.TB) *db.DB {
	t.Helper()
	return Open(t, DSN(t, db.SQLite), db.Options{})
}

// Open opens a database until the test ends. A test may open one DSN several times,
// as several nodes would.
func Open(t testing.TB, dsn string, o db.Options) *db.DB {
	t.Helper()
	if o.MaxConns == 0 {
		o.MaxConns = 8 // many tests share the cluster
	}
	d, err := db.Open(context.Background(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// DSN returns the address of a fresh database with the schema applied.
func DSN(t testing.TB, e db.Engine) string {
	t.Helper()
	if e == db.Postgres {
		return postgresDatabase(t)
	}
	schema, err := sqliteTemplate()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "test.db")
	if err := os.WriteFile(path, schema, 0o600); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path
}

// sqliteTemplate returns the file of a database with the schema applied.
var sqliteTemplate = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "yardmaster-sqlite-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "template.db")
	d, err := db.Open(context.Background(), "sqlite:"+path, db.Options{})
	if err != nil {
		return nil, err
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Main runs the tests of a package and stops the cluster before the process ends.
// Without Main the cluster stops a moment after the process. It also calls each of last.
// Passwords of these tests cost next to nothing: hundreds of control planes are entered.
// The collector runs less often, unless GOGC is set: tests let go of most of what they make
// when they end, and collecting was a sixth of their time.
// It fails if SQLite compiles a statement anew as a rule when it is run.
func Main(m *testing.M, last ...func()) {
	seal.ForTests()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(2 << 30) // near it, it runs as often as it must
	}
	again.texts = map[string]runs{}
	db.TellClosing(countAgain)
	code := m.Run()
	for _, end := range last {
		end()
	}
	if toldAgain() {
		code = max(code, 1)
	}
	cluster.stop()
	os.Exit(code)
}
