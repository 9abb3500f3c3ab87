package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/vault"
)

// BlockerRepos implements blocker.Repos: the names of the repositories of blockers.
type BlockerRepos struct{}

// FullName is a repository's owner/name.
func (BlockerRepos) FullName(tx *db.Tx, repoID string) (string, error) {
	r, err := repoAnywhere(tx, repoID)
	if err != nil {
		return "", err
	}
	return r.FullName(), nil
}

// BlockerVault is where the values go that people fill in. It is blocker.Vault; the
// transcripts of package blocker show it.
type BlockerVault struct{ *vault.Service }

// NameFault says why a secret cannot have a name and environment; empty if it can.
func (BlockerVault) NameFault(name, environment string) string {
	if why := vault.EnvironmentFault(environment); why != "" {
		return why
	}
	return vault.NameFault(name)
}

// Has tells whether the vault of a repository has a value by a name.
func (BlockerVault) Has(tx *db.Tx, repoID, environment, name string) (bool, error) {
	return vault.Has(tx, repoID, environment, name)
}

// Keep puts a value into a vault; a fault that is not internal means that it
// cannot be stored.
func (v BlockerVault) Keep(tx *db.Tx, by string, value blocker.Value) error {
	return v.PutFilled(tx, by, vault.Item{RepoID: value.RepoID, Name: value.Name, Environment: value.Environment, Value: value.Value},
		value.Host)
}

// BlockerTasks implements blocker.Tasks: the tasks that wait for blockers.
type BlockerTasks struct{ Tasks *task.Service }

// Lock locks a task of tx.Account until tx ends.
func (BlockerTasks) Lock(tx *db.Tx, taskID string) error {
	_, _, err := task.Lock(tx, tx.Account, taskID)
	return err
}

// LiveRun names the run of a task of tx.Account that is alive, "" for none.
func (BlockerTasks) LiveRun(tx *db.Tx, taskID string) (string, error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	if err != nil || !ok || !t.Status.InFlight() || t.RunID == nil {
		return "", err
	}
	return *t.RunID, nil
}

// Resume lets a task go on, as blocker.Tasks says.
func (b BlockerTasks) Resume(tx *db.Tx, taskID, runID string, w blocker.Word, release bool) (string, error) {
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
		return blocker.Released, b.Tasks.Release(tx, &t)
	case w.Text == "":
		return blocker.Recorded, nil
	}
	woken, err := run.Wake(tx, runID, w.Text, w.Answers...)
	if err != nil || !woken {
		return blocker.Recorded, err
	}
	return blocker.Woken, nil
}

// ExpireBlockers closes the blockers of a task that was cancelled, because their
// answers are of no use any more.
func ExpireBlockers(tx *db.Tx, m task.Move) error {
	if t := m.Task; t.Status == task.Cancelled {
		return tx.As(t.AccountID, func() error { return blocker.Expire(tx, t.ID) })
	}
	return nil
}

// TellRefusal tells a run which fields of its blocker could not be filled in.
func TellRefusal(tx *db.Tx, r blocker.Refusal) error {
	_, err := run.Wake(tx, r.RunID, r.Text)
	return err
}
