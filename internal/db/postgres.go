package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	defaultConns = 16
	maxAttempts  = 5
	// connecting is how long a connection may take, unless the address says so.
	connecting = 10 * time.Second
)

var (
	writing = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	reading = &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
)

type postgresBackend struct {
	dsn    string
	pool   *sql.DB
	closed atomic.Bool
}

func openPostgres(ctx context.Context, d *DB, dsn string, o Options, schema fs.FS) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err // pgx leaves the password out
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "yardmaster"
	}
	if !strings.Contains(dsn, "connect_timeout") {
		config.ConnectTimeout = connecting
	}
	pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(letGo))
	size := o.MaxConns
	if size <= 0 {
		size = defaultConns
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	pool.SetConnMaxLifetime(time.Hour)

	d.backend = &postgresBackend{dsn: dsn, pool: pool}
	if err := fit(ctx, pool, Postgres, schema); err != nil {
		return errors.Join(err, pool.Close())
	}
	if o.Before != nil && !o.AsIs {
		var known bool
		err := pool.QueryRowContext(ctx, `SELECT to_regclass('servers') IS NOT NULL`).Scan(&known)
		if err == nil && known {
			err = o.Before(ctx, d)
		}
		if err != nil {
			return errors.Join(err, pool.Close())
		}
	}
	if err := migrate(ctx, pool, Postgres, schema, o); err != nil {
		return errors.Join(err, pool.Close())
	}
	var collation string
	err = pool.QueryRowContext(ctx, `SELECT datcollate FROM pg_database WHERE datname = current_database()`).Scan(&collation)
	if err != nil {
		return errors.Join(fmt.Errorf("ask for the collation: %w", err), pool.Close())
	}
	if collation != "C" && collation != "POSIX" {
		o.Logger.WarnContext(ctx, "database is not in collation C: lists by name sort differently than on SQLite", "collation", collation)
	}
	return nil
}

// letGo has the server end a transaction whose client says nothing for long, because its process is frozen
// or cut off: what it has locked would keep the others waiting.
func letGo(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SET idle_in_transaction_session_timeout = '10s'`)
	return err
}

func (p *postgresBackend) close() error {
	p.closed.Store(true)
	return p.pool.Close()
}

func (p *postgresBackend) read(ctx context.Context, fn func(querier) error) error {
	return p.transact(ctx, reading, fn)
}

func (p *postgresBackend) write(ctx context.Context, fn func(querier) error) error {
	for attempt := 1; ; attempt++ {
		err := p.transact(ctx, writing, fn)
		if err == nil || attempt == maxAttempts || !transient(err) {
			return err
		}
		// A random pause keeps transactions that collided from colliding again.
		pause := time.NewTimer(rand.N(time.Duration(attempt) * 5 * time.Millisecond))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

func (p *postgresBackend) transact(ctx context.Context, o *sql.TxOptions, fn func(querier) error) error {
	tx, err := p.pool.BeginTx(ctx, o)
	if err != nil {
		if p.closed.Load() {
			return ErrClosed
		}
		return fmt.Errorf("db: begin: %w", err)
	}
	defer tx.Rollback() // does nothing after a commit
	if err := fn(postgresTx{tx}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("db: commit: %w", err)
	}
	return nil
}

// postgresTx relies on pgx, which keeps prepared statements for each connection.
type postgresTx struct{ tx *sql.Tx }

func (t postgresTx) query(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	return t.tx.QueryContext(ctx, text, args...)
}

func (t postgresTx) exec(ctx context.Context, text string, args []any) (sql.Result, error) {
	return t.tx.ExecContext(ctx, text, args...)
}
