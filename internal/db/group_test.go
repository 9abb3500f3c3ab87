package db_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// line starts n writers while another holds the database, so that on SQLite
// they form one group, and waits for all. Their functions get their number.
func line(t *testing.T, d *db.DB, n int, fn func(tx *db.Tx, i int) error) []error {
	t.Helper()
	errs := make([]error, n)
	held, free := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		write(t, d, func(*db.Tx) error {
			close(held)
			<-free
			return nil
		})
	})
	<-held
	for i := range n {
		wg.Go(func() { errs[i] = d.Write(t.Context(), func(tx *db.Tx) error { return fn(tx, i) }) })
	}
	close(free)
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

func TestWritersAreOneAfterAnotherOnSQLite(t *testing.T) {
	d := dbtest.SQLite(t)
	createTables(t, d)
	write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "counter"}) })
	const n = 300 // more than one group
	for _, err := range line(t, d, n, func(tx *db.Tx, _ int) error {
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
}

var childTables = []db.Stmt{
	db.S(`CREATE TABLE parent (id TEXT PRIMARY KEY)`),
	db.S(`CREATE TABLE child (id TEXT PRIMARY KEY, parent_id TEXT REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`),
}

var insertOrphan = db.S(`INSERT INTO child (id, parent_id) VALUES ($1, 'none')`)

// A deferred foreign key is checked by COMMIT: the whole group is lost, every
// member learns it and nobody's AfterCommit runs.
func TestFailedCommitFailsAll(t *testing.T) {
	run(t, func(t *testing.T, d *db.DB) {
		write(t, d, func(tx *db.Tx) error {
			for _, s := range childTables {
				if _, err := s.Exec(tx); err != nil {
					return err
				}
			}
			return nil
		})
		errs := line(t, d, 5, func(tx *db.Tx, i int) error {
			tx.AfterCommit(func() { t.Error("AfterCommit ran") })
			_, err := insertOrphan.Exec(tx, fmt.Sprint(i))
			return err
		})
		for i, err := range errs {
			if !db.IsForeign(err) {
				t.Errorf("writer %d: %v", i, err)
			}
		}
		write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "next"}) })
	})
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
		cancel()
		select {
		case err := <-waits:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("waits on after its context")
		}
		return nil
	})
	write(t, d, func(tx *db.Tx) error { return put(tx, thing{ID: "next"}) })
}
