package db

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"yardmaster/internal/durable"
)

// Copied is what a copy of a database has.
type Copied struct {
	Schema int64            // the newest migration
	Rows   map[string]int64 // by table
}

// Copy writes the database as it is at one moment into a new file while servers go on with it, and
// calls read in a transaction that sees what the file has. The file is a database of SQLite (VACUUM
// INTO), or an archive of pg_dump, which has to be installed.
func (d *DB) Copy(ctx context.Context, file string, read func(*Tx) error) (Copied, error) {
	if d.engine == Postgres {
		return d.dump(ctx, file, read)
	}
	return d.vacuum(ctx, file, read)
}

func (d *DB) vacuum(ctx context.Context, file string, read func(*Tx) error) (out Copied, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return out, err
	}
	if err := f.Close(); err != nil {
		return out, err
	}
	live, err := lite(d.backend.(*sqliteBackend).path)
	if err != nil {
		return out, err
	}
	_, err = live.ExecContext(ctx, `VACUUM INTO $1`, file)
	if err = errors.Join(err, live.Close()); err != nil {
		return out, fmt.Errorf("copy the database: %w", err)
	}
	made, err := Open(ctx, "sqlite:"+file, Options{AsIs: true, Clock: d.clock})
	if err != nil {
		return out, fmt.Errorf("open the copy: %w", err)
	}
	err = made.Read(ctx, func(tx *Tx) (err error) {
		if out, err = count(tx.ctx, tx.q, SQLite); err != nil {
			return err
		}
		return read(tx)
	})
	return out, errors.Join(err, made.Close())
}

// lite opens a file of SQLite with one connection.
func lite(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_busy_timeout": {"5000"}}
	pool, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err == nil {
		pool.SetMaxOpenConns(1)
	}
	return pool, err
}

func (d *DB) dump(ctx context.Context, file string, read func(*Tx) error) (out Copied, err error) {
	return out, d.Read(ctx, func(tx *Tx) error {
		rows, err := tx.q.query(ctx, `SELECT pg_export_snapshot()`, nil)
		if err != nil {
			return err
		}
		var snapshot string
		if err := single(rows, &snapshot); err != nil {
			return err
		}
		err = tool(ctx, d.backend.(*postgresBackend).dsn, "pg_dump", "--format=custom", "--no-owner", "--no-privileges",
			"--snapshot="+snapshot, "--file="+file)
		if err != nil {
			return err
		}
		if err := os.Chmod(file, 0o600); err != nil {
			return err
		}
		if out, err = count(ctx, tx.q, Postgres); err != nil {
			return err
		}
		return read(tx)
	})
}

// single reads the only value of rows.
func single(rows *sql.Rows, value any) error {
	defer rows.Close()
	if !rows.Next() {
		return errors.Join(rows.Err(), ErrNoRows)
	}
	return errors.Join(rows.Scan(value), rows.Close())
}

// tool runs a program of PostgreSQL on a database. The password goes by the environment, as
// everybody on the machine can read arguments.
func tool(ctx context.Context, dsn, name string, args ...string) error {
	program, err := toolPath(name)
	if err != nil {
		return err
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return errors.New("the address of the database is no URL")
	}
	password, _ := u.User.Password()
	q := u.Query()
	if q.Has("password") {
		password = q.Get("password")
		q.Del("password")
		u.RawQuery = q.Encode()
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"--dbname=" + u.String(), "--no-password"}, args...)...)
	if cmd.Env = os.Environ(); password != "" {
		cmd.Env = append(cmd.Env, "PGPASSWORD="+password)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// toolPath looks for a program of PostgreSQL: the newest that Debian's packages have put down, as one
// that is older than the database refuses it, or the one on the path.
func toolPath(name string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int {
			if len(a) != len(b) {
				return len(a) - len(b)
			}
			return strings.Compare(a, b)
		}), nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed, and a PostgreSQL database is copied with it: it is in the package postgresql-client", name)
	}
	return path, nil
}

// Vacant fails unless a copy can be put to dsn: no file is there, or an empty database of PostgreSQL is.
func Vacant(ctx context.Context, dsn string) error {
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		_, err := os.Lstat(path)
		if err == nil {
			err = fmt.Errorf("%s is there already: a backup is put into an empty folder only", path)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	have, err := Count(ctx, dsn)
	if err == nil && len(have.Rows) > 0 {
		err = fmt.Errorf("the database has tables, such as %s: a backup is put into an empty database only",
			slices.Min(slices.Collect(maps.Keys(have.Rows))))
	}
	return err
}

// Restore makes the database at dsn, which is vacant, of a file of Copy: all of it or nothing.
func Restore(ctx context.Context, dsn, file string) error {
	if err := Vacant(ctx, dsn); err != nil {
		return err
	}
	path, ok := strings.CutPrefix(dsn, "sqlite:")
	if !ok {
		return tool(ctx, dsn, "pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", file)
	}
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	return durable.Stream(path, ".restored-*", from)
}

// Count counts the rows of a database of any release, and changes nothing in it.
func Count(ctx context.Context, dsn string) (out Copied, err error) {
	var pool *sql.DB
	e := Postgres
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		e = SQLite
		if _, err := os.Stat(path); err != nil {
			return out, err
		}
		pool, err = lite(path)
	} else {
		pool, err = sql.Open("pgx", dsn)
	}
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return out, fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	return count(ctx, postgresTx{tx}, e)
}

func count(ctx context.Context, q querier, e Engine) (out Copied, err error) {
	tables := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`
	if e == Postgres {
		tables = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`
	}
	rows, err := q.query(ctx, tables, nil)
	if err != nil {
		return out, err
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return out, errors.Join(err, rows.Close())
		}
		names = append(names, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return out, err
	}
	out.Rows = map[string]int64{}
	for _, name := range names {
		rows, err := q.query(ctx, `SELECT COUNT(*) FROM "`+name+`"`, nil)
		if err != nil {
			return out, err
		}
		var n int64
		if err := single(rows, &n); err != nil {
			return out, fmt.Errorf("count %s: %w", name, err)
		}
		out.Rows[name] = n
	}
	if _, there := out.Rows["goose_db_version"]; there {
		rows, err := q.query(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version`, nil)
		if err != nil {
			return out, err
		}
		return out, single(rows, &out.Schema)
	}
	return out, nil
}
