// Package db is the only way to the database, SQLite or PostgreSQL.
//
// A caller opens a DB, then does all its work in transactions: Read sees one
// snapshot, Write commits once. Statements are declared as package-level values
// with Q and S (or built with Build if a list has optional filters), have one SQL
// text for both engines with $N parameters, and take the *Tx:
//
//	var getTask = db.Q[Task](`SELECT id, title FROM task WHERE account_id = $1 AND id = $2`)
//
//	err := d.Write(ctx, func(tx *db.Tx) error {
//		task, err := getTask.One(tx, tx.Account, id)
//		...
//	})
//
// These rules hold on both engines:
//
//   - A statement that fails spoils its transaction: every later statement fails
//     and nothing is committed. Expected conflicts are written as ON CONFLICT, or
//     recognised after the transaction with IsUnique.
//   - The function given to Write may run more than once: on PostgreSQL after a
//     serialization failure or a deadlock, on SQLite when another function that
//     was to share its commit failed halfway. Apart from tx it must have no effect
//     that cannot be repeated; an effect that must happen once goes into
//     Tx.AfterCommit.
//   - A transaction inside a transaction is refused with ErrNested. The context
//     shows it: pass on Tx.Context inside, not the outer context.
//   - Times are integer microseconds, booleans are BOOLEAN, JSON is TEXT, and
//     text is UTF-8 without U+0000.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/db/migrations"
	"yardmaster/internal/fault"
)

// Engine is the kind of database.
type Engine uint8

// The engines.
const (
	SQLite Engine = iota
	Postgres
)

func (e Engine) String() string {
	if e == Postgres {
		return "postgres"
	}
	return "sqlite"
}

// Options are the options of Open; the zero value is usable.
type Options struct {
	Logger *slog.Logger // nil discards
	// Program is the version of the program, which a database that it migrates keeps.
	Program string
	// MaxConns limits the PostgreSQL connections of this process; 0 is 16. SQLite
	// always has one writer and four readers.
	MaxConns int
	Clock    func() time.Time // gives Tx.Now; nil is time.Now
	// Before is called before the schema of a PostgreSQL database is changed, if
	// the schema already has the table of servers. If it returns an error, the
	// schema stays unchanged.
	Before func(context.Context, *DB) error
	// AsIs has Open refuse a database whose schema is another than that of this program, and
	// change nothing in it.
	AsIs bool
	// Observe is called after every transaction, with the context that it was begun
	// in. It may be nil.
	Observe func(context.Context, Transaction)
}

// Transaction is a transaction that is over.
type Transaction struct {
	Kind    string // read or write
	Outcome string // done, refused (its function returned a fault), cancelled (its context was), or failed
	Begun   time.Time
	Took    time.Duration // waiting included
	Tries   int           // how often its function was called
}

// DB is an open database. Its methods may be called concurrently.
type DB struct {
	backend  backend
	engine   Engine
	clock    func() time.Time
	ownClock bool                               // of Options
	observe  func(context.Context, Transaction) // may be nil
	diskFull atomic.Bool                        // the last write found the disk full
	local    sync.Map                           // *Local[T] -> *T
}

// backend runs transactions on one engine. A transaction is over when read or write
// returns; write returns nil only after a durable commit.
type backend interface {
	read(context.Context, func(querier) error) error
	write(context.Context, func(querier) error) error
	close() error
}

// querier runs statements inside one transaction.
type querier interface {
	query(ctx context.Context, text string, args []any) (*sql.Rows, error)
	exec(ctx context.Context, text string, args []any) (sql.Result, error)
}

// sharing is a querier whose transaction commits together with others.
type sharing interface {
	// share takes over the final steps of tx, to be run once for all transactions
	// of the commit; false leaves them to tx.
	share(tx *Tx) bool
	// ahead lists the final steps of the earlier transactions of the commit.
	ahead() []step
}

func shares(q querier, tx *Tx) bool {
	s, ok := q.(sharing)
	return ok && s.share(tx)
}

