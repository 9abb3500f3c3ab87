package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"modernc.org/sqlite"

	"yardmaster/internal/db"
)

// Declared prepares every statement declared in the packages the test imports,
// on both engines, and holds its columns against the type of its rows.
func Declared(t *testing.T) {
	t.Helper()
	all := db.Declared()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			for _, err := range Check(t, e, DSN(t, e), all) {
				t.Error(err)
			}
		})
	}
}

// Check prepares declarations on the database at dsn and returns what is wrong
// with them.
func Check(t testing.TB, e db.Engine, dsn string, all []db.Declaration) []error {
	t.Helper()
	prepare := prepareSQLite
	if e == db.Postgres {
		prepare = preparePostgres
	}
	columns, done, err := prepare(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	var wrong []error
	for _, d := range all {
		names, err := columns(d.SQL)
		if err == nil {
			err = d.Check(names)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w\n%s", d.At, err, strings.TrimSpace(d.SQL)))
		}
	}
	return wrong
}

// columnsOf prepares a statement and returns its columns, without running it.
type columnsOf func(text string) ([]string, error)

func preparePostgres(ctx context.Context, dsn string) (columnsOf, func(), error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, nil, err
	}
	return func(text string) ([]string, error) {
		s, err := conn.Prepare(ctx, "", text)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, f := range s.Fields {
			names = append(names, f.Name)
		}
		return names, nil
	}, func() { conn.Close(ctx) }, nil
}

func prepareSQLite(ctx context.Context, dsn string) (columnsOf, func(), error) {
	file := url.URL{Scheme: "file", Path: strings.TrimPrefix(dsn, "sqlite:"), RawQuery: "_dqs=0"}
	pool, err := sql.Open("sqlite", file.String())
	if err != nil {
		return nil, nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return func(text string) (names []string, err error) {
		err = conn.Raw(func(driver any) error {
			info, err := driver.(interface {
				ColumnInfo(string) ([]sqlite.ColumnInfo, error)
			}).ColumnInfo(text)
			for _, column := range info {
				names = append(names, column.Name)
			}
			return err
		})
		return names, err
	}, func() { conn.Close(); pool.Close() }, nil
}
