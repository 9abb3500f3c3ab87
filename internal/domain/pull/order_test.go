package pull

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

// Transactions that begin with the task of a pull request and those that begin with the
// pull request lock both in one order. PostgreSQL would break a circle of locks, and a
// transaction would run again.
func TestOneOrderOfLocks(t *testing.T) {
	t.Parallel()
	y := open(t, db.Postgres)
	y.policy("version: 1\nmerge: {mode: auto}\nchecks: {command: make}\n")
	task := "task-x"
	y.write(func(tx *db.Tx) error {
		err := seed.Add(tx, seed.Task{ID: task, Account: "acme", Repo: y.repo, Status: "running", Branch: new("")})
		return err
	})
	var check atomic.Value // the latest
	y.queue = func(tx *db.Tx) (string, error) {
		task := id.New()
		tx.AfterCommit(func() { check.Store(task) })
		return task, nil
	}
	event.Detach(y.DB)
	ci.Ended.On(y.DB, func(tx *db.Tx, e ci.End) error { return y.CheckEnded(tx, CheckEnd(e)) })
	for _, signal := range []event.Signal[record.Progress]{record.TaskAwaits, record.TaskMergeable, record.TaskMerged,
		record.TaskAwaitsReview} {
		signal.On(y.DB, func(tx *db.Tx, p record.Progress) error { _, err := seed.TouchTask.Exec(tx, p.TaskID); return err })
	}
	prID := y.propose("x", y.commit("x", "x", "x\n"))

	var again atomic.Int64
	write := func(fn func(tx *db.Tx) error) error {
		runs := int64(0)
		err := y.DB.Write(y.ctx(), func(tx *db.Tx) error { runs++; return fn(tx) })
		again.Add(runs - 1)
		return err
	}
	head := new(atomic.Int64)
	sha := func() string { return fmt.Sprintf("%040x", head.Add(1)) }
	ref := func(tx *db.Tx) (repo.Ref, error) { r, _, err := repo.ByID(tx, y.repo); return r, err }
	ctx := patience.Context(t)
	var all sync.WaitGroup
	for name, step := range map[string]func(tx *db.Tx) error{
		"a box delivers": func(tx *db.Tx) error { // the task is locked, as by the end of its run
			if _, err := record.LockTask.One(tx, "acme", task); err != nil {
				return err
			}
			r, err := ref(tx)
			if err != nil {
				return err
			}
			_, err = y.Propose(tx, r, Proposal{TaskID: task, Branch: "x", HeadSHA: sha(), BaseSHA: codehost.ZeroSHA})
			return err
		},
		"a push arrives": func(tx *db.Tx) error {
			r, err := ref(tx)
			if err != nil {
				return err
			}
			return y.OnPush(tx, r, "x", sha(), "user:ann")
		},
		"a check ends": func(tx *db.Tx) error {
			zero := 0
			return y.ci.Finish(tx, ci.Outcome{TaskID: check.Load().(string), RunID: "r", BoxID: "b", ExitCode: &zero})
		},
		"the task is cancelled": func(tx *db.Tx) error {
			if _, err := record.LockTask.One(tx, "acme", task); err != nil {
				return err
			}
			return y.Abandon(tx, prID, task)
		},
		"a merge fails": func(tx *db.Tx) error {
			a, open, err := record.OpenAction.Maybe(tx, prID)
			if err != nil || !open {
				return err
			}
			return y.GiveUp(tx, a.ID, "nodes died of it")
		},
	} {
		for range 2 {
			all.Go(func() {
				for range 40 {
					if err := write(step); err != nil || ctx.Err() != nil {
						t.Errorf("%s: %v, %v", name, err, ctx.Err())
						return
					}
				}
			})
		}
	}
	all.Wait()
	if n := again.Load(); n > 0 {
		t.Errorf("%d transactions had to run again", n)
	}
}

var lockAccount = db.Q[string](`SELECT id FROM accounts WHERE id = $1`).ForUpdate()

// Two transactions that both refer to a row may both lock the row afterwards: here the
// account, whose queue of tasks is counted.
func TestReferringDoesNotLock(t *testing.T) {
	t.Parallel()
	y := open(t, db.Postgres)
	y.policy("version: 1\nchecks: {command: make}\n")
	var both sync.WaitGroup
	both.Add(2)
	y.queue = func(tx *db.Tx) (string, error) {
		both.Done()
		both.Wait() // each has opened its pull request
		_, err := lockAccount.One(tx, "acme")
		return id.New(), err
	}
	var runs atomic.Int64
	var all sync.WaitGroup
	for _, name := range []string{"one", "other"} {
		var repoID string
		y.write(func(tx *db.Tx) (err error) {
			repoID, err = repo.Install(tx, at(name), "main", true)
			if err == nil {
				_, err = seed.SetPolicy.Exec(tx, repoID, "version: 1\nchecks: {command: make}\n")
			}
			return err
		})
		all.Go(func() {
			err := y.DB.Write(y.ctx(), func(tx *db.Tx) error {
				if runs.Add(1) > 2 {
					return errors.New("it runs again")
				}
				r, _, err := repo.ByID(tx, repoID)
				if err != nil {
					return err
				}
				_, err = y.Propose(tx, r, Proposal{TaskID: name, Branch: name, HeadSHA: fmt.Sprintf("%040x", 1), BaseSHA: codehost.ZeroSHA})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
