package flow

import (
	"context"
	"errors"
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/pull/babysit"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/proof/standin"
)

// work is the account acme with the people ann and olga, the repositories web and
// shop, and tasks as the program has them.
type work struct {
	t     *testing.T
	db    *db.DB
	tasks *task.Service
	PullTasks
	AskQueue
	AskPlans
}

// eachWork runs a test on both databases, with a queue of at most queueCap tasks.
func eachWork(t *testing.T, queueCap int64, fn func(*testing.T, *work)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		hosts := addresses()
		task.QueueChanged.On(d, queue.Count)
		queued := queue.New(queue.Needs{
			DB: d, Hub: event.NewHub(), Most: queueCap, DefaultTemplate: "default", Repos: TaskRepos{hosts},
			Templates: QueueTemplates{}, Related: QueueRelations{}, Commits: standin.Tasks{},
		})
		tasks := task.New(task.Needs{Tracker: task.NoTracker{},
			DB: d, Hub: event.NewHub(), DefaultTemplate: "default", Repos: TaskRepos{hosts},
			Templates: TaskTemplates{}, Related: TaskRelations{}, Queue: queued,
		})
		w := &work{
			t: t, db: d, tasks: tasks, PullTasks: PullTasks{tasks, hosts}, AskQueue: AskQueue{tasks, queued, hosts},
			AskPlans: AskPlans{newPlans(d, tasks, queued, hosts), hosts},
		}
		w.write(func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ann"}, seed.User{ID: "olga"},
				seed.Repo{ID: "web", Account: "acme"},
				seed.Repo{ID: "shop", Account: "acme", Policy: "version: 1\nagent:\n  template: careful\n"},
				seed.Repo{ID: "wishful", Account: "acme", Policy: "version: 1\nagent:\n  template: gone\n"})
			if err != nil {
				return err
			}
			_, err = seed.PutTemplate.Exec(tx, "acme", "careful", `{"agent":"builtin"}`)
			return err
		})
		fn(t, w)
	})
}

// tryWrite writes as olga of acme.
func (w *work) tryWrite(fn func(*db.Tx) error) error {
	actor := policy.Actor{Credential: policy.PAT, CredentialID: "t", UserID: "olga", AccountID: "acme",
		Scopes: policy.Scopes(policy.WriteTasks)}
	return w.db.Write(policy.With(db.WithAccount(context.Background(), "acme"), actor), fn)
}

// write is tryWrite of something that does not fail.
func (w *work) write(fn func(*db.Tx) error) {
	w.t.Helper()
	if err := w.tryWrite(fn); err != nil {
		w.t.Fatal(err)
	}
}

// row returns a task.
func (w *work) row(taskID string) (t task.Row) {
	w.t.Helper()
	w.write(func(tx *db.Tx) (err error) {
		var ok bool
		if t, ok, err = task.Get(tx, "acme", taskID); err == nil && !ok {
			w.t.Fatalf("there is no task %q", taskID)
		}
		return err
	})
	return t
}

