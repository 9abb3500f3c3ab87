package db_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

// line starts n writers on SQLite while another holds the baton, releases it when
// all wait in line, and waits for all. Their functions get their number. The last
// error is that of the writer that held the baton, a member of the first group.
func line(t *testing.T, d *db.DB, n int, fn func(tx *db.Tx, i int) error) []error {
	t.Helper()
	errs := make([]error, n+1)
	var wg sync.WaitGroup
	var lined bool
	errs[n] = d.Write(t.Context(), func(*db.Tx) error {
		if lined {
			return nil // its group has to run again
		}
		lined = true
		for i := range n {
			wg.Go(func() { errs[i] = d.Write(t.Context(), func(tx *db.Tx) error { return fn(tx, i) }) })
		}
		if !patience.Come(t, func() bool { return db.Waiting(d) == n }) {
			return errors.New("not all writers came to wait")
		}
		return nil
	})
	wg.Wait()
	return errs
}

func TestOnlyTheFailedWriterOfManyIsUndone(t *testing.T) {
	const n, bad, panics, leaves = 60, 7, 8, 9
	run(t, func(t *testing.T, d *db.DB) {
		errs := make([]error, n)
		var mu sync.Mutex
		committed := map[int]bool{}
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				defer func() {
					if got := recover(); (got != nil) != (i == panics) {
						t.Errorf("writer %d recovered %v", i, got)
					}
				}()
				errs[i] = d.Write(t.Context(), func(tx *db.Tx) error {
					if err := put(tx, thing{ID: fmt.Sprintf("%03d", i)}); err != nil {
						return err
					}
					tx.AfterCommit(func() {
						mu.Lock()
						defer mu.Unlock()
						committed[i] = true
					})
					switch i {
					case bad:
						return errUndo
					case panics:
						panic("boom")
					case leaves:
						runtime.Goexit()
					}
					return nil
				})
			})
		}
		wg.Wait()
		kept := map[string]bool{}
		for _, id := range ids(t, d) {
			kept[id] = true
		}
		for i := range n {
			lost := i == bad || i == panics || i == leaves
			if kept[fmt.Sprintf("%03d", i)] == lost || committed[i] == lost {
				t.Errorf("writer %d: row %v, AfterCommit %v", i, kept[fmt.Sprintf("%03d", i)], committed[i])
			}
			if (i == bad) != errors.Is(errs[i], errUndo) {
				t.Errorf("writer %d: %v", i, errs[i])
			}
		}
	})
}

var readSize = db.Q[int64](`SELECT n FROM thing WHERE id = 'counter'`)
var setSize = db.S(`UPDATE thing SET n = $1 WHERE id = 'counter'`)

func TestWritersInLineShareCommits(t *testing.T) {
	d := dbtest.SQLite(t)
	createTables(t, d)
	write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "counter"}) })
	const n = 2 * db.MaxGroup
	groups := map[any]int{} // writers run one after another
	for _, err := range line(t, d, n, func(tx *db.Tx, _ int) error {
		groups[db.GroupOf(tx)]++
		v, err := readSize.One(tx)
		if err != nil {
			return err
		}
		_, err = setSize.Exec(tx, v+1)
		return err
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := read(t, d, func(tx *db.Tx) (int64, error) { return readSize.One(tx) }); got != n {
		t.Errorf("counted %d of %d", got, n)
	}
	// The writer that held the baton was the first member of the first group.
	if len(groups) != 3 {
		t.Errorf("%d writers shared %d commits, want 3", n, len(groups))
	}
}

var (
	createParent = db.S(`CREATE TABLE parent (id TEXT PRIMARY KEY)`)
	createChild  = db.S(`CREATE TABLE child (id TEXT PRIMARY KEY,
		parent_id TEXT REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`)
	insertOrphan = db.S(`INSERT INTO child (id, parent_id) VALUES ($1, 'none')`)
)

func createFamily(tx *db.Tx) error {
	if _, err := createParent.Exec(tx); err != nil {
		return err
	}
	_, err := createChild.Exec(tx)
	return err
}

// TestFailedCommit uses a deferred foreign key, which only COMMIT checks.
func TestFailedCommit(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		write(t, d, createFamily)
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			tx.AfterCommit(func() { t.Error("AfterCommit ran") })
			_, err := insertOrphan.Exec(tx, "a")
			return err
		})
		if !db.IsForeign(err) {
			t.Error(err)
		}
		write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "next"}) })
	})
}

func TestFailedCommitFailsItsWholeGroup(t *testing.T) {
	d := dbtest.SQLite(t)
	createTables(t, d)
	write(t, d, createFamily)
	errs := line(t, d, 5, func(tx *db.Tx, i int) error {
		tx.AfterCommit(func() { t.Error("AfterCommit ran") })
		switch i {
		case 2:
			_, err := insertOrphan.Exec(tx, "a")
			return err
		case 3:
			return errUndo
		}
		return put(tx, thing{ID: fmt.Sprint(i)})
	})
	for i, err := range errs {
		if !db.IsForeign(err) {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "next"}) })
	if got := ids(t, d); len(got) != 1 {
		t.Errorf("rows %v, want only next", got)
	}
}

func TestCancelledWriterLeavesTheLine(t *testing.T) {
	d := dbtest.SQLite(t)
	createTables(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	write(t, d, func(*db.Tx) error {
		waits := make(chan error)
		go func() {
			waits <- d.Write(ctx, func(*db.Tx) error {
				t.Error("ran after its context")
				return nil
			})
		}()
		if !patience.Come(t, func() bool { return db.Waiting(d) == 1 }) {
			return errors.New("the writer does not wait")
		}
		cancel()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		return nil
	})
	write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "next"}) })
}

var (
	pageCount = db.Q[int64](`PRAGMA page_count`)
	capPages  = db.Q[int64](`PRAGMA max_page_count = 1`) // SQLite makes it the present size
	freePages = db.Q[int64](`PRAGMA max_page_count = 1000000`)
)

// TestFullDiskLosesNothingAcknowledged holds that on a full disk the writer that
// needs space fails, and that nothing that SQLite then undoes by itself was
// acknowledged.
func TestFullDiskLosesNothingAcknowledged(t *testing.T) {
	d := dbtest.SQLite(t)
	createTables(t, d)
	write(t, d, func(tx *db.Tx) error {
		_, err := capPages.One(tx)
		return err
	})
	big := make([]byte, 1<<20)
	errs := line(t, d, 9, func(tx *db.Tx, i int) error {
		row := thing{ID: fmt.Sprint(i)}
		if i == 4 {
			row.Data = big
		}
		return put(tx, row)
	})
	if errs[4] == nil {
		pages := read(t, d, func(tx *db.Tx) (int64, error) { return pageCount.One(tx) })
		t.Fatalf("a megabyte fits into %d pages", pages)
	}
	kept := map[string]bool{}
	for _, id := range ids(t, d) {
		kept[id] = true
	}
	for i, err := range errs[:9] {
		if kept[fmt.Sprint(i)] != (err == nil) {
			t.Errorf("writer %d: row %v, error %v", i, kept[fmt.Sprint(i)], err)
		}
	}
	write(t, d, func(tx *db.Tx) error {
		if _, err := freePages.One(tx); err != nil {
			return err
		}
		return put(tx, thing{ID: "next", Data: big})
	})
}
