package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
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

// settle decides what becomes of the task of a run that its box has ended:
// a check has a result, commits become a pull request or repair one, and the
// rest is left to the common rules.
func (a *App) settle(tasks *task.Service, pulls *pull.Service) func(*db.Tx, *task.Row, *run.Row, run.Ending) (bool, error) {
	return func(tx *db.Tx, t *task.Row, r *run.Row, f run.Ending) (bool, error) {
		tx.Account = t.AccountID // events of a box come without one
		if t.Kind == task.KindCI {
			if f.ExitCode == nil && f.State == protocol.Succeeded {
				return true, tasks.AttemptFailed(tx, t, task.AgentCrashed, "The box says that the check was run, and not how it ended.")
			}
			if f.ExitCode == nil || r.FailureKind != nil && *r.FailureKind == task.BoxUnfit {
				return false, nil // the check was never run to its end, or failed for a fault of the box: try again
			}
			if err := tasks.Complete(tx, t); err != nil {
				return false, err
			}
			return true, pulls.CheckFinished(tx, pull.CheckResult{TaskID: t.ID, RunID: r.ID, BoxID: r.BoxID, ExitCode: f.ExitCode, Output: f.Output})
		}
		// An earlier try may have pushed all of the work, and been lost before it
		// could say so. The one that resumed it had nothing to add.
		added := f.Tip != f.Base || r.ResumeSHA != nil && t.PRID == nil
		if f.State != protocol.Succeeded || f.Tip == "" || !added || f.WIP {
			return false, nil
		}
		if !codehost.ValidSHA(f.Tip) || !codehost.ValidSHA(f.Base) {
			return true, tasks.AttemptFailed(tx, t, task.AgentCrashed, "The box named a commit that is none.")
		}
		ref, ok, err := repo.ByID(tx, t.RepoID)
		if err != nil {
			return false, err
		}
		if !ok {
			return false, fmt.Errorf("task %s has no repository %s", t.ID, t.RepoID)
		}
		if f.BranchAt != f.Tip {
			return true, tasks.AttemptFailed(tx, t, task.PushRejected, fmt.Sprintf("The branch %s is not at %.12s, which the box says it has pushed.", t.Branch, f.Tip))
		}
		if t.Kind == task.KindBabysit {
			if err := pulls.OnPush(tx, ref, t.Branch, f.Tip, "run:"+r.ID); err != nil {
				return false, err
			}
			return true, tasks.Complete(tx, t)
		}
		_, err = pulls.Propose(tx, ref, pull.Proposal{
			TaskID: t.ID, Title: t.Title, Body: f.Report, Branch: t.Branch, HeadSHA: f.Tip, BaseSHA: f.Base,
		})
		return err == nil, err
	}
}

// branchOn asks a code host where a branch is; "" if it has none.
func (a *App) branchOn(host codehost.Host) func(ctx context.Context, repoID, branch string) (string, error) {
	return func(ctx context.Context, repoID, branch string) (string, error) {
		var r repo.Ref
		err := a.db.Read(ctx, func(tx *db.Tx) (err error) {
			r, _, err = repo.ByIDAnywhere(tx, repoID)
			return err
		})
		if err != nil {
			return "", err
		}
		sha, err := host.Head(ctx, r.HostRepo(), branch)
		if errors.Is(err, codehost.ErrNotFound) {
			err = nil
		}
		return sha, err
	}
}
