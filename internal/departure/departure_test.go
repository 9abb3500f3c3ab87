package departure

import (
	"crypto/ed25519"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/seal"
)

func TestMain(m *testing.M)       { dbtest.Main(m) }
func TestStatements(t *testing.T) { dbtest.Declared(t) }

// mansion is a database with a row of each table for each of two accounts.
type mansion struct {
	t    *testing.T
	db   *db.DB
	pool *sql.DB
	refs []db.Reference
	all  []Part
}

// kinds are the tables that a column with the beginning of their name points to, without a foreign key.
var kinds = map[string]string{
	"run_id": "runs", "task_id": "tasks", "repo_id": "repos", "box_id": "boxes", "user_id": "users", "plan_id": "plans",
	"session_id": "sessions", "pr_id": "pulls",
}

// value is what a column of a row of an account has: a text that says whose it is.
func (m mansion) value(of, table, column string) string {
	for _, r := range m.refs {
		if r.Table == table && r.Column == column {
			if r.To == "event_readers" {
				return m.value("both", "event_readers", "name")
			}
			if r.To == "host_heads" { // two columns name a row of it
				return m.value(of, r.To, column)
			}
			return m.value(of, r.To, "id")
		}
	}
	switch to := kinds[column]; {
	case column == "account_id":
		return m.value(of, "accounts", "id")
	case table == "git_homes" && column != "node_id":
		return m.value(of, "repos", column)
	case table == "signin_codes" && column == "email":
		return m.value(of, "users", "email")
	case table == "due" && column == "lane":
		return "0" + m.value(of, "accounts", "id")
	case table == "repos" && column == "host":
		return builtIn
	case to != "" && to != table:
		return m.value(of, to, "id")
	}
	return of + "~" + table + "~" + column
}

func (m mansion) columns(table string) (names, types []string) {
	m.t.Helper()
	q := `SELECT name, type FROM pragma_table_info($1)`
	if m.db.Engine() == db.Postgres {
		q = `SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`
	}
	rows, err := m.pool.QueryContext(m.t.Context(), q, table)
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			m.t.Fatal(err)
		}
		names, types = append(names, name), append(types, strings.ToLower(kind))
	}
	if err := rows.Err(); err != nil {
		m.t.Fatal(err)
	}
	return names, types
}

// fill adds a row of an account to a table.
func (m mansion) fill(of, table string) {
	m.t.Helper()
	names, types := m.columns(table)
	var marks []string
	var values []any
	for i, name := range names {
		marks = append(marks, fmt.Sprintf("$%d", i+1))
		switch kind := types[i]; {
		case strings.HasPrefix(kind, "bool"):
			values = append(values, false)
		case strings.HasPrefix(kind, "blob"), strings.HasPrefix(kind, "bytea"):
			values = append(values, []byte(m.value(of, table, name)))
		case strings.HasPrefix(kind, "text"):
			values = append(values, m.value(of, table, name))
		case of == "one":
			values = append(values, 1)
		default:
			values = append(values, 2)
		}
	}
	q := fmt.Sprintf(`INSERT INTO %q ("%s") VALUES (%s)`, table, strings.Join(names, `", "`), strings.Join(marks, ", "))
	if _, err := m.pool.ExecContext(m.t.Context(), q, values...); err != nil {
		m.t.Fatalf("%s of %s: %v", table, of, err)
	}
}

// text is every row of every table, by table.
func (m mansion) text() map[string][]string {
	m.t.Helper()
	out := map[string][]string{}
	for _, p := range m.all {
		names, _ := m.columns(p.Table)
		err := m.db.Read(m.t.Context(), func(tx *db.Tx) error {
			return db.EachOf(tx, db.Part{Table: p.Table, Where: "1 = 1"}, names, "", func(line []byte) error {
				out[p.Table] = append(out[p.Table], string(line))
				return nil
			})
		})
		if err != nil {
			m.t.Fatal(err)
		}
	}
	return out
}

