package flow

import (
	"context"

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

// Contents are the contents of repositories as package lfs keeps them. It is repo.Contents.
type Contents struct {
	Of func() *lfs.Service // made after what asks
}

// Begun answers the id of a repository to be of tx.Account.
func (Contents) Begun(tx *db.Tx, r codehost.Repo) (string, error) { return lfs.Begun(tx, r) }

// Tidy gives back the bytes of what nothing in a repository names.
func (c Contents) Tidy(ctx context.Context, repoID string, pointed func(context.Context, []string) ([]string, error)) error {
	return c.Of().Tidy(ctx, repoID, pointed)
}
