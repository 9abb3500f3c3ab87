package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"modernc.org/sqlite"

	"yardmaster/internal/db"
	"yardmaster/internal/lazy"
)

// Declared prepares every statement that is declared in the folder of the test,
// including its test files, on both engines, and checks its columns against the
// type of its rows.
func Declared(t *testing.T) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	declared(t, filepath.Base(dir)+"/")
}

// DeclaredEverywhere is Declared for every package that the test imports.
func DeclaredEverywhere(t *testing.T) {
	t.Helper()
	declared(t, "")
}

func declared(t *testing.T, at string) {
	t.Helper()
	all := slices.DeleteFunc(db.Declared(), func(d db.Declaration) bool { return !strings.HasPrefix(d.At, at) })
	if len(all) == 0 {
		t.Error("no statement is declared here: remove the test")
	}
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			for _, err := range Check(t, e, DSN(t, e), all) {
				t.Error(err)
			}
		})
	}
}

// Check prepares declarations on the database at dsn and returns an error for each
// wrong one.
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
		names, forms, err := columns(d.SQL)
		if err == nil {
			err = d.Check(names)
		}
		if err == nil {
			err = checkForms(d.Parameters(), forms)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w\n%s", d.At, err, strings.TrimSpace(d.SQL)))
		}
	}
	return wrong
}

// checkForms returns an error if a parameter is bound to a field of another kind
// than the database expects.
func checkForms(all []db.Parameter, forms []string) error {
	for i, p := range all {
		if i < len(forms) && forms[i] != "" && db.Form(p.Type) != "" && db.Form(p.Type) != forms[i] {
			return fmt.Errorf("the parameter :%s takes %s and is bound to a %s", p.Name, forms[i], p.Type)
		}
	}
	return nil
}

// columnsOf prepares a statement without running it. It returns its columns, and
// the forms of its parameters as far as the engine reports them.
type columnsOf func(text string) (columns, parameters []string, err error)

// formOf maps PostgreSQL's types to forms; see db.Form.
var formOf = map[uint32]string{
	pgtype.TextOID: "text", pgtype.VarcharOID: "text", pgtype.BoolOID: "boolean", pgtype.ByteaOID: "bytes",
	pgtype.Int2OID: "integer", pgtype.Int4OID: "integer", pgtype.Int8OID: "integer",
	pgtype.Float4OID: "number", pgtype.Float8OID: "number",
}

func preparePostgres(ctx context.Context, dsn string) (columnsOf, func(), error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, nil, err
	}
	return func(text string) (names, forms []string, err error) {
		s, err := conn.Prepare(ctx, "", text)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range s.Fields {
			names = append(names, f.Name)
		}
		for _, p := range s.ParamOIDs {
			forms = append(forms, formOf[p])
		}
		return names, forms, nil
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
	return func(text string) (names, forms []string, err error) {
		err = conn.Raw(func(in any) error {
			info, err := in.(interface {
				ColumnInfo(string) ([]sqlite.ColumnInfo, error)
			}).ColumnInfo(text)
			for _, column := range info {
				names = append(names, column.Name)
			}
			if err != nil {
				return err
			}
			n, err := recompiled(in.(driver.Conn), db.CompiledOnce(text))
			if err == nil && n > 0 {
				err = errors.New("SQLite compiles it anew whenever its parameters are bound: an expression hides the one it looks at ($1 + 0, $1 || '')")
			}
			return err
		})
		return names, nil, err
	}, func() { conn.Close(); pool.Close() }, nil
}

// Plan returns SQLite's query plan of the declared statements whose text contains
// part, with a line for each step.
func Plan(t testing.TB, part string) string {
	t.Helper()
	file := url.URL{Scheme: "file", Path: strings.TrimPrefix(DSN(t, db.SQLite), "sqlite:")}
	pool, err := sql.Open("sqlite", file.String())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var plan strings.Builder
	for _, d := range db.Declared() {
		if strings.Contains(oneLine(d.SQL), oneLine(part)) {
			plan.WriteString(explain(t, pool, d.SQL))
		}
	}
	return plan.String()
}

// Plans returns SQLite's query plans of the built queries that run has made with ctx, each
// with a line for each step, in their order; without those that ask for one of no values,
// for which nothing is read.
func Plans(ctx context.Context, t testing.TB, run func(context.Context)) (plans []string) {
	t.Helper()
	var mu sync.Mutex
	var texts []string
	run(db.TellBuilt(ctx, func(text string) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, text)
	}))
	file := url.URL{Scheme: "file", Path: strings.TrimPrefix(DSN(t, db.SQLite), "sqlite:")}
	pool, err := sql.Open("sqlite", file.String())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, text := range texts {
		if strings.Contains(text, " AND FALSE") {
			continue
		}
		plans = append(plans, explain(t, pool, text))
	}
	return plans
}

func explain(t testing.TB, pool *sql.DB, text string) string {
	t.Helper()
	// The values of the parameters do not matter, only their number.
	rows, err := pool.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, highest(text))...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Error(err)
		}
		plan.WriteString(step + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

var parameter = lazy.New(`\$(\d+)`)

// highest returns the number of the last parameter of a statement.
func highest(text string) (n int) {
	for _, m := range parameter.FindAllStringSubmatch(text, -1) {
		at, _ := strconv.Atoi(m[1])
		n = max(n, at)
	}
	return n
}

// oneLine returns a text without line breaks and indentation.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
