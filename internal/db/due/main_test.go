package due

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/patience"
)

func TestMain(m *testing.M) {
	if os.Getenv("DUE_CHILD") != "" {
		child()
		return
	}
	dbtest.Main(m)
}

// Every statement of the package is one that both engines take. Those of the tests are about
// tables that only the tests have.
func TestStatements(t *testing.T) {
	all := slices.DeleteFunc(db.Declared(), func(d db.Declaration) bool {
		return !strings.HasPrefix(d.At, "due/") || strings.Contains(d.At, "_test.go:")
	})
	if len(all) < 8 {
		t.Errorf("only %d statements were found", len(all))
	}
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		for _, err := range dbtest.Check(t, e, dbtest.DSN(t, e), all) {
			t.Error(err)
		}
	}
}

// onBoth runs fn on each engine, on a database with the tables of the tests' domain.
func onBoth(t *testing.T, fn func(t *testing.T, dsn string)) {
	t.Helper()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { fn(t, database(t, e)) })
	}
}

// database makes a database with what a domain has: its row, and a record that would show an
// outcome twice.
func database(t testing.TB, e db.Engine) string {
	t.Helper()
	dsn := dbtest.DSN(t, e)
	driver, at := "sqlite", strings.TrimPrefix(dsn, "sqlite:")
	if e == db.Postgres {
		driver, at = "pgx", dsn
	}
	pool, err := sql.Open(driver, at)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, text := range []string{
		`CREATE TABLE jobs (id TEXT PRIMARY KEY, account TEXT NOT NULL, state TEXT NOT NULL, line TEXT NOT NULL DEFAULT '')`,
		`CREATE TABLE records (id TEXT PRIMARY KEY, by_node TEXT NOT NULL)`,
		`CREATE TABLE columned (id TEXT PRIMARY KEY, state TEXT NOT NULL, due_at BIGINT, tries BIGINT NOT NULL DEFAULT 0)`,
		`CREATE INDEX columned_due ON columned (due_at) WHERE due_at IS NOT NULL`,
	} {
		if _, err := pool.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return dsn
}

var (
	insertJob  = db.S(`INSERT INTO jobs (id, account, state) VALUES ($1, $2, 'due')`)
	insertHead = db.S(`INSERT INTO jobs (id, account, state, line) VALUES ($1, 'acme', 'due', $2)`)
	jobByID    = db.Q[job](`SELECT id, account, state FROM jobs WHERE id = $1`)
	headOf     = db.Q[job](`SELECT id, account, state FROM jobs WHERE line = $1 AND state = 'due' ORDER BY id LIMIT 1`)
	openJobs   = db.Q[Open](`SELECT id AS key, account FROM jobs WHERE state = 'due' LIMIT $1`)
	endJob     = db.S(`UPDATE jobs SET state = $2 WHERE id = $1`)
	lengthen   = db.S(`UPDATE jobs SET line = line || '.' WHERE id = $1`)
	note       = db.S(`INSERT INTO records (id, by_node) VALUES ($1, $2)`)
	nowhere    = db.S(`INSERT INTO nowhere VALUES (1)`)
	dropJobs   = db.S(`DELETE FROM jobs`)
	dropNotes  = db.S(`DELETE FROM records`)
	dropAll    = db.S(`DELETE FROM due`)
	readyAll   = db.S(`UPDATE due SET state = 'ready', due_at = 1`)
	triesOf    = db.Q[int64](`SELECT tries FROM due`)
	entries    = db.Q[int64](`SELECT COUNT(*) FROM due`)
	heldBy     = db.Q[int64](`SELECT COUNT(*) FROM due WHERE state = 'held' AND holder = $1`)
	asides     = db.Q[int64](`SELECT COUNT(*) FROM due WHERE state = 'aside'`)
	records    = db.Q[int64](`SELECT COUNT(*) FROM records`)
	recordsBy  = db.Q[int64](`SELECT COUNT(*) FROM records WHERE by_node = $1`)
	tinyOnes   = db.Q[int64](`SELECT COUNT(*) FROM records WHERE id LIKE 't%'`)
	jobsIn     = db.Q[int64](`SELECT COUNT(*) FROM jobs WHERE state = $1`)
)

// job is the domain's row.
type job struct {
	ID      string `db:"id"`
	Account string
	State   string
}

func loadJob(tx *db.Tx, key string) (job, bool, error) {
	j, ok, err := jobByID.Maybe(tx, key)
	return j, ok && j.State == "due", err
}

// finished records that a job is over. A second time fails.
func finished(node, key string) func(*db.Tx) error {
	return func(tx *db.Tx) error {
		if _, err := endJob.Exec(tx, key, "done"); err != nil {
			return err
		}
		_, err := note.Exec(tx, key, node)
		return err
	}
}

// node is a kernel with the queue of jobs.
type node struct {
	*Kernel
	jobs Entries
	stop context.CancelFunc
	over chan struct{}
}

func start(t testing.TB, d *db.DB, name string, q Queue[job]) *node {
	t.Helper()
	n := &node{Kernel: New(Config{DB: d, Hub: event.NewHub(), Logger: slog.New(slog.DiscardHandler)}), over: make(chan struct{})}
	n.Kernel.node = name
	if q.Name == "" {
		q.Name = "jobs"
	}
	if q.Load == nil {
		q.Load = loadJob
	}
	q.Open = openKeys
	n.jobs = Register(n.Kernel, q)
	return n
}

func openKeys(tx *db.Tx, most int) ([]Open, error) { return openJobs.All(tx, most) }

func (n *node) run(t testing.TB) *node {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	n.stop = stop
	go func() {
		defer close(n.over)
		if err := n.Loop(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(n.end)
	return n
}

func (n *node) end() { n.stop(); <-n.over }

func (n *node) put(t testing.TB, key, account string) {
	t.Helper()
	must(t, n.DB, func(tx *db.Tx) error { return n.add(tx, key, account, Entry{Account: account}) })
}

func (n *node) add(tx *db.Tx, key, account string, e Entry) error {
	_, err := insertJob.Exec(tx, key, account)
	n.jobs.Add(tx, key, e)
	return err
}

func (n *node) state(t testing.TB, key string) (s State, ok bool) {
	t.Helper()
	read(t, n.DB, func(tx *db.Tx) (err error) { s, ok, err = n.jobs.State(tx, key); return err })
	return s, ok
}

func must(t testing.TB, d *db.DB, fn func(*db.Tx) error) {
	t.Helper()
	if err := d.Write(context.WithoutCancel(t.Context()), fn); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, d *db.DB, fn func(*db.Tx) error) {
	t.Helper()
	if err := d.Read(context.WithoutCancel(t.Context()), fn); err != nil {
		t.Fatal(err)
	}
}

func count(t testing.TB, d *db.DB, q db.Query[int64], args ...any) (n int64) {
	t.Helper()
	read(t, d, func(tx *db.Tx) (err error) { n, err = q.One(tx, args...); return err })
	return n
}

func soon(t testing.TB, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, what, ok)
}