// deref returns what a pointer points to, or the zero value.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// TestRepair holds that a round continues the work of its task: on its branch, with
// its template, for its person, before new work. The task is no longer stuck.
func TestRepair(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		var web repo.Ref
		repair := func(taskID string) (made task.Row) {
			var id string
			w.write(func(tx *db.Tx) (err error) {
				if web, _, err = repo.ByID(tx, "web"); err == nil {
					id, err = w.Repair(tx, web, babysit.Round{PRID: "pr", TaskID: taskID, Branch: "b", Title: "Repair it",
						Problem: "It is red."})
				}
				return err
			})
			return w.row(id)
		}
		w.write(func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Pull{ID: "pr", Account: "acme", Repo: "web", Head: "b", Task: new("work")},
				seed.Task{ID: "work", Account: "acme", Repo: "web", Status: "awaiting_ci", Pull: new("pr"), By: new("ann"),
					Template: "careful"})
			if err != nil {
				return err
			}
			stuck, _, err := task.Lock(tx, "acme", "work")
			if err != nil {
				return err
			}
			return w.tasks.Stick(tx, &stuck, task.CILadderSpent, "It is red.")
		})
		got := repair("work")
		if got.Kind != task.KindBabysit || got.Sink != task.SinkQueued || got.Status != task.Pending || got.Priority != 90 {
			t.Errorf("the round is %s in %s, %s, of priority %d", got.Kind, got.Sink, got.Status, got.Priority)
		}
		if got.Branch != "b" || deref(got.PRID) != "pr" || got.Title != "Repair it" || got.Problem != "It is red." || got.RepoID != "web" {
			t.Errorf("the round is %+v", got)
		}
		if got.Template != "careful" || deref(got.RequestedBy) != "ann" {
			t.Errorf("the round has the template %s, for %q", got.Template, deref(got.RequestedBy))
		}
		if w.row("work").Stuck {
			t.Error("the task whose work is repaired is stuck")
		}

		// A pull request may outlive its task.
		if got := repair("gone"); got.Template != "default" || got.RequestedBy != nil {
			t.Errorf("without a task: the template %s, for %v", got.Template, got.RequestedBy)
		}
	})
}

// TestRepairWaitsForRoom holds that a full queue is a fault, with which the round is
// put off and the task stays stuck.
func TestRepairWaitsForRoom(t *testing.T) {
	t.Parallel()
	eachWork(t, 1, func(t *testing.T, w *work) {
		w.write(func(tx *db.Tx) error {
			_, err := w.Mint(tx, ask.NewTask{RepoID: "web", Kind: task.KindWork, Title: "t"})
			return err
		})
		err := w.tryWrite(func(tx *db.Tx) error {
			web, _, err := repo.ByID(tx, "web")
			if err == nil {
				_, err = w.Repair(tx, web, babysit.Round{PRID: "pr", TaskID: "gone", Branch: "b", Title: "t"})
			}
			return err
		})
		if f := new(fault.Error); !errors.As(err, &f) || f.Slug != "queue-full" {
			t.Errorf("a full queue answers %v", err)
		}
	})
}

// TestReopen holds that a task is reopened with its pull request only if it failed
// because that was closed.
func TestReopen(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		fail := func(id, kind string) {
			w.write(func(tx *db.Tx) error {
				if err := seed.Add(tx, seed.Task{ID: id, Account: "acme", Repo: "web", Status: "awaiting_ci",
					Pull: new("pr-" + id)}); err != nil {
					return err
				}
				row, _, err := task.Lock(tx, "acme", id)
				if err != nil {
					return err
				}
				return w.tasks.Fail(tx, &row, kind, "why")
			})
		}
		fail("closed", task.PRClosed)
		fail("refused", task.PolicyRefused)
		w.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Task{ID: "goes-on", Account: "acme", Repo: "web", Status: "pending"})
		})
		for _, c := range []struct {
			task     string
			reopened bool
			status   task.Status
		}{{"closed", true, task.AwaitingCI}, {"refused", false, task.Failed}, {"goes-on", false, task.Pending}} {
			var got bool
			w.write(func(tx *db.Tx) (err error) {
				got, err = w.Reopen(tx, c.task, "pr-"+c.task)
				return err
			})
			if row := w.row(c.task); got != c.reopened || row.Status != c.status {
				t.Errorf("%s: reopened %v, and %s", c.task, got, row.Status)
			}
		}
		w.write(func(tx *db.Tx) error {
			got, err := w.Reopen(tx, "gone", "pr")
			if got {
				t.Error("a task that is not there is reopened")
			}
			return err
		})
	})
}

