package flow

import (
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/hosttoken"
	"yardmaster/internal/domain/repo"
)

// BoundRepos finds the repositories of personal tokens. It is hosttoken.Repos; the
// transcripts of package hosttoken show it.
type BoundRepos struct{}

func boundRepo(r repo.Ref) hosttoken.Repo {
	return hosttoken.Repo{ID: r.ID, Account: r.AccountID, At: r.HostRepo()}
}

// ByName finds a repository of tx.Account by its name at a host.
func (BoundRepos) ByName(tx *db.Tx, host, owner, name string) (hosttoken.Repo, bool, error) {
	r, ok, err := repo.ByNameAt(tx, host, owner, name)
	return boundRepo(r), ok, err
}

// Newest lists enabled repositories of tx.Account at a host.
func (BoundRepos) Newest(tx *db.Tx, host string, limit int) ([]hosttoken.Repo, error) {
	found, err := repo.NewestAt(tx, host, limit)
	return boundRepos(tx, found), err
}

// ByIDs lists the repositories of tx.Account that have the ids.
func (BoundRepos) ByIDs(tx *db.Tx, ids []string) ([]hosttoken.Repo, error) {
	found, err := repo.ByIDsAnywhere(tx, ids)
	return boundRepos(tx, found), err
}

// boundRepos are those of the repositories that tx.Account has.
func boundRepos(tx *db.Tx, found []repo.Ref) (out []hosttoken.Repo) {
	for _, r := range found {
		if r.AccountID == tx.Account {
			out = append(out, boundRepo(r))
		}
	}
	return out
}

// At finds a repository of whatever account by its identity at its host.
func (BoundRepos) At(tx *db.Tx, r codehost.Repo) (hosttoken.Repo, bool, error) {
	found, ok, err := repo.At(tx, r)
	return boundRepo(found), ok, err
}
