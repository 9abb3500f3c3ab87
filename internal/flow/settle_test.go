package flow

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/dial"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/proof/standin"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// settling is the account acme with a repository, and a box of its own.
type settling struct {
	t     *testing.T
	db    *db.DB
	tasks *task.Service
	Settler
}

func eachSettling(t *testing.T, fn func(*testing.T, *settling)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		stand := standin.Tasks{Agent: "claude", Places: 9}
		y := &settling{t: t, db: d}
		y.tasks, _ = standin.Services(d, event.NewHub(), TaskRepos{Hosts: addresses()}, stand)
		y.Settler = Settler{Tasks: y.tasks}
		y.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "repo", Account: "acme", Name: "web"},
				seed.Box{ID: "box", Account: "acme"})
		})
		fn(t, y)
	})
}

// nowhere is a code host with addresses alone.
type nowhere struct{ codehost.Host }

func (nowhere) CloneURL(r codehost.Repo) string { return "http://host/" + r.String() }

// addresses are the hosts of a server whose built-in one is nowhere.
func addresses() *codehost.Hosts {
	return codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: nowhere{}, Forge: builtin.Forge{}}})
}

func (y *settling) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.db.Write(db.WithAccount(y.t.Context(), "acme"), fn); err != nil {
		y.t.Fatal(err)
	}
}

// running adds a task of a kind that the run of the same id tries on the box.
func (y *settling) running(kind string) (taskID string) {
	y.t.Helper()
	taskID = id.New()
	y.write(func(tx *db.Tx) error {
		return seed.Add(tx, seed.Task{ID: taskID, Account: "acme", Repo: "repo", Kind: kind, Status: "running", Branch: new("b")},
			seed.Run{ID: taskID, Account: "acme", Task: taskID, Repo: "repo", Box: "box"})
	})
	return taskID
}

// settle ends the run of a task, and answers whether that was settled, and the
// task afterwards.
func (y *settling) settle(taskID string, f run.Ending) (settled bool, t task.Row) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) {
		if t, _, err = task.Lock(tx, "acme", taskID); err != nil {
			return err
		}
		settled, err = y.Settle(tx, &t, &run.Row{ID: taskID, AccountID: "acme", BoxID: "box"}, f)
		return err
	})
	return settled, t
}

// What a box says of a run that cannot be is a failure of the run, and what is
// nothing more than a try is left to the common rules.
func TestSettlerDistrustsBoxes(t *testing.T) {
	t.Parallel()
	tip, base := strings.Repeat("a", 40), strings.Repeat("b", 40)
	eachSettling(t, func(t *testing.T, y *settling) {
		ended := func(state string, more func(*run.Ending)) run.Ending {
			f := run.Ending{Finished: protocol.Finished{State: state, Tip: tip, Base: base}, BranchAt: tip}
			more(&f)
			return f
		}
		for what, c := range map[string]struct {
			kind    string
			ending  run.Ending
			settled bool
			failure string
		}{
			"check without a result": {task.KindCI, ended(protocol.Succeeded, func(*run.Ending) {}), true, task.AgentCrashed},
			"check that was not run": {task.KindCI, ended(protocol.Failed, func(*run.Ending) {}), false, ""},
			"no commit": {task.KindWork, ended(protocol.Succeeded, func(f *run.Ending) { f.Tip = "main" }), true,
				task.AgentCrashed},
			"commit not pushed": {task.KindWork, ended(protocol.Succeeded, func(f *run.Ending) { f.BranchAt = base }), true,
				task.PushRejected},
			"unfinished work": {task.KindWork, ended(protocol.Succeeded, func(f *run.Ending) { f.WIP = true }), false, ""},
			"nothing added":   {task.KindWork, ended(protocol.Succeeded, func(f *run.Ending) { f.Base = tip }), false, ""},
			"failure":         {task.KindWork, ended(protocol.Failed, func(*run.Ending) {}), false, ""},
		} {
			settled, row := y.settle(y.running(c.kind), c.ending)
			failure := ""
			if row.FailureKind != nil {
				failure = *row.FailureKind
			}
			if settled != c.settled || failure != c.failure || !settled && row.Status != task.Running {
				t.Errorf("%s: settled %v, task %s %q, want %v, %q", what, settled, row.Status, failure, c.settled, c.failure)
			}
		}
	})
}

// A blocker that is answered as its run ends puts the task back into the queue; one
// that is open leaves it to the common rules, which hold it.
func TestSettlerUnblocks(t *testing.T) {
	t.Parallel()
	eachSettling(t, func(t *testing.T, y *settling) {
		ring := seal.New()
		blockers := blocker.New(blocker.Needs{DB: y.db, Ring: ring, BaseURL: "http://yard", Repos: BlockerRepos{},
			Vault: BlockerVault{vault.New(vault.Needs{DB: y.db, Ring: ring, Repos: VaultRepos{}, Guard: dial.NewGuard(nil)})},
			Tasks: BlockerTasks{Tasks: y.tasks}, Asks: BlockerAsks{}})
		run.CommandQueued.On(y.db, func(*db.Tx, run.Command) error { return nil })
		taskID := y.running(task.KindWork)
		y.write(func(tx *db.Tx) error {
			return blockers.Declare(tx, "repo", taskID, taskID, protocol.BlockerDeclared{ID: "1", Kind: "decision", Question: "Which?"})
		})
		blocked := run.Ending{Finished: protocol.Finished{State: protocol.Blocked, Error: "Which?"}}
		if settled, row := y.settle(taskID, blocked); settled || row.Status != task.Running {
			t.Errorf("while it is open: settled %v, task %s", settled, row.Status)
		}
		h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{
			Authenticate: func(context.Context, op.Presented) (policy.Actor, error) {
				return policy.Actor{Credential: policy.PAT, CredentialID: "x", UserID: "ada", AccountID: "acme",
					Scopes: policy.Owner.Ceiling()}, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, blockers.Ops())
		var open []task.Want
		y.write(func(tx *db.Tx) (err error) {
			open, err = TaskRelations{}.Wants(tx, []string{taskID})
			return err
		})
		if len(open) != 1 {
			t.Fatalf("the task waits for %v", open)
		}
		req := httptest.NewRequest("POST", "/v1/blockers/"+open[0].BlockerID+"/answer", strings.NewReader(`{"answer": "The first."}`))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, req); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		settled, row := y.settle(taskID, blocked)
		if !settled || row.Status != task.Pending {
			t.Errorf("once it is answered: settled %v, task %s", settled, row.Status)
		}
	})
}
