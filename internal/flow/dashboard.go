package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
)

// DashboardRepos implements dashboard.Repos.
type DashboardRepos struct{}

// ByName finds the repository of tx.Account that a name addresses.
func (DashboardRepos) ByName(tx *db.Tx, owner, name string) (string, bool, error) {
	r, ok, err := repo.ByName(tx, owner, name)
	return r.ID, ok, err
}

// Name is owner/name of a repository of tx.Account.
func (DashboardRepos) Name(tx *db.Tx, repoID string) (string, error) {
	r, ok, err := repo.ByID(tx, repoID)
	if err != nil || !ok {
		return "", err
	}
	return r.FullName(), nil
}
