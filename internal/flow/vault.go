package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/template"
)

// VaultRepos finds the repositories that addresses of secrets name. It is
// vault.Repos; the transcripts of package vault show it.
type VaultRepos struct{}

// ID is the id of a repository of tx.Account; false if there is none of the
// name.
func (VaultRepos) ID(tx *db.Tx, owner, name string) (string, bool, error) {
	r, ok, err := repo.ByName(tx, owner, name)
	return r.ID, ok, err
}

// PromptRefs implements prompt.Refs: whether the repository or template of a prompt
// exists. The transcripts of package prompt show it.
type PromptRefs struct{}

// HasRepo tells whether the id is a repository of tx.Account.
func (PromptRefs) HasRepo(tx *db.Tx, id string) (bool, error) {
	_, ok, err := repo.ByID(tx, id)
	return ok, err
}

// HasTemplate tells whether tx.Account has a template of the name.
func (PromptRefs) HasTemplate(tx *db.Tx, name string) (bool, error) {
	_, ok, err := template.ByName(tx, tx.Account, name)
	return ok, err
}
