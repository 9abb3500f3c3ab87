package db_test

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// The statements TestDeclaredStatementsAreChecked is about, and no others, are
// declared in this file.
var (
	_ = db.Q[narrow](`SELECT id, note AS missing, size FROM thing`)
	_ = db.Q[narrow](`UPDATE thing SET note = $1 WHERE id = $2 RETURNING id`)
	_ = db.Q[string](`SELECT id FROM absent`)
	_ = db.Q[string](`SELECT id FROM thing WHERE`)
	_ = db.Q[string](`DELETE FROM thing`)
	_ = db.S(`DELETE FROM thing WHERE absent = 1`)
	_ = db.Q[narrow](`SELECT id, note AS missing FROM thing WHERE id = $2 AND size = $1`)
	_ = db.Q[narrow](`INSERT INTO owner (id) VALUES ($1) RETURNING id, 'x' AS missing`)
	_ = db.S(`DELETE FROM thing WHERE id = $1`)
	_ = db.SWith[keyed](`DELETE FROM thing WHERE id = :id AND note = :note AND id = ':id'`)
	_ = db.SWith[keyed](`DELETE FROM thing WHERE id = :id`)
	_ = db.SWith[keyed](`DELETE FROM thing WHERE id = :id AND note = :note AND size = :absent`)
	_ = db.QWith[keyed, string](`UPDATE thing SET size = :note WHERE id = :id RETURNING id`)
	_ = db.QWith[thing, string](`UPDATE thing SET size = :size WHERE id = :id RETURNING id`)
)

type keyed struct {
	ID   string
	Note *string
}

// In the order of the declarations; the rest is right.
var complaints = []string{
	"column size has no field",
	"no column for the field missing",
	"absent",
	"syntax", // SQLite says "incomplete input"
	"without columns",
	"absent",
	"the field Note of db_test.keyed is no parameter",
	":absent has no field in db_test.keyed",
	"the parameter :note takes integer and is bound to a *string", // as PostgreSQL says
}

func TestDeclaredStatementsAreChecked(t *testing.T) {
	var mine []db.Declaration
	for _, d := range db.Declared() {
		if strings.HasPrefix(d.At, "db/declared_test.go:") {
			mine = append(mine, d)
		}
	}
	if len(mine) != 14 {
		t.Fatalf("%d declarations, want 14", len(mine))
	}
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			dsn := dbtest.DSN(t, e)
			createTables(t, dbtest.Open(t, dsn, db.Options{}))
			errs := dbtest.Check(t, e, dsn, mine)
			complaints := complaints
			if e == db.SQLite {
				complaints = complaints[:len(complaints)-1] // any value goes anywhere
			}
			if len(errs) != len(complaints) {
				t.Fatalf("%d complaints, want %d: %v", len(errs), len(complaints), errs)
			}
			for i, want := range complaints {
				got := strings.Replace(errs[i].Error(), "incomplete input", "syntax", 1)
				if !strings.Contains(got, want) || i < 6 && !strings.HasPrefix(got, mine[i].At) {
					t.Errorf("got %v, want %s", got, want)
				}
			}
		})
	}
}
