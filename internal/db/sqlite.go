package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

const (
	readers = 4
	// maxStatements limits the prepared statements of one connection. There are a
	// few hundred declared ones; built ones vary with their filters.
	maxStatements = 512
)

// sqliteBackend has one connection that writes, shared by group commit, and a few
// that read snapshots meanwhile (WAL).
type sqliteBackend struct {
	path    string // of the file
	writer  *groupWriter
	readers chan struct{} // one for each idle connection that reads
	pools   []*sql.DB
	conns   []*sqliteConn
	closed  chan struct{}
	once    sync.Once

	// idle are these connections. The one that was used last is taken first: at its first
	// statement a connection reads the whole schema and keeps it, as it does its prepared
	// statements. A server with little to do has all that once, and not for each of them.
	mu   sync.Mutex
	idle []*sqliteConn
}

func openSQLite(ctx context.Context, path string, o Options, schema fs.FS) (_ *sqliteBackend, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	// The file is made here so that only its owner may read it. SQLite gives the
	// files beside it the same mode.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	b := &sqliteBackend{path: path, readers: make(chan struct{}, readers), closed: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.release())
		}
	}()

	pool, err := b.pool(path, 1, url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"journal_mode(WAL)", "synchronous(FULL)"},
	})
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, pool, SQLite, schema, o); err != nil {
		return nil, err
	}
	conn, err := b.connect(ctx, pool)
	if err != nil {
		return nil, err
	}
	b.writer = &groupWriter{conn: conn}

	pool, err = b.pool(path, readers, url.Values{"mode": {"ro"}, "_query_only": {"1"}})
	if err != nil {
		return nil, err
	}
	for range readers {
		conn, err := b.connect(ctx, pool)
		if err != nil {
			return nil, err
		}
		b.give(conn)
	}
	return b, nil
}

func (b *sqliteBackend) pool(path string, size int, q url.Values) (*sql.DB, error) {
	q.Set("_busy_timeout", "5000") // milliseconds, because another process may lock the file
	q.Set("_foreign_keys", "1")
	q.Set("_dqs", "0") // a misspelt "column" is an error, not a text
	pool, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	b.pools = append(b.pools, pool)
	return pool, nil
}

func (b *sqliteBackend) connect(ctx context.Context, pool *sql.DB) (*sqliteConn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &sqliteConn{conn: conn, stmts: map[string]*prepared{}}
	b.conns = append(b.conns, c)
	return c, nil
}

// give puts back a connection that reads.
func (b *sqliteBackend) give(c *sqliteConn) {
	b.mu.Lock()
	b.idle = append(b.idle, c)
	b.mu.Unlock()
	b.readers <- struct{}{}
}

// take takes one, for a value that was received from readers.
func (b *sqliteBackend) take() *sqliteConn {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.idle) - 1
	c := b.idle[last]
	b.idle = b.idle[:last]
	return c
}

func (b *sqliteBackend) write(ctx context.Context, fn func(querier) error) error {
	return b.writer.write(ctx, fn)
}

func (b *sqliteBackend) read(ctx context.Context, fn func(querier) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-b.closed:
		return ErrClosed
	default:
	}
	select {
	case <-b.readers:
	case <-ctx.Done():
		return ctx.Err()
	case <-b.closed:
		return ErrClosed
	}
	conn := b.take()
	defer b.give(conn)
	if err := conn.control("BEGIN"); err != nil {
		return err
	}
	defer func() {
		if e := conn.control("ROLLBACK"); e != nil && err == nil {
			err = e
		}
	}()
	return fn(conn)
}

func (b *sqliteBackend) close() (err error) {
	b.once.Do(func() {
		close(b.closed)
		b.writer.close()
		for range readers {
			<-b.readers
		}
		err = b.release()
	})
	return err
}

// closing is what TellClosing was given.
var closing atomic.Pointer[func(conn any) error]

// TellClosing shows f each connection to SQLite, as its driver has it, before its statements and
// it are closed: for tests that ask what the statements did.
func TellClosing(f func(conn any) error) { closing.Store(&f) }

// release closes all connections, the writer last: the connection that is closed
// last writes the write-ahead log into the file, which no reader may do. A
// connection with open statements does not close, so they are closed first.
func (b *sqliteBackend) release() error {
	var errs []error
	for _, c := range slices.Backward(b.conns) {
		if told := closing.Load(); told != nil {
			errs = append(errs, c.conn.Raw(*told))
		}
		for _, p := range c.stmts {
			errs = append(errs, p.stmt.Close())
		}
		errs = append(errs, c.conn.Close())
	}
	for _, p := range slices.Backward(b.pools) {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// sqliteConn is one connection with its prepared statements. One goroutine at a
// time may use it.
type sqliteConn struct {
	conn     *sql.Conn
	stmts    map[string]*prepared // by text
	uses     int64                // of all statements
	compiled int64                // how often a text was
}

// prepared is a statement of a connection.
type prepared struct {
	stmt *sql.Stmt
	last int64 // the number of its last use among those of all
}

func (c *sqliteConn) prepare(text string) (*sql.Stmt, error) {
	c.uses++
	if p, ok := c.stmts[text]; ok {
		p.last = c.uses
		return p.stmt, nil
	}
	if len(c.stmts) >= maxStatements {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	// The caller's context does not apply, because the statement outlives the call.
	s, err := c.conn.PrepareContext(context.Background(), CompiledOnce(text))
	if err != nil {
		return nil, err
	}
	c.compiled++
	c.stmts[text] = &prepared{s, c.uses}
	return s, nil
}

// forget closes the statement that was not used for the longest time. Built queries come and
// go; one that a loop or a queue runs again and again would else be compiled again for them.
func (c *sqliteConn) forget() error {
	oldest := ""
	for text, p := range c.stmts {
		if oldest == "" || p.last < c.stmts[oldest].last {
			oldest = text
		}
	}
	s := c.stmts[oldest].stmt
	delete(c.stmts, oldest)
	return s.Close()
}

// CompiledOnce is the text of a statement as SQLite gets it: its limits, where they are
// parameters, are sums. SQLite looks at the value of such a parameter to find its way, and
// compiles the statement anew whenever it is bound, at four times the cost of a short
// statement; it does not look into a sum.
func CompiledOnce(text string) string {
	const limit = "LIMIT $"
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, limit)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		b.WriteString(limit + rest[:digits] + " + 0")
		text = rest[digits:]
	}
}

func (c *sqliteConn) query(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (c *sqliteConn) exec(ctx context.Context, text string, args []any) (sql.Result, error) {
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// version returns a number that increases whenever another connection has changed
// the database.
func (c *sqliteConn) version() (n int64, err error) {
	s, err := c.prepare("PRAGMA data_version")
	if err != nil {
		return 0, err
	}
	return n, s.QueryRowContext(context.Background()).Scan(&n)
}

// control runs a statement of transaction control.
func (c *sqliteConn) control(text string) error {
	if _, err := c.exec(context.Background(), text, nil); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}