// Open opens "sqlite:/path/file.db" (which it makes in an existing folder if it is
// missing) or "postgres://…", and brings the schema up to date. Nodes that start
// together on one PostgreSQL wait for each other. On a full disk the error is a
// fault of kind StorageFull.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	return open(ctx, dsn, o, migrations.FS)
}

func open(ctx context.Context, dsn string, o Options, schema fs.FS) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	own := o.Clock != nil
	if !own {
		o.Clock = time.Now
	}
	d := &DB{clock: o.Clock, ownClock: own, observe: o.Observe}
	var err error
	scheme, path, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "sqlite":
		d.engine = SQLite
		d.backend, err = openSQLite(ctx, path, o, schema)
	case "postgres", "postgresql":
		d.engine = Postgres
		err = openPostgres(ctx, d, dsn, o, schema)
	default:
		// The text is not repeated, because a DSN may contain a password.
		return nil, errors.New(`db: the address must begin with "sqlite:" or "postgres:"`)
	}
	if err != nil {
		err = fmt.Errorf("db: open %s: %w", d.engine, err)
		if diskFull(err) {
			err = fault.Full(err)
		}
		return nil, err
	}
	return d, nil
}

// Engine returns the kind of this database.
func (d *DB) Engine() Engine { return d.engine }

// OwnClock tells whether Options.Clock was given, so that Tx.Now is a time of its choice.
func (d *DB) OwnClock() bool { return d.ownClock }

// Close waits for running transactions and closes the database.
func (d *DB) Close() error { return d.backend.close() }

var ping = S(`SELECT 1`)

// Ping runs the smallest statement.
func (d *DB) Ping(ctx context.Context) error {
	return d.Read(ctx, func(tx *Tx) error {
		_, err := ping.Exec(tx)
		return err
	})
}

// Read runs fn in a read-only transaction that sees one snapshot. It returns fn's
// error, ErrNested or ErrClosed.
func (d *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	return d.run(ctx, "read", d.backend.read, fn)
}

// Write runs fn in a transaction and commits it if fn returns nil. On SQLite
// concurrent calls share one commit: each is still undone alone if its fn fails,
// and each returns only when its rows are durable. fn may run again, see the
// package comment. It returns fn's error, ErrNested or ErrClosed; on a full disk
// the error is a fault of kind StorageFull.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	if last, _ := ctx.Value(lastKey{}).(func(*Tx) error); last != nil {
		first := fn
		fn = func(tx *Tx) error {
			if err := first(tx); err != nil {
				return err
			}
			return last(tx)
		}
	}
	err := d.run(ctx, "write", d.backend.write, fn)
	switch {
	case err != nil && diskFull(err):
		d.diskFull.Store(true)
		return fault.Full(err)
	case err == nil && d.diskFull.Load():
		d.diskFull.Store(false)
	}
	return err
}

// DiskFull tells whether the last write failed because the disk of the database was
// full.
func (d *DB) DiskFull() bool { return d.diskFull.Load() }

func (d *DB) run(
	ctx context.Context, kind string, transact func(context.Context, func(querier) error) error, fn func(*Tx) error,
) (err error) {
	if limit, ok := ctx.Value(patienceKey{}).(time.Duration); ok && d.engine == Postgres {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer func(outer context.Context) { // when observe has been told of the failure as it is
			err = silent(outer, bounded, err)
			cancel()
		}(ctx)
		ctx = bounded
	}
	if d.observe != nil {
		t := Transaction{Kind: kind, Begun: time.Now()}
		inner := transact
		transact = func(ctx context.Context, fn func(querier) error) error {
			return inner(ctx, func(q querier) error {
				t.Tries++
				return fn(q)
			})
		}
		defer func() {
			t.Outcome, t.Took = outcome(err), time.Since(t.Begun)
			d.observe(ctx, t)
		}()
	}
	if outer, ok := ctx.Value(txKey{}).(*Tx); ok && outer.db == d && !outer.over.Load() {
		return ErrNested
	}
	var tx *Tx
	err = transact(ctx, func(q querier) error {
		tx = d.begin(ctx, q)
		defer tx.over.Store(true)
		err := fn(tx)
		if err == nil && tx.failed == nil && !shares(q, tx) {
			err = tx.finish()
		}
		if tx.failed != nil && (err == nil || transient(tx.failed)) {
			return tx.failed
		}
		return err
	})
	if err != nil {
		return err
	}
	tx.committed()
	return nil
}

