package app

import (
	"errors"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

// sameLogin changes an account to what it is, and so locks its row.
var sameLogin = db.S(`UPDATE accounts SET login = login WHERE id = $1`)

// TestRetriesAreCounted holds that the page for operators counts transactions that
// were run again because another one was in their way.
func TestRetriesAreCounted(t *testing.T) {
	t.Parallel()
	collisions := map[db.Engine]func(y *yard, a, b string){db.SQLite: shareACommit, db.Postgres: deadlock}
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			collide := collisions[e]
			y := boot(t, e, "--metrics-listen", "127.0.0.1:0")
			a, b := y.tenant("a"), y.tenant("b")
			before := y.retries()
			patience.Until(y.t, "a transaction that was run again is counted", func() bool {
				collide(y, a, b)
				return y.retries() > before
			})
		})
	}
}

// shareACommit has two writers of SQLite share a commit, if the second is quick
// enough, and the second fail after a change: both are undone, and the first is run
// again.
func shareACommit(y *yard, a, b string) {
	fails := errors.New("fails after a change")
	var second sync.WaitGroup
	var begin sync.Once
	y.in(a, func(tx *db.Tx) error {
		if _, err := sameLogin.Exec(tx, a); err != nil {
			return err
		}
		begin.Do(func() {
			begun := make(chan struct{})
			second.Go(func() {
				close(begun)
				err := y.db.Write(db.WithAccount(y.t.Context(), b), func(tx *db.Tx) error {
					_, err := sameLogin.Exec(tx, b)
					return errors.Join(fails, err)
				})
				if !errors.Is(err, fails) {
					y.t.Error(err)
				}
			})
			<-begun
		})
		_, err := sameLogin.Exec(tx, a) // meanwhile the second gets in line
		return err
	})
	second.Wait()
}

// deadlock has two transactions of PostgreSQL each hold a row that the other wants:
// the server ends one of them, which is run again.
func deadlock(y *yard, a, b string) {
	var both, holding sync.WaitGroup
	holding.Add(2)
	for _, order := range [][2]string{{a, b}, {b, a}} {
		both.Go(func() {
			var first sync.Once
			err := y.db.Write(db.WithAccount(y.t.Context(), a), func(tx *db.Tx) error {
				if _, err := sameLogin.Exec(tx, order[0]); err != nil {
					return err
				}
				first.Do(func() {
					holding.Done()
					holding.Wait()
				})
				_, err := sameLogin.Exec(tx, order[1])
				return err
			})
			if err != nil {
				y.t.Error(err)
			}
		})
	}
	both.Wait()
}

var retriesLine = regexp.MustCompile(`(?m)^yardmaster_database_retries_total (\d+)$`)

// retries reads how many transactions were run again.
func (y *yard) retries() int {
	y.t.Helper()
	page := y.metricsPage()
	found := retriesLine.FindStringSubmatch(page)
	if found == nil {
		y.t.Fatalf("no count of retries in %s", page)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		y.t.Fatal(err)
	}
	return n
}
