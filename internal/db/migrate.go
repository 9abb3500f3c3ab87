package db

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"yardmaster/internal/db/migrations"
)

// newest returns the schema version of this build.
func newest(schema fs.FS) (v int64, err error) {
	names, err := fs.Glob(schema, "*.sql")
	for _, name := range names {
		n, err := goose.NumericComponent(name)
		if err != nil {
			return 0, err
		}
		v = max(v, n)
	}
	return v, err
}

var selectVersion = Q[*int64](`SELECT MAX(version_id) FROM goose_db_version`)

// Migrated returns an error unless the schema is that of this build, or a newer one that this
// build was able to start with.
func (d *DB) Migrated(ctx context.Context) error {
	want, err := newest(migrations.FS)
	if err != nil {
		return err
	}
	return d.Read(ctx, func(tx *Tx) error {
		have, err := selectVersion.One(tx)
		if err == nil && (have == nil || *have < want) {
			err = fmt.Errorf("db: the schema is not at version %d yet", want)
		}
		return err
	})
}

// migrate brings the schema up to date: an empty database in one step, any other by the
// migrations that it lacks. It fails with a NewerError, before it writes, if the database is of a
// newer release.
func migrate(ctx context.Context, pool *sql.DB, e Engine, schema fs.FS, o Options) error {
	if err := fit(ctx, pool, e, schema); err != nil {
		return err
	}
	if o.AsIs {
		return same(ctx, pool, e, schema)
	}
	if err := begin(ctx, pool, e, schema, o.Logger); err != nil {
		return err
	}
	if err := climb(ctx, pool, e, schema, o.Logger); err != nil {
		return err
	}
	return sign(ctx, pool, e, schema, o.Program)
}

// same returns an error unless the schema is that of this program.
func same(ctx context.Context, pool *sql.DB, e Engine, schema fs.FS) error {
	know, err := newest(schema)
	if err != nil {
		return err
	}
	var have int64
	there, err := exists(ctx, pool, e, "goose_db_version")
	if err == nil && there {
		err = pool.QueryRowContext(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version`).Scan(&have)
	}
	if err == nil && have != know {
		err = fmt.Errorf("the database is at schema version %d, and this program is of version %d: use the program that the server runs",
			have, know)
	}
	return err
}

// climb applies the migrations that the database lacks, one after the other. On
// PostgreSQL nodes that start together take turns with an advisory lock.
func climb(ctx context.Context, pool *sql.DB, e Engine, schema fs.FS, log *slog.Logger) error {
	others, err := fs.Glob(schema, "*."+(Postgres-e).String()+".sql")
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	options := []goose.ProviderOption{
		goose.WithSlog(log),
		goose.WithExcludeNames(others),
		goose.WithDisableGlobalRegistry(true),
	}
	dialect := goose.DialectSQLite3
	if e == Postgres {
		dialect = goose.DialectPostgres
		// The locker tries every second, up to five minutes.
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
		if err != nil {
			return fmt.Errorf("make the migration lock: %w", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, pool, schema, options...)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	applied, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if n := len(applied); n > 0 {
		var took time.Duration
		for _, m := range applied {
			took += m.Duration
		}
		log.InfoContext(ctx, "schema migrated", "to", applied[n-1].Source.Version, "steps", n, "took", took)
	}
	return nil
}
