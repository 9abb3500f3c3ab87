package flow

import (
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/lfs"
	"yardmaster/internal/domain/repo"
)

// LFSRepos finds the repositories of objects of Git LFS. It is lfs.Repos.
type LFSRepos struct{}

// At finds a repository of whatever account by its place.
func (LFSRepos) At(tx *db.Tx, r codehost.Repo) (lfs.Repo, bool, error) {
	found, ok, err := repo.At(tx, r)
	return lfs.Repo{ID: found.ID, Account: found.AccountID}, ok, err
}
