package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/onboarding"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/flow"
)

// fleet tells which boxes would claim what somebody files.
func (a *App) fleet(tasks *task.Service) func(tx *db.Tx, createdBy, repoID string) (onboarding.Fleet, error) {
	return func(tx *db.Tx, createdBy, repoID string) (onboarding.Fleet, error) {
		var r *task.Repo
		if repoID != "" {
			found, err := flow.TaskRepos{Host: a.host}.ByID(tx, repoID)
			if err != nil {
				return onboarding.Fleet{}, err
			}
			r = &found
		}
		f, err := tasks.Fleet(tx, tx.Account, createdBy, r)
		return onboarding.Fleet(f), err
	}
}
