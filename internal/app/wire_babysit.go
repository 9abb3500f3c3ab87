package app

import (
	"cmp"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
)

// repairPriority puts the repair of a pull request before new work.
const repairPriority = 90

// wireBabysit connects the rounds of pull requests to the tasks that carry them
// out.
func (a *App) wireBabysit(pulls *pull.Service, tasks *task.Service) {
	pulls.BabysitTask = func(tx *db.Tx, r repo.Ref, round pull.Round) (string, error) {
		// As the work was done, so it is repaired.
		work, ok, err := task.Lock(tx, tx.Account, round.TaskID)
		if err != nil {
			return "", err
		}
		to := a.taskRepo(r)
		t, err := tasks.Create(tx, to, task.Spec{
			Kind: task.KindBabysit, Sink: task.SinkQueued, Priority: repairPriority, Confidence: 1, Title: round.Title, Problem: round.Problem,
			Template: cmp.Or(work.Template, to.Template, tasks.DefaultTemplate), Branch: round.Branch, PRID: &round.PRID, AskID: work.AskID, RequestedBy: asker(&work),
		})
		if err == nil && ok {
			err = tasks.SetStuck(tx, &work, false)
		}
		return t.ID, err
	}
}

// raiseTrouble asks a person to look at a pull request.
func raiseTrouble(tx *db.Tx, about pull.Trouble) error {
	_, err := escalation.Raise(tx, escalation.New{
		RepoID: &about.RepoID, Category: about.Category, Title: about.Title, Body: about.Body, Reason: about.Reason,
		PRID: &about.PRID, TaskID: about.TaskID, URL: &about.URL,
	})
	return err
}

// stopTask cancels a task that is not over.
func stopTask(tasks *task.Service) func(*db.Tx, string) error {
	return func(tx *db.Tx, taskID string) error {
		return withTask(tx, taskID, func(t *task.Row) error {
			if t.Status.Terminal() {
				return nil
			}
			return tasks.Cancel(tx, t)
		})
	}
}

// asker is whose work a task is, for what looks after it.
func asker(t *task.Row) *string {
	if t.RequestedBy == nil {
		return new(string)
	}
	return t.RequestedBy
}
