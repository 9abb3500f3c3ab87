package db

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"yardmaster/internal/db/migrations"
)

// begin gives an empty database its whole schema in one transaction. A database that
// has anything in it is left to climb. Of nodes that start together one makes the
// schema; the others wait and find it.
func begin(ctx context.Context, pool *sql.DB, e Engine, schema fs.FS, log *slog.Logger) (err error) {
	if e == SQLite && schema != fs.FS(migrations.FS) {
		return nil // the image is of that one
	}
	empty := `SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)`
	if e == Postgres {
		empty = `SELECT NOT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = current_schema()::regnamespace)`
	}
	var is bool
	if err := pool.QueryRowContext(ctx, empty).Scan(&is); err != nil || !is {
		return err
	}
	start := time.Now()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil) // on SQLite it holds the lock of writers from here on
	if err != nil {
		return fmt.Errorf("make the schema: %w", err)
	}
	defer tx.Rollback() // does nothing after a commit
	if e == Postgres {
		// The lock that climb takes, and for as long as that waits.
		if _, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '300s'`); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, lock.DefaultLockID); err != nil {
			return fmt.Errorf("wait for the node that makes the schema: %w", err)
		}
	}
	if err := tx.QueryRowContext(ctx, empty).Scan(&is); err != nil || !is {
		return err
	}
	if e == SQLite {
		err = lay(ctx, tx, sqliteImage)
	} else {
		var text string
		if text, err = joined(ctx, tx, schema); err == nil {
			_, err = tx.ExecContext(ctx, text)
		}
	}
	if err == nil {
		err = tx.Commit()
	}
	for _, text := range []string{forgetPages, datedNow} {
		if err == nil && e == SQLite {
			_, err = conn.ExecContext(ctx, text)
		}
	}
	if err != nil {
		return fmt.Errorf("make the schema: %w", err)
	}
	log.InfoContext(ctx, "schema made", "took", time.Since(start))
	return nil
}

// joined returns all migrations of PostgreSQL as one script, after it has made the table
// that records them. Its statements are the same ones that climb would run, without a
// commit and a way to the server and back for each.
func joined(ctx context.Context, tx *sql.Tx, schema fs.FS) (string, error) {
	store, err := database.NewStore(database.DialectPostgres, goose.DefaultTablename)
	if err != nil {
		return "", err
	}
	if err := store.CreateVersionTable(ctx, tx); err != nil {
		return "", fmt.Errorf("make the table of migrations: %w", err)
	}
	names, err := fs.Glob(schema, "*.sql")
	if err != nil {
		return "", fmt.Errorf("list migrations: %w", err)
	}
	slices.Sort(names)
	var script strings.Builder
	done := []string{"(0, TRUE)"} // which stands for the table itself
	for _, name := range names {
		if strings.HasSuffix(name, ".sqlite.sql") {
			continue
		}
		n, err := goose.NumericComponent(name)
		if err != nil {
			return "", err
		}
		text, err := fs.ReadFile(schema, name)
		if err != nil {
			return "", err
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		script.WriteString(up + "\n")
		done = append(done, fmt.Sprintf("(%d, TRUE)", n))
	}
	fmt.Fprintf(&script, "INSERT INTO %s (version_id, is_applied) VALUES %s;\n", store.Tablename(), strings.Join(done, ", "))
	return script.String(), nil
}