func newMansion(t *testing.T, e db.Engine) mansion {
	t.Helper()
	dsn := dbtest.DSN(t, e)
	m := mansion{t: t, db: dbtest.Open(t, dsn, db.Options{})}
	driver, at := "pgx", dsn
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, at = "sqlite", "file:"+path+"?_busy_timeout=10000&_foreign_keys=1"
	}
	var err error
	if m.pool, err = sql.Open(driver, at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.pool.Close() })
	err = m.db.Read(t.Context(), func(tx *db.Tx) (err error) {
		var unknown []string
		if m.all, unknown, err = Parts(tx); len(unknown) > 0 {
			t.Errorf("say in special whose the rows of %v are", unknown)
		}
		if err == nil {
			m.refs, err = db.References(tx)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// skipped are the tables that say nothing of an account, of which there is no row here.
func skipped(p Part) bool {
	return p.Where == "" && p.Private != ofPeople || p.Table == "signin_guesses" || p.Table == "departures"
}

func (m mansion) furnish() {
	m.t.Helper()
	m.fill("both", "event_readers")
	var parts []db.Part
	for _, p := range m.all {
		if !skipped(p) {
			parts = append(parts, db.Part{Table: p.Table, Where: "1 = 1"})
		}
	}
	ordered, err := db.Order(parts, m.refs)
	if err != nil {
		m.t.Fatal(err)
	}
	slices.Reverse(ordered)
	for _, of := range []string{"one", "two"} {
		for _, p := range ordered {
			m.fill(of, p.Table)
		}
	}
}

// A row of each table is there for two accounts. One of them leaves: what it had is in its archive or
// is said not to be, nothing of it is left but what is said to stay, and nothing of the other one is
// in the archive or gone.
func TestNothingIsForgotten(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			m := newMansion(t, e)
			m.furnish()
			before := m.text()
			login, dir := m.value("one", "accounts", "login"), t.TempDir()
			var made Manifest
			err := m.db.Read(t.Context(), func(tx *db.Tx) (err error) { made, err = Rows(tx, login, dir); return err })
			if err != nil {
				t.Fatal(err)
			}
			m.archived(made, dir)
			file := filepath.Join(t.TempDir(), "one.tar.gz")
			sum, err := Pack(made, dir, file)
			if err != nil {
				t.Fatal(err)
			}
			if read, again, err := Read(file); err != nil || again != sum || read.Login != login || len(read.Files) != len(made.Files) {
				t.Fatal(again, err)
			}
			ends := func(*db.Tx, string) error { return nil }
			other := made
			other.Record.Hash = "another"
			err = m.db.Write(t.Context(), func(tx *db.Tx) error { _, err := Remove(tx, other, sum, "v1", ends); return err })
			if !errors.Is(err, ErrMoved) {
				t.Errorf("an account that has changed since: %v", err)
			}
			err = m.db.Write(t.Context(), func(tx *db.Tx) error { _, err := Remove(tx, made, sum, "v1", ends); return err })
			if err != nil {
				t.Fatal(err)
			}
			m.gone(before)
			m.proven(made, sum)
		})
	}
}

// archived holds an archive against what the account had.
func (m mansion) archived(made Manifest, dir string) {
	m.t.Helper()
	for _, p := range m.all {
		if skipped(p) || p.Table == "users" || p.Private == ofPeople {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "tables", p.Table+".jsonl"))
		switch {
		case p.Private != "":
			if err == nil || made.Left[p.Table] == "" {
				m.t.Errorf("%s is in the archive, or it is not said why not", p.Table)
			}
		case err != nil || made.Rows[p.Table] != 1:
			m.t.Errorf("of %s there are %d rows in the archive: %v", p.Table, made.Rows[p.Table], err)
		case !json.Valid(text), strings.Contains(string(text), "two~"):
			m.t.Errorf("%s in the archive is %s", p.Table, text)
		}
		for _, column := range hidden[p.Table] {
			if strings.Contains(string(text), p.Table+"~"+column) {
				m.t.Errorf("%s.%s is in the archive", p.Table, column)
			}
		}
	}
}

// gone holds what is left against what there was.
func (m mansion) gone(before map[string][]string) {
	m.t.Helper()
	after := m.text()
	for _, p := range m.all {
		for _, line := range before[p.Table] {
			left := slices.Contains(after[p.Table], line)
			switch {
			case strings.Contains(line, "one~") && p.Table == "audit_heads":
				// The hash stays, and says that it is the end.
			case strings.Contains(line, "one~") && (left != (p.Stays != "" && p.Stays != ofPeople)):
				m.t.Errorf("%s of the account that left is there: %v", p.Table, left)
			case !strings.Contains(line, "one~") && !left:
				m.t.Errorf("%s has lost or changed what was not the account's: %s", p.Table, line)
			}
		}
		for _, line := range after[p.Table] {
			if strings.Contains(line, "one~") && p.Stays == "" && p.Table != "audit" {
				m.t.Errorf("%s: there is still %s", p.Table, line)
			}
		}
	}
}

// proven holds the proof against what was removed, and a chain without rows against the platform's.
func (m mansion) proven(made Manifest, sum string) {
	m.t.Helper()
	var u Unfinished
	ring := seal.New()
	var envelope []byte
	err := m.db.Write(m.t.Context(), func(tx *db.Tx) (err error) {
		var ok bool
		if u, ok, err = ReadUnfinished(tx, made.Login); err != nil || !ok {
			return errors.Join(err, fmt.Errorf("it is there: %v", ok))
		}
		if envelope, err = Sign(Signer(ring), u.Deletion); err != nil {
			return err
		}
		if _, why, err := event.CutOf(tx, made.AccountID); err != nil || why != "" {
			m.t.Error("its chain:", why, err)
		}
		return Finish(tx, u, envelope, tx.Now)
	})
	if err != nil {
		m.t.Fatal(err)
	}
	said, err := Verify(envelope, Signer(ring).Public().(ed25519.PublicKey))
	if err != nil || said.Archive != sum || said.Removed["tasks"] != 1 || said.Removed["users"] != 1 || said.People != 1 ||
		said.Stays["audit_heads"].Rows != 1 {
		m.t.Errorf("%+v %v", said, err)
	}
}
