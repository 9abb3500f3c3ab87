package plan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/chance"
	"yardmaster/internal/proof/patience"
)

// counted is write, and counts how often fn runs: more than once is a deadlock
// that PostgreSQL broke. A refusal is no failure.
func (f *fixture) counted(runs *atomic.Int64, fn func(tx *db.Tx) error) {
	err := f.DB.Write(db.WithAccount(context.Background(), "acme"), func(tx *db.Tx) error {
		runs.Add(1)
		return fn(tx)
	})
	if _, refused := errors.AsType[*fault.Error](err); err != nil && !refused {
		f.t.Error(err)
	}
}

// blocked waits until a transaction waits for a lock of another.
func (f *fixture) blocked() {
	f.t.Helper()
	patience.Until(f.t, "a transaction waits for a lock", func() bool {
		var n []int64
		err := f.DB.Read(context.Background(), func(tx *db.Tx) (err error) {
			n, err = db.Select[int64](tx, db.Build(`SELECT COUNT(*) AS n FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
				WHERE NOT l.granted AND a.datname = current_database()`))
			return err
		})
		if err != nil {
			f.t.Fatal(err)
		}
		return n[0] > 0
	})
}

func (f *fixture) stopped(planID string) func(*db.Tx) error {
	return func(tx *db.Tx) error {
		p, n, err := lock(tx, planID)
		if err == nil {
			_, err = f.stop(tx, &p, n)
		}
		return err
	}
}

// moving locks a task, waits until another transaction waits, and then does fn.
func moving(id string, wait func(), fn func(*db.Tx, *task.Row) error) func(*db.Tx) error {
	return func(tx *db.Tx) error {
		t, ok, err := task.Lock(tx, "acme", id)
		if err != nil || !ok {
			return fmt.Errorf("task %s: %v %w", id, ok, err)
		}
		if wait != nil {
			wait()
		}
		return fn(tx, &t)
	}
}

// TestLockOrder holds that of two transactions that meet halfway the second
// waits for the first, and never both for each other.
func TestLockOrder(t *testing.T) {
	t.Parallel()
	type meeting struct {
		holder string // moves this task
		do     func(*db.Tx, *task.Row) error
		other  func(*db.Tx) error
	}
	groups := func(f *fixture, planID string) (ids []string) {
		for _, g := range f.plan(planID).Groups {
			ids = append(ids, g.Tasks[0].ID)
		}
		return ids
	}
	kill := func(f *fixture) func(*db.Tx, *task.Row) error {
		return func(tx *db.Tx, t *task.Row) error { return f.Tasks.Fail(tx, t, task.RunTimeout, "By a test.") }
	}
	for name, set := range map[string]func(*fixture) meeting{
		"the end of a scout, the end of its plan": func(f *fixture) meeting {
			f.live()
			a := f.call("POST", "/v1/plans", object{"repo": "acme/web", "ask": "Do it."}, 202)
			scout := a["task_id"].(string)
			f.run(scout)
			return meeting{scout, f.Tasks.Complete, f.stopped(a["plan_id"].(string))}
		},
		"a failure, the end of its plan": func(f *fixture) meeting {
			planID := f.draw(false, nil, []int{0}, []int{1})
			ids := groups(f, planID)
			f.run(ids[0])
			return meeting{ids[0], kill(f), f.stopped(planID)}
		},
		"a failure on one side of a diamond, one at its head": func(f *fixture) meeting {
			ids := groups(f, f.draw(false, nil, []int{0}, []int{0}, []int{1, 2}))
			f.run(ids[0])
			return meeting{ids[2], f.Tasks.Cancel, moving(ids[0], nil, kill(f))}
		},
		"back into the queue, what it waits for fails": func(f *fixture) meeting {
			up, down := f.newTask(), f.newTask()
			f.run(up)
			f.run(down)
			f.change(down, func(tx *db.Tx, t *task.Row) error {
				_, err := f.Tasks.Relink(tx, t, []string{up}, nil)
				return err
			})
			return meeting{down, func(tx *db.Tx, t *task.Row) error { return f.Tasks.Requeue(tx, t, "test") }, moving(up, nil, kill(f))}
		},
		"a repair of a task's work, one that is to wait for it": func(f *fixture) meeting {
			f.queueCap(100)
			up := f.newTask()
			create := func(tx *db.Tx, dependsOn ...string) error {
				r, err := repoByID(tx, "repo-web")
				if err != nil {
					return err
				}
				_, err = f.Tasks.Create(tx, r, task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: "Another", Problem: "p",
					Template: "default", DependsOn: dependsOn})
				return err
			}
			return meeting{up, func(tx *db.Tx, _ *task.Row) error { return create(tx) }, func(tx *db.Tx) error { return create(tx, up) }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, db.Postgres)
			m := set(f)
			var runs atomic.Int64
			var both sync.WaitGroup
			met := sync.OnceFunc(func() {
				both.Go(func() { f.counted(&runs, m.other) })
				f.blocked()
			})
			both.Go(func() { f.counted(&runs, moving(m.holder, met, m.do)) })
			both.Wait()
			if n := runs.Load(); n != 2 {
				t.Errorf("%d runs of two transactions", n)
			}
		})
	}
}

