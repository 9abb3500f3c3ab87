package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/vault"
)

// newVault keeps the secrets under the master key.
func (a *App) newVault() *vault.Service {
	return &vault.Service{DB: a.db, Ring: a.ring, Repo: repoID, Reachable: a.cfg.Reachable}
}

// repoID finds a repository of tx.Account by its name.
func repoID(tx *db.Tx, owner, name string) (string, bool, error) {
	r, ok, err := repo.ByName(tx, owner, name)
	return r.ID, ok, err
}
