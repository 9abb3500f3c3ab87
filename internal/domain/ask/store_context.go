package ask

import (
	"slices"

	"yardmaster/internal/db"
)

type reached struct {
	Repo      string  `json:"repo"`
	Enabled   bool    `json:"enabled"`
	Branch    string  `db:"default_branch" json:"default_branch"`
	PolicyYML *string `db:"policy_yml" json:"policy,omitempty"`
}

const reachedColumns = `SELECT owner || '/' || name AS repo, enabled, default_branch,
	CASE WHEN policy_error IS NULL THEN policy_yml END AS policy_yml
	FROM repos WHERE account_id = `

// reachedRepos returns the repositories that a verdict about the ask may name,
// the newest first.
func reachedRepos(tx *db.Tx, r *row) ([]reached, error) {
	b := db.Build(reachedColumns, tx.Account)
	if len(r.Reach.V) > 0 {
		b.In("id", r.Reach.V)
	} else {
		b.SQL(" AND enabled")
	}
	return db.Select[reached](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", maxReach))
}

// tasksNear returns the newest tasks in the repositories that the ask reaches, in
// any status.
func (s *Service) tasksNear(tx *db.Tx, r *row) ([]Sketch, error) {
	if len(r.Reach.V) == 1 {
		return s.Queue.Newest(tx, r.Reach.V[0])
	}
	all, err := s.Queue.Newest(tx, "")
	return slices.DeleteFunc(all, func(t Sketch) bool { return !r.within(t.RepoID) }), err
}

var newestIn = db.Q[string](`SELECT id FROM asks WHERE account_id = $1 AND repo_id = $2 ORDER BY created_at DESC, id DESC LIMIT $3`)

// NewestIn lists the ids of the newest asks of a repository of tx.Account, newest first
// and at most limit.
func NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return newestIn.All(tx, tx.Account, repoID, limit)
}