// TestNoDeadlocks runs everything that decides about plans and everything that
// moves their tasks at full speed, on PostgreSQL: no two ever wait for each
// other.
func TestNoDeadlocks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, db.Postgres)
	f.queueCap(10_000)
	f.seats = 1000
	f.live()
	const turns, workers = 60, 6
	var plans [4]atomic.Pointer[string]
	redraw := func(i int) {
		id := f.draw(false, nil, []int{0}, []int{0}, []int{1, 2}, []int{3}, nil)
		plans[i].Store(&id)
	}
	for i := range plans {
		redraw(i)
	}
	var runs, calls atomic.Int64
	do := func(fn func(tx *db.Tx) error) {
		calls.Add(1)
		f.counted(&runs, fn)
	}
	anyTask := func(r *rand.Rand) (task.Row, bool) {
		var all []task.Row
		err := f.DB.Read(db.WithAccount(context.Background(), "acme"), func(tx *db.Tx) (err error) {
			all, err = task.OfPlan(tx, *plans[r.IntN(len(plans))].Load())
			return err
		})
		if err != nil || len(all) == 0 {
			return task.Row{}, false
		}
		return all[r.IntN(len(all))], true
	}
	seed := chance.Seed(t)
	var all sync.WaitGroup
	for w := range workers {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		all.Go(func() {
			for range turns {
				f.clock.Add(1)
				t, ok := anyTask(r)
				if !ok {
					continue
				}
				move := func(do func(*db.Tx, *task.Row) error, from ...task.Status) func(*db.Tx) error {
					return moving(t.ID, nil, func(tx *db.Tx, t *task.Row) error {
						if !slices.Contains(from, t.Status) {
							return nil
						}
						return do(tx, t)
					})
				}
				switch r.IntN(9) {
				case 0:
					i := r.IntN(len(plans))
					do(f.stopped(*plans[i].Load()))
					redraw(i)
				case 1, 2:
					do(func(tx *db.Tx) error {
						t, err := f.queue.Claimable(tx, "box")
						if err != nil || t == nil {
							return err
						}
						if err := f.Tasks.MarkClaimed(tx, t, "run", "box"); err != nil {
							return err
						}
						return f.Tasks.MarkRunning(tx, t)
					})
				case 3, 4:
					do(move(f.Tasks.Complete, task.Running))
				case 5:
					do(move(func(tx *db.Tx, t *task.Row) error { return f.Tasks.AttemptFailed(tx, t, task.RunTimeout, "By a test.") },
						task.Running))
				case 6:
					do(move(f.Tasks.Cancel, task.Pending, task.Running))
				case 7:
					do(move(f.Tasks.Release, task.Held))
					do(func(tx *db.Tx) error {
						repo, err := repoByID(tx, "repo-web")
						if err != nil {
							return err
						}
						_, err = f.Tasks.Create(tx, repo,
							task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: "Another", Problem: "p",
								Template: "default", DependsOn: []string{t.ID}})
						return err
					})
				case 8:
					do(move(func(tx *db.Tx, t *task.Row) error { return f.Tasks.Requeue(tx, t, "test") }, task.Running))
				}
			}
		})
	}
	all.Wait()
	if runs.Load() != calls.Load() {
		t.Errorf("%d transactions were run %d times", calls.Load(), runs.Load())
	}
}
