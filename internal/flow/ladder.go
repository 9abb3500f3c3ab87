package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/onboarding"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/vault"
)

// Rungs answers for the rungs of the ladder to an account's first scout that
// grants, tasks and vaults decide about. It is the onboarding.Rungs of the
// program.
type Rungs struct {
	Tasks *task.Service
	Queue *queue.Service
}

// Devs is how many runs tx.Account may have at once.
func (Rungs) Devs(tx *db.Tx) (int64, error) { return grant.Seats(tx, tx.Account) }

// Fleet tells which boxes would claim what somebody files, in a repository or,
// with an empty id, in one that demands nothing.
func (r Rungs) Fleet(tx *db.Tx, createdBy, repoID string) (onboarding.Fleet, error) {
	var at *task.Repo
	if repoID != "" {
		found, err := r.Tasks.RepoByID(tx, repoID)
		if err != nil {
			return onboarding.Fleet{}, err
		}
		at = &found
	}
	f, err := r.Queue.Fleet(tx, tx.Account, createdBy, at)
	return onboarding.Fleet(f), err
}

// Secrets tells whether any secret is stored in tx.Account, and whether runs of
// a repository get any.
func (Rungs) Secrets(tx *db.Tx, repoID string) (stored, reachable bool, err error) {
	return vault.Reach(tx, repoID)
}
