package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/protocol"
)

// newBlockers connects what runs wait for to the vaults, the tasks and the runs.
func (a *App) newBlockers(vaults *vault.Service, tasks *task.Service, runs *run.Service) *blocker.Service {
	s := &blocker.Service{
		DB: a.db, Ring: a.ring, BaseURL: a.base, Has: vault.Has, Quotes: vaults.Quoted,
		RepoName: func(tx *db.Tx, id string) (string, error) {
			r, err := a.repoByID(tx, id)
			return r.FullName(), err
		},
		NameFault: func(name, environment string) string {
			if why := vault.EnvironmentFault(environment); why != "" {
				return why
			}
			return vault.NameFault(name)
		},
		Keep: func(tx *db.Tx, by string, v blocker.Value) error {
			return vaults.Land(tx, by, vault.Item{RepoID: v.RepoID, Name: v.Name, Environment: v.Environment, Value: v.Value}, v.Host)
		},
		LockTask: func(tx *db.Tx, taskID string) error {
			_, _, err := task.Lock(tx, tx.Account, taskID)
			return err
		},
		Resume: func(tx *db.Tx, taskID, runID, word string, release bool) (string, error) {
			return resumeTask(tx, tasks, runs, taskID, runID, word, release)
		},
	}
	s.LiveRun = func(tx *db.Tx, taskID string) (string, error) {
		t, ok, err := task.Get(tx, tx.Account, taskID)
		if err != nil || !ok || !t.Status.InFlight() || t.RunID == nil {
			return "", err
		}
		return *t.RunID, nil
	}
	tasks.Wants = func(tx *db.Tx, taskIDs []string) ([]task.Want, error) {
		open, err := blocker.Wants(tx, taskIDs)
		out := make([]task.Want, len(open))
		for i, w := range open {
			out[i] = task.Want{TaskID: w.TaskID, BlockerID: w.ID, Form: w.Form, Parked: w.Parked, Since: w.Since}
		}
		return out, err
	}
	runs.OnFinished = unblocked(s, tasks, runs.OnFinished)
	return s
}

// resumeTask lets a task go on, see blocker.Service.
func resumeTask(tx *db.Tx, tasks *task.Service, runs *run.Service, taskID, runID, word string, release bool) (string, error) {
	t, ok, err := task.Lock(tx, tx.Account, taskID)
	switch {
	case err != nil:
		return "", err
	case !ok || t.Status.Terminal() || t.Status.Shipped():
		return "", nil
	case t.Status == task.Held:
		if !release || t.FailureKind == nil || *t.FailureKind != task.Blocked {
			return blocker.Recorded, nil
		}
		return blocker.Released, tasks.Release(tx, &t)
	case word == "":
		return blocker.Recorded, nil
	}
	woken, err := runs.Wake(tx, runID, word)
	if err != nil || !woken {
		return blocker.Recorded, err
	}
	return blocker.Woken, nil
}

// unblocked puts a task whose run has waited long enough for a blocker back
// into the queue if that was cleared at the very end, when the word of it could
// not reach the run any more.
func unblocked(s *blocker.Service, tasks *task.Service, next settler) settler {
	return func(tx *db.Tx, t *task.Row, r *run.Row, f run.Ending) (bool, error) {
		if f.State == protocol.Blocked {
			cleared := false
			err := tx.As(t.AccountID, func() (err error) {
				cleared, err = s.Cleared(tx, t.ID, r.ID)
				return err
			})
			if err != nil {
				return false, err
			}
			if cleared {
				return true, tasks.Requeue(tx, t, "unblocked")
			}
		}
		return next(tx, t, r, f)
	}
}

// settler decides what becomes of the task of a run that its box has ended.
type settler = func(*db.Tx, *task.Row, *run.Row, run.Ending) (bool, error)
