package flow

import (
	"fmt"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/review"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// Settler decides what becomes of the task of a run that its box has ended. It is
// run.Settler.
type Settler struct {
	Tasks  *task.Service
	Pulls  *pull.Service
	Checks *ci.Service
	// Reviews take the answers of their passes.
	Reviews *review.Service
}

// Settle requeues a task if its blocker was cleared too late to tell the run. It
// stores the results of checks and reviews; commits open or repair a pull request. It returns
// false for every other task, which the common rules then settle.
func (s Settler) Settle(tx *db.Tx, t *task.Row, r *run.Row, f run.Ending) (bool, error) {
	if f.State == protocol.Blocked {
		cleared := false
		err := tx.As(t.AccountID, func() (err error) {
			cleared, err = blocker.Cleared(tx, t.ID, r.ID)
			return err
		})
		if err != nil {
			return false, err
		}
		if cleared {
			return true, s.Tasks.Requeue(tx, t, "unblocked")
		}
	}
	tx.Account = t.AccountID // events of a box come without one
	if t.Kind == task.KindCI {
		return s.check(tx, t, r, f)
	}
	if t.Kind == task.KindReview && f.State == protocol.Succeeded {
		answer, _, _ := t.Result(f.Report) // it is valid, or the run had failed
		if err := s.Reviews.Reported(tx, t.ID, string(answer)); err != nil {
			return false, err
		}
		return true, s.Tasks.Complete(tx, t)
	}
	return s.work(tx, t, r, f)
}

// check settles the task of a check.
func (s Settler) check(tx *db.Tx, t *task.Row, r *run.Row, f run.Ending) (bool, error) {
	if f.ExitCode == nil && f.State == protocol.Succeeded {
		return true, s.Tasks.AttemptFailed(tx, t, task.AgentCrashed, "The box says that the check was run, and not how it ended.")
	}
	if f.ExitCode == nil || r.FailureKind != nil && *r.FailureKind == task.BoxUnfit {
		return false, nil // the check was never run to its end, or failed for a fault of the box: try again
	}
	if err := s.Tasks.Complete(tx, t); err != nil {
		return false, err
	}
	return true, s.Checks.Finish(tx, ci.Outcome{TaskID: t.ID, RunID: r.ID, BoxID: r.BoxID, ExitCode: f.ExitCode, Output: f.Output})
}

// work settles a task whose run has delivered commits.
func (s Settler) work(tx *db.Tx, t *task.Row, r *run.Row, f run.Ending) (bool, error) {
	// An earlier try may have pushed all of the work, and been lost before it
	// could say so. The one that resumed it had nothing to add.
	added := f.Tip != f.Base || r.ResumeSHA != nil && t.PRID == nil
	if f.State != protocol.Succeeded || f.Tip == "" || !added || f.WIP {
		return false, nil
	}
	if !codehost.ValidSHA(f.Tip) || !codehost.ValidSHA(f.Base) {
		return true, s.Tasks.AttemptFailed(tx, t, task.AgentCrashed, "The box named a commit that is none.")
	}
	ref, ok, err := repo.ByID(tx, t.RepoID)
	if err != nil {
		return false, err
	}
	if !ok {
		return false, fmt.Errorf("task %s has no repository %s", t.ID, t.RepoID)
	}
	if f.BranchAt != f.Tip {
		return true, s.Tasks.AttemptFailed(tx, t, task.PushRejected,
			fmt.Sprintf("The branch %s is not at %.12s, which the box says it has pushed.", t.Branch, f.Tip))
	}
	if t.Kind == task.KindBabysit && t.PRID != nil {
		if err := s.Pulls.NoteLeftOut(tx, *t.PRID, f.Left); err != nil {
			return false, err
		}
		if apart, err := s.Pulls.RoundPushed(tx, *t.PRID, t.ID, t.Branch, f.Tip); err != nil || apart {
			if err != nil {
				return false, err
			}
			return true, s.Tasks.Complete(tx, t)
		}
	}
	if t.Kind == task.KindBabysit {
		if err := s.Pulls.OnPush(tx, ref, t.Branch, f.Tip, "run:"+r.ID); err != nil {
			return false, err
		}
		return true, s.Tasks.Complete(tx, t)
	}
	prID, err := s.Pulls.Propose(tx, ref, pull.Proposal{
		TaskID: t.ID, Title: t.Title, Body: pull.WithLeftOut(f.Report, f.Left), Branch: t.Branch, HeadSHA: f.Tip, BaseSHA: f.Base,
	})
	if err == nil {
		err = s.Pulls.NoteLeftOut(tx, prID, f.Left)
	}
	return err == nil, err
}

// HaltRun ends a run that may make no further call to a model.
func HaltRun(tx *db.Tx, s budget.Stopped) error { return run.Halt(tx, s.RunID, s.Kind, s.Why) }

// RejudgeTasks releases the tasks that a conflict held back under the old policy of
// a repository. The queue judges them again under the new one.
func RejudgeTasks(tasks *task.Service) func(*db.Tx, repo.Ref) error {
	return func(tx *db.Tx, r repo.Ref) error { return tasks.PolicyChanged(tx, r.ID) }
}

// StopLost ends the runs in a repository that is deleted, another account's, or none of the
// App's any more. A suspension or an archive may be over before a run is: it goes on, and
// its push is tried for a while.
func StopLost(tasks *task.Service) func(*db.Tx, repo.Ref) error {
	return func(tx *db.Tx, r repo.Ref) error {
		if r.Gone == repo.LostSuspended || r.Gone == repo.LostArchived {
			return nil
		}
		return tasks.RepoGone(tx, r.ID)
	}
}