// TestUnmerged holds that a task on the work of another names it until that is
// merged, and says if it will not be.
func TestUnmerged(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		for below, want := range map[string]struct {
			on      string
			dropped bool
		}{
			"awaiting_ci": {"below-awaiting_ci", false},
			"cancelled":   {"below-cancelled", true},
			"merged":      {"", false},
		} {
			w.write(func(tx *db.Tx) error {
				err := seed.Add(tx, seed.Task{ID: "below-" + below, Account: "acme", Repo: "web", Status: below},
					seed.Task{ID: "on-" + below, Account: "acme", Repo: "web"})
				if err == nil {
					_, err = seed.SetStackedOn.Exec(tx, "on-"+below, "below-"+below)
				}
				if err != nil {
					return err
				}
				on, dropped, err := w.Unmerged(tx, "on-"+below)
				if on != want.on || dropped != want.dropped {
					t.Errorf("on work that is %s: %q, dropped %v", below, on, dropped)
				}
				return err
			})
		}
		w.write(func(tx *db.Tx) error {
			on, dropped, err := w.Unmerged(tx, "below-merged")
			if on != "" || dropped {
				t.Errorf("on nobody's work: %q, dropped %v", on, dropped)
			}
			return err
		})
	})
}

var dependencies = db.Q[string](`SELECT depends_on FROM task_deps WHERE task_id = $1 ORDER BY depends_on`)

// TestMint holds that an ask becomes queued tasks of its person, with the template
// that the repository wishes for where the account has it.
func TestMint(t *testing.T) {
	t.Parallel()
	eachWork(t, 4, func(t *testing.T, w *work) {
		mint := func(n ask.NewTask) (id string) {
			t.Helper()
			w.write(func(tx *db.Tx) (err error) {
				n.AskID, n.Kind = "ask", task.KindWork
				id, err = w.Mint(tx, n)
				return err
			})
			return id
		}
		full := func() (is bool) {
			w.write(func(tx *db.Tx) (err error) {
				is, err = w.Full(tx)
				return err
			})
			return is
		}
		for repoID, template := range map[string]string{"web": "default", "shop": "careful", "wishful": "default"} {
			first := mint(ask.NewTask{RepoID: repoID, Title: "Begin", RequestedBy: "ann", Problem: "It is slow.", Priority: 3,
				Files: []string{"a.go"}})
			got := w.row(first)
			if got.Template != template || got.RepoID != repoID {
				t.Errorf("in %s: a task of %s with the template %s, want %s", repoID, got.RepoID, got.Template, template)
			}
			if got.Sink != task.SinkQueued || deref(got.AskID) != "ask" || deref(got.RequestedBy) != "ann" || got.Confidence != 1 ||
				got.Title != "Begin" || got.Problem != "It is slow." || got.Priority != 3 || !slices.Equal(got.Files.V, []string{"a.go"}) {
				t.Errorf("in %s: %+v", repoID, got)
			}
			if full() {
				t.Error("the queue is full before its end")
			}
			if repoID == "web" {
				second := mint(ask.NewTask{RepoID: repoID, Title: "Go on", DependsOn: []string{first}})
				w.write(func(tx *db.Tx) error {
					on, err := dependencies.All(tx, second)
					if !slices.Equal(on, []string{first}) {
						t.Errorf("the second depends on %v, want %s", on, first)
					}
					return err
				})
				if by := w.row(second).RequestedBy; by != nil {
					t.Errorf("nobody's work is requested by %q", *by)
				}
				w.write(func(tx *db.Tx) error { return cancel(tx, w.tasks, second) })
			}
		}
		mint(ask.NewTask{RepoID: "web", Title: "The last"})
		if !full() {
			t.Error("four of four tasks do not fill the queue")
		}
		err := w.tryWrite(func(tx *db.Tx) error {
			_, err := w.Mint(tx, ask.NewTask{RepoID: "web", Kind: task.KindWork, Title: "One more"})
			return err
		})
		if f := new(fault.Error); !errors.As(err, &f) || f.Slug != "queue-full" {
			t.Errorf("a full queue answers %v", err)
		}
		if err := w.tryWrite(func(tx *db.Tx) error {
			_, err := w.Mint(tx, ask.NewTask{RepoID: "gone", Kind: task.KindWork, Title: "t"})
			return err
		}); err == nil {
			t.Error("a task is minted in no repository")
		}
	})
}

func cancel(tx *db.Tx, tasks *task.Service, id string) error {
	row, _, err := task.Lock(tx, "acme", id)
	if err != nil {
		return err
	}
	return tasks.Cancel(tx, &row)
}
