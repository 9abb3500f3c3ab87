package app

import (
	"cmp"
	"fmt"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/event"
)

// wirePulls connects pull requests to the tasks they come from.
func (a *App) wirePulls(p *pull.Service, tasks *task.Service) {
	p.CheckTask = func(tx *db.Tx, r repo.Ref, prID, sha string) (string, error) {
		work, _, err := workOf(tx, prID)
		if err != nil {
			return "", err
		}
		t, err := tasks.Create(tx, a.taskRepo(r), task.Spec{
			Kind: task.KindCI, Sink: task.SinkDirect, Priority: 100, Confidence: 1,
			Title: fmt.Sprintf("Check %.10s", sha), Problem: r.Policy.Checks.Command,
			Command: []string{"sh", "-c", r.Policy.Checks.Command}, Checkout: sha, PRID: &prID, RequestedBy: asker(&work),
		})
		return t.ID, err
	}
	p.TaskReopened = func(tx *db.Tx, taskID, prID string) (reopened bool, err error) {
		err = withTask(tx, taskID, func(t *task.Row) error {
			if t.Status != task.Failed || t.FailureKind == nil || *t.FailureKind != task.PRClosed {
				return nil
			}
			reopened = true
			return tasks.Reopened(tx, t, prID)
		})
		return reopened, err
	}
}

// followPulls has tasks move with their pull requests.
func followPulls(d *db.DB, tasks *task.Service) {
	for signal, move := range map[event.Signal[pull.Progress]]func(*db.Tx, *task.Row, pull.Progress) error{
		pull.TaskAwaits: func(tx *db.Tx, t *task.Row, p pull.Progress) error {
			if t.Status == task.AwaitingCI {
				if err := tasks.SetStuck(tx, t, false); err != nil { // a new head is a new chance
					return err
				}
			}
			if t.Status == task.AwaitingCI || !task.Allowed(t.Status, task.AwaitingCI) {
				return tasks.WorkChanged(tx, t)
			}
			return tasks.ToAwaitingCI(tx, t, p.PRID)
		},
		pull.TaskAwaitsReview: func(tx *db.Tx, t *task.Row, _ pull.Progress) error {
			if t.Status == task.AwaitingReview {
				return tasks.SetStuck(tx, t, false)
			}
			if !task.Allowed(t.Status, task.AwaitingReview) {
				return nil
			}
			return tasks.ToAwaitingReview(tx, t)
		},
		pull.TaskMergeable: func(tx *db.Tx, t *task.Row, _ pull.Progress) error {
			if !task.Allowed(t.Status, task.Mergeable) {
				return nil
			}
			return tasks.ToMergeable(tx, t)
		},
		pull.TaskMerged: func(tx *db.Tx, t *task.Row, _ pull.Progress) error {
			if !task.Allowed(t.Status, task.Merged) {
				return nil
			}
			return tasks.Merged(tx, t)
		},
		pull.TaskClosed: func(tx *db.Tx, t *task.Row, p pull.Progress) error {
			if !t.Status.Shipped() || t.Status.Terminal() {
				return nil // it goes on without, or has ended
			}
			return tasks.Fail(tx, t, task.PRClosed, p.Why)
		},
		pull.TaskStuck: func(tx *db.Tx, t *task.Row, p pull.Progress) error {
			if t.Status.Terminal() {
				return nil
			}
			return tasks.Stick(tx, t, p.FailureKind, p.Why)
		},
	} {
		signal.On(d, func(tx *db.Tx, p pull.Progress) error {
			return withTask(tx, p.TaskID, func(t *task.Row) error { return move(tx, t, p) })
		})
	}
}

// author signs commits of agents and merges.
func (a *App) author() codehost.Person {
	name, address := a.cfg.Author()
	return codehost.Person{Name: name, Email: address}
}

// signers names who a merge commit is signed by: who asked for the task, who
// decided about the merge, and the agent, at the address of author.
func signers(author codehost.Person) func(tx *db.Tx, taskID, decidedBy string) (pull.Signers, error) {
	return func(tx *db.Tx, taskID, decidedBy string) (out pull.Signers, err error) {
		t, ok, err := task.Get(tx, tx.Account, taskID)
		if err != nil || !ok {
			return out, err
		}
		if t.RequestedBy != nil {
			if out.RequestedBy, err = person(tx, "user:"+*t.RequestedBy); err != nil {
				return out, err
			}
		}
		if out.ApprovedBy, err = person(tx, decidedBy); err != nil {
			return out, err
		}
		agent, _, err := template.ByName(tx, tx.Account, t.Template)
		out.Agent = codehost.Person{Name: agent.Agent, Email: author.Email}
		if agent.Model != "" {
			out.Agent.Name += " (" + agent.Model + ")"
		}
		return out, err
	}
}

// workOf is the task that a pull request of tx.Account came of, if there is one.
func workOf(tx *db.Tx, prID string) (task.Row, bool, error) {
	taskID, err := pull.TaskOf(tx, prID)
	if err != nil || taskID == "" {
		return task.Row{}, false, err
	}
	return task.Get(tx, tx.Account, taskID)
}

// person is the user that a label names; nobody if it names none.
func person(tx *db.Tx, label string) (codehost.Person, error) {
	id, ok := strings.CutPrefix(label, "user:")
	if !ok {
		return codehost.Person{}, nil
	}
	u, known, err := people.UserByID(tx, id)
	if err != nil || !known {
		return codehost.Person{}, err
	}
	return codehost.Person{Name: cmp.Or(u.Name, u.Login), Email: u.Email}, nil
}