// WithPatience limits how long each transaction of ctx may take on PostgreSQL, the wait for a connection
// included. One that takes longer fails with fault.Unavailable; what it changed is undone, unless it was
// being committed.
func WithPatience(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, d)
}

// silent is the failure of a transaction whose time was over.
func silent(outer, bounded context.Context, err error) error {
	var refusal *fault.Error
	if err == nil || outer.Err() != nil || bounded.Err() == nil || errors.As(err, &refusal) {
		return err
	}
	return fault.New(fault.Unavailable, "", "The database does not answer in time. Try again.").After(5 * time.Second).Because(err)
}

func outcome(err error) string {
	var refusal *fault.Error
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &refusal):
		return "refused"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "failed"
}

// committed runs the functions of AfterCommit.
func (tx *Tx) committed() {
	for _, f := range tx.after {
		f()
	}
}

func (d *DB) begin(ctx context.Context, q querier) *Tx {
	account, _ := ctx.Value(accountKey{}).(string)
	tx := &Tx{
		Now:     d.clock().UTC().Truncate(time.Microsecond),
		Account: account,
		db:      d,
		q:       q,
	}
	tx.ctx = context.WithValue(ctx, txKey{}, tx)
	return tx
}

type (
	accountKey  struct{}
	txKey       struct{}
	lastKey     struct{}
	patienceKey struct{}
)

// WithAccount sets the account whose data the transactions of ctx read and write.
func WithAccount(ctx context.Context, accountID string) context.Context {
	return context.WithValue(ctx, accountKey{}, accountID)
}

// BeforeCommit makes every Write of ctx call f at its end, inside its transaction;
// an error undoes it. Like the function given to Write, f may run more than once. A
// nil f cancels that of an outer context.
func BeforeCommit(ctx context.Context, f func(*Tx) error) context.Context {
	return context.WithValue(ctx, lastKey{}, f)
}

// Tx is a running transaction. Only the function it was given to may use it, on
// that function's goroutine, until the function returns.
type Tx struct {
	Now     time.Time // when the transaction began: constant, UTC, whole microseconds
	Account string    // from WithAccount, else ""

	ctx    context.Context
	db     *DB
	q      querier
	after  []func()
	steps  []step
	failed error // the first statement error
	over   atomic.Bool
}

// Micros returns Now as Unix microseconds.
func (tx *Tx) Micros() int64 { return Micros(tx.Now) }

// As sets Account while fn runs, and returns fn's error. Boxes and loops have no
// account of their own; the object that they work on determines it.
func (tx *Tx) As(account string, fn func() error) error {
	defer tx.About(account)()
	return fn()
}

// About sets Account until the caller calls back, usually with defer.
func (tx *Tx) About(account string) (back func()) {
	was := tx.Account
	tx.Account = account
	return func() { tx.Account = was }
}

// Context returns the caller's context, marked so that a nested transaction is
// refused.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Engine returns the kind of this database.
func (tx *Tx) Engine() Engine { return tx.db.engine }

// AfterCommit makes f run once, after a successful commit and outside of the
// transaction, in the order of the calls. After a rollback f does not run.
func (tx *Tx) AfterCommit(f func()) { tx.after = append(tx.after, f) }

// usable is called before every statement. It checks the context, because a running
// statement of a shared SQLite transaction cannot be interrupted without undoing
// the other functions.
func (tx *Tx) usable() error {
	if tx.over.Load() {
		return errors.New("db: transaction used after its end")
	}
	if tx.failed != nil {
		return fmt.Errorf("db: transaction already failed: %w", tx.failed)
	}
	return tx.ctx.Err()
}

// fail records the first statement error.
func (tx *Tx) fail(err error) error {
	if tx.failed == nil {
		tx.failed = err
	}
	return err
}
