package db_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
)

type status string

type labels struct {
	Names []string
}

type thing struct {
	ID        string
	OwnerID   *string
	Status    status
	Size      int64
	Count     int `db:"n"`
	Done      bool
	Note      *string
	Data      []byte
	Labels    db.JSON[labels]
	Extra     *db.JSON[labels]
	CreatedAt time.Time
	EndedAt   *time.Time
	Unstored  chan int `db:"-"`
}

const thingColumns = `id, owner_id, status, size, n, done, note, data, labels, extra, created_at, ended_at`

var (
	createOwner = db.S(`CREATE TABLE owner (id TEXT PRIMARY KEY)`)
	createThing = db.S(`CREATE TABLE thing (
		id TEXT PRIMARY KEY,
		owner_id TEXT REFERENCES owner (id),
		status TEXT NOT NULL,
		size BIGINT NOT NULL,
		n BIGINT NOT NULL,
		done BOOLEAN NOT NULL,
		note TEXT UNIQUE,
		data BYTEA,
		labels TEXT NOT NULL,
		extra TEXT,
		created_at BIGINT NOT NULL,
		ended_at BIGINT)`)

	insertThing = db.SWith[thing](`INSERT INTO thing (` + thingColumns + `)
		VALUES (:id, :owner_id, :status, :size, :n, :done, :note, :data, :labels, :extra,
		:created_at, :ended_at)`)
	getThing    = db.Q[thing](`SELECT ` + thingColumns + ` FROM thing WHERE id = $1`)
	lockThing   = getThing.ForUpdate()
	allThings   = db.Q[thing](`SELECT ` + thingColumns + ` FROM thing ORDER BY id`)
	skipLocked  = allThings.SkipLocked()
	thingIDs    = db.Q[string](`SELECT id FROM thing ORDER BY id`)
	thingExists = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM thing WHERE id = $1)`)
	thingTime   = db.Q[time.Time](`SELECT created_at FROM thing WHERE id = $1`)
	countThings = db.Q[int64](`SELECT count(*) FROM thing`)
	renameThing = db.Q[string](`UPDATE thing SET note = $2 WHERE id = $1 RETURNING id`)
	finishThing = db.S(`UPDATE thing SET done = TRUE WHERE NOT done`)
)

func put(tx *db.Tx, v thing) error {
	_, err := insertThing.Exec(tx, v)
	return err
}

// run gives each engine a database with the tables of these tests.
func run(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		createTables(t, d)
		fn(t, d)
	})
}

func createTables(t testing.TB, d *db.DB) {
	t.Helper()
	write(t, d, func(tx *db.Tx) error {
		_, err := createOwner.Exec(tx)
		if err == nil {
			_, err = createThing.Exec(tx)
		}
		return err
	})
}

func write(t testing.TB, d *db.DB, fn func(*db.Tx) error) {
	t.Helper()
	if err := d.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func read[T any](t testing.TB, d *db.DB, fn func(*db.Tx) (T, error)) (out T) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
		out, err = fn(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func ids(t testing.TB, d *db.DB) []string {
	t.Helper()
	return read(t, d, func(tx *db.Tx) ([]string, error) { return thingIDs.All(tx) })
}

var epoch = time.Date(2031, 2, 3, 4, 5, 6, 789012000, time.UTC)

func TestRowsComeBackAsTheyWere(t *testing.T) {
	ended, note := epoch.Add(time.Microsecond), "a note with 'quotes' and é"
	full := thing{
		ID: "full", Status: "open", Size: -1 << 62, Count: 3, Done: true, Note: &note, Data: []byte{0, 1, 255},
		Labels: db.JSON[labels]{V: labels{Names: []string{"x", "y"}}}, Extra: &db.JSON[labels]{},
		CreatedAt: epoch, EndedAt: &ended,
	}
	empty := thing{ID: "empty"}
	run(t, func(t *testing.T, d *db.DB) {
		write(t, d, func(tx *db.Tx) error { return errors.Join(put(tx, full), put(tx, empty)) })
		got := read(t, d, func(tx *db.Tx) ([]thing, error) { return allThings.All(tx) })
		if diff := cmp.Diff([]thing{empty, full}, got); diff != "" {
			t.Error(diff)
		}
		if at := read(t, d, func(tx *db.Tx) (time.Time, error) { return thingTime.One(tx, "full") }); at != epoch {
			t.Errorf("time alone: %v", at)
		}
		if !read(t, d, func(tx *db.Tx) (bool, error) { return thingExists.One(tx, "full") }) {
			t.Error("bool alone: false")
		}
	})
}

func TestOneMaybeAllExec(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		write(t, d, func(tx *db.Tx) error {
			if n, err := countThings.One(tx); n != 0 || err != nil {
				t.Errorf("count of nothing: %d, %v", n, err)
			}
			if _, err := getThing.One(tx, "a"); !errors.Is(err, db.ErrNoRows) || !strings.Contains(err.Error(), "query_test.go:") {
				t.Errorf("One without a row: %v", err)
			}
			if _, ok, err := getThing.Maybe(tx, "a"); ok || err != nil {
				t.Errorf("Maybe without a row: %v, %v", ok, err)
			}
			if rows, err := allThings.All(tx); rows != nil || err != nil {
				t.Errorf("All without a row: %v, %v", rows, err)
			}
			for _, id := range []string{"a", "b"} {
				if err := put(tx, thing{ID: id}); err != nil {
					return err
				}
			}
			if _, err := lockThing.One(tx, "a"); err != nil {
				return err
			}
			if rows, err := skipLocked.All(tx); len(rows) != 2 || err != nil {
				t.Errorf("skip locked: %v, %v", rows, err)
			}
			if id, err := renameThing.One(tx, "b", "new"); id != "b" || err != nil {
				t.Errorf("RETURNING: %q, %v", id, err)
			}
			n, err := finishThing.Exec(tx)
			if n != 2 {
				t.Errorf("%d rows changed, want 2", n)
			}
			return err
		})
		err := d.Read(t.Context(), func(tx *db.Tx) error {
			_, err := thingIDs.One(tx)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "more than one row") {
			t.Errorf("One with two rows: %v", err)
		}
	})
}

type narrow struct{ ID, Missing string }

type twice struct {
	ID    string
	Other string `db:"id"`
}

var (
	unknownColumn = db.Q[narrow](`SELECT id, note AS missing, size FROM thing`)
	emptyField    = db.Q[narrow](`SELECT id FROM thing`)
	twoFields     = db.Q[twice](`SELECT id FROM thing`)
	sameColumn    = db.Q[narrow](`SELECT id, id, note AS missing FROM thing`)
	twoScalars    = db.Q[string](`SELECT id, note FROM thing`)
	nullScalar    = db.Q[string](`SELECT note FROM thing`)
)

func TestColumnsAndFieldsMatchBothWays(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "a"}) })
		for name, all := range map[string]func(*db.Tx) error{
			"column size has no field":  func(tx *db.Tx) error { _, err := unknownColumn.All(tx); return err },
			"no column for the field":   func(tx *db.Tx) error { _, err := emptyField.All(tx); return err },
			"two fields of":             func(tx *db.Tx) error { _, err := twoFields.All(tx); return err },
			"column id has no field":    func(tx *db.Tx) error { _, err := sameColumn.All(tx); return err },
			"2 columns (id, note)":      func(tx *db.Tx) error { _, err := twoScalars.All(tx); return err },
			"converting NULL to string": func(tx *db.Tx) error { _, err := nullScalar.All(tx); return err },
		} {
			if err := d.Read(t.Context(), all); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want %q", err, name)
			}
		}
	})
}

func TestArgumentsThatCannotBeStored(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		for _, arg := range []any{struct{}{}, map[string]int{}, []string{"a"}} {
			err := d.Read(t.Context(), func(tx *db.Tx) error {
				_, err := thingExists.One(tx, arg)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), "cannot be stored") {
				t.Errorf("%T: %v", arg, err)
			}
		}
		for _, arg := range []any{"a\x00b", status("\x00"), "a\xffb", status("\xc3")} {
			err := d.Read(t.Context(), func(tx *db.Tx) error {
				_, err := thingExists.One(tx, arg)
				return err
			})
			if !fault.IsKind(err, fault.Invalid) {
				t.Errorf("%q: %v", arg, err)
			}
		}
	})
}

func TestUniqueAndForeign(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		note, nobody := "same", "nobody"
		write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "a", Note: &note}) })
		for name, c := range map[string]struct {
			row             thing
			unique, foreign bool
		}{
			"primary key": {row: thing{ID: "a"}, unique: true},
			"unique":      {row: thing{ID: "b", Note: &note}, unique: true},
			"foreign key": {row: thing{ID: "b", OwnerID: &nobody}, foreign: true},
		} {
			err := d.Write(t.Context(), func(tx *db.Tx) error { return put(tx, c.row) })
			if db.IsUnique(err) != c.unique || db.IsForeign(err) != c.foreign {
				t.Errorf("%s: %v", name, err)
			}
		}
		if db.IsUnique(nil) || db.IsForeign(db.ErrNoRows) {
			t.Error("other errors are violations")
		}
	})
}

func TestBuild(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		write(t, d, func(tx *db.Tx) error {
			for i, id := range []string{"a", "b", "c", "d"} {
				note := "100%_" + strings.ToUpper(id)
				err := put(tx, thing{ID: id, Status: status([]string{"open", "closed"}[i%2]), Note: &note,
					CreatedAt: epoch.Add(time.Duration(i/2) * time.Hour)})
				if err != nil {
					return err
				}
			}
			return nil
		})
		list := func() *db.Builder { return db.Build("SELECT id FROM thing WHERE done = ", false) }
		for _, c := range []struct {
			built *db.Builder
			want  string
		}{
			{list(), "a b c d"},
			{list().And("status = ", "open"), "a c"},
			{list().In("id", []string{"a", "b", "c"}), "a b c"},
			{list().In("id", nil), ""},
			{list().Contains("note", "%_b"), "b"},
			{list().Contains("note", "%b"), ""},
			{list().And("(created_at, id) > ", db.Tuple(epoch, "b")), "c d"},
			{list().And("(id = ", "a").SQL(" OR id IN (", "d", "'; DROP TABLE thing; --").SQL("))"), "a d"},
		} {
			got := read(t, d, func(tx *db.Tx) ([]string, error) {
				return db.Select[string](tx, c.built.SQL(" ORDER BY id LIMIT ", 10))
			})
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		}
	})
}

var (
	putThing = db.SWith[thing](`INSERT INTO thing (id, owner_id, status, size, n, done, note, data, labels, extra, created_at, ended_at)
		VALUES (:id, :owner_id, :status, :size, :n, :done, :note, :data, :labels, :extra, :created_at, :ended_at)`)
	thingOfSize = db.QWith[sized, thing](`SELECT ` + thingColumns +
		` FROM thing WHERE size >= :from AND size <= :to AND :to >= :from ORDER BY id`)
)

type sized struct{ From, To int64 }

// TestNamed holds that named parameters reach the columns of their names, in
// whatever order they stand and however often.
func TestNamed(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		note := "n"
		want := thing{ID: "a", Status: "new", Size: 3, Count: 7, Done: true, Note: &note, Data: []byte{1},
			CreatedAt: time.UnixMicro(5).UTC()}
		var got []thing
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			if _, err := putThing.Exec(tx, want); err != nil {
				return err
			}
			all, err := thingOfSize.All(tx, sized{From: 2, To: 3})
			if err != nil {
				return err
			}
			got = all
			one, ok, err := thingOfSize.Maybe(tx, sized{From: 4, To: 9})
			if ok {
				t.Errorf("found %+v", one)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]thing{want}, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Unstored" },
			cmp.Ignore())); diff != "" {
			t.Error(diff)
		}
	})
}
