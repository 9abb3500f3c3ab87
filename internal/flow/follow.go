package flow

import (
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
)

// FollowPulls has tasks move with their pull requests.
func FollowPulls(d *db.DB, tasks *task.Service) {
	for signal, move := range map[event.Signal[record.Progress]]func(*db.Tx, *task.Row, record.Progress) error{
		record.TaskAwaits: func(tx *db.Tx, t *task.Row, p record.Progress) error {
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
		record.TaskAwaitsReview: func(tx *db.Tx, t *task.Row, _ record.Progress) error {
			if t.Status == task.AwaitingReview {
				return tasks.SetStuck(tx, t, false)
			}
			if !task.Allowed(t.Status, task.AwaitingReview) {
				return nil
			}
			return tasks.ToAwaitingReview(tx, t)
		},
		record.TaskMergeable: func(tx *db.Tx, t *task.Row, _ record.Progress) error {
			if !task.Allowed(t.Status, task.Mergeable) {
				return nil
			}
			return tasks.ToMergeable(tx, t)
		},
		record.TaskMerged: func(tx *db.Tx, t *task.Row, _ record.Progress) error {
			if !task.Allowed(t.Status, task.Merged) {
				return nil
			}
			return tasks.Merged(tx, t)
		},
		record.TaskClosed: func(tx *db.Tx, t *task.Row, p record.Progress) error {
			if !t.Status.Shipped() || t.Status.Terminal() {
				return nil // it goes on without, or has ended
			}
			return tasks.Fail(tx, t, task.PRClosed, p.Why)
		},
		record.TaskStuck: func(tx *db.Tx, t *task.Row, p record.Progress) error {
			if t.Status.Terminal() {
				return nil
			}
			return tasks.Stick(tx, t, p.FailureKind, p.Why)
		},
	} {
		signal.On(d, func(tx *db.Tx, p record.Progress) error {
			return withTask(tx, p.TaskID, func(t *task.Row) error { return move(tx, t, p) })
		})
	}
}

// AbandonCancelled abandons the pull request of a task that was cancelled.
func AbandonCancelled(pulls *pull.Service) func(*db.Tx, task.Move) error {
	return func(tx *db.Tx, m task.Move) error {
		t := m.Task
		if t.Status != task.Cancelled || t.PRID == nil {
			return nil
		}
		return tx.As(t.AccountID, func() error { return pulls.Abandon(tx, *t.PRID, t.ID) })
	}
}

// MoveAbove moves the pull requests on whose work was begun on that of a task which has ended,
// or goes on.
func MoveAbove(pulls *pull.Service) func(*db.Tx, task.Move) error {
	return func(tx *db.Tx, m task.Move) error {
		if !m.Task.Status.Terminal() && !m.From.Terminal() {
			return nil
		}
		return tx.As(m.Task.AccountID, func() error { return pulls.BelowMoved(tx, m.Task.ID) })
	}
}

// MoveCheck notes that the task of a check runs, or waits again.
func MoveCheck(checks *ci.Service) func(*db.Tx, task.Move) error {
	return func(tx *db.Tx, m task.Move) error {
		t := m.Task
		if t.Kind != task.KindCI {
			return nil
		}
		switch t.Status {
		case task.Running, task.Pending, task.Held:
			return tx.As(t.AccountID, func() error { return checks.Moved(tx, t.ID, t.Status == task.Running) })
		}
		return nil
	}
}

// EndCheck moves a pull request on with the end of the check of its head.
func EndCheck(pulls *pull.Service) func(*db.Tx, ci.End) error {
	return func(tx *db.Tx, e ci.End) error { return pulls.CheckEnded(tx, pull.CheckEnd(e)) }
}

// EndHostChecks moves pull requests on with the checks that a host has of a head.
func EndHostChecks(pulls *pull.Service) func(*db.Tx, ci.HostEnd) error {
	return func(tx *db.Tx, e ci.HostEnd) error { return pulls.HostChecked(tx, pull.HostEnd(e)) }
}

// FollowBase follows the checks of a commit that was pushed to a default branch.
func FollowBase(checks *ci.Service) func(*db.Tx, event.Event[repo.Push]) error {
	return func(tx *db.Tx, e event.Event[repo.Push]) error {
		return checks.Pushed(tx, e.Data.Repo, e.Data.Branch, e.Data.Head)
	}
}

// RaiseBroken asks a person to see to a base that fails as pull requests to it fail.
func RaiseBroken(tx *db.Tx, b ci.Broken) error {
	_, err := escalation.Raise(tx, escalation.Draft{
		RepoID: &b.RepoID, Category: record.NeedsBase, Title: brokenTitle(b.BaseRef), Reason: record.NeedsBase,
		Body: "The job " + b.Job + " fails at " + b.BaseRef + ", and in the same way at pull requests to it, which wait.\n\n" +
			strings.Join(b.Prints, "\n"),
	})
	return err
}

func brokenTitle(base string) string { return base + " fails its checks" }

// ResolveBroken resolves what people were asked about a base that passes its checks again.
func ResolveBroken(tx *db.Tx, h ci.Healed) error {
	return escalation.ResolveOfRepo(tx, escalation.About{
		RepoID: h.RepoID, Category: record.NeedsBase, Title: brokenTitle(h.BaseRef), Note: h.BaseRef + " passes its checks again.",
	})
}

// EndRound ends the round of a pull request with the task that repaired it.
func EndRound(pulls *pull.Service) func(*db.Tx, task.Move) error {
	return func(tx *db.Tx, m task.Move) error {
		t := m.Task
		if t.Kind != task.KindBabysit || t.PRID == nil || !t.Status.Terminal() {
			return nil
		}
		return pulls.RoundEnded(tx, *t.PRID, t.ID, t.Status == task.Cancelled)
	}
}

// StallWithRepair tells the plan of a task of each move of the task that repairs
// its pull request. That is no task of the plan, but may stall it.
func StallWithRepair(plans *plan.Service) func(*db.Tx, task.Move) error {
	return func(tx *db.Tx, m task.Move) error {
		t := m.Task
		if t.Kind != task.KindBabysit || t.PRID == nil {
			return nil
		}
		return tx.As(t.AccountID, func() error {
			work, ok, err := workOf(tx, *t.PRID)
			if err != nil || !ok {
				return err
			}
			return plans.TaskStuck(tx, &work)
		})
	}
}

// StopTask cancels the task of a check or round that is of no use any more,
// unless it is over.
func StopTask(tasks *task.Service) func(*db.Tx, string) error {
	return func(tx *db.Tx, taskID string) error {
		return withTask(tx, taskID, func(t *task.Row) error {
			if t.Status.Terminal() {
				return nil
			}
			return tasks.Cancel(tx, t)
		})
	}
}

// RaiseTrouble asks a person to look at a pull request.
func RaiseTrouble(tx *db.Tx, about record.Trouble) error {
	_, err := escalation.Raise(tx, escalation.Draft{
		RepoID: &about.RepoID, Category: about.Category, Title: about.Title, Body: about.Body, Reason: about.Reason,
		PRID: &about.PRID, TaskID: about.TaskID, URL: &about.URL,
	})
	return err
}

// ResolveTrouble resolves what a person was asked about a pull request that
// needs none any more.
func ResolveTrouble(tx *db.Tx, n record.Note) error {
	return escalation.ResolveOfPull(tx, n.PRID, n.Text)
}

// NotePush tells pull requests of a branch that was pushed.
func NotePush(pulls *pull.Service) func(*db.Tx, event.Event[repo.Push]) error {
	return func(tx *db.Tx, e event.Event[repo.Push]) error {
		return pulls.OnPush(tx, e.Data.Repo, e.Data.Branch, e.Data.Head, e.Data.By)
	}
}
