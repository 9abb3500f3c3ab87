package ask

import (
	"slices"

	"yardmaster/internal/db"
)

// sketch is a task as a judge sees it.
type sketch struct {
	ID      string `json:"id"`
	RepoID  string `json:"-"`
	Repo    string `json:"repo"`
	Kind    string `json:"kind"`
	Status  string `json:"status"`
	Title   string `json:"title"`
	Problem string `json:"problem"`

	Files db.JSON[[]string] `json:"-"`
	Touch []string          `json:"files,omitempty" db:"-"`
}

type reached struct {
	Repo      string  `json:"repo"`
	Enabled   bool    `json:"enabled"`
	Branch    string  `db:"default_branch" json:"default_branch"`
	PolicyYML *string `db:"policy_yml" json:"policy,omitempty"`
}

const reachedColumns = `SELECT owner || '/' || name AS repo, enabled, default_branch,
	CASE WHEN policy_error IS NULL THEN policy_yml END AS policy_yml
	FROM repos WHERE account_id = `

const sketchColumns = `SELECT t.id, t.repo_id, r.owner || '/' || r.name AS repo, t.kind, t.status, t.title, SUBSTR(t.problem, 1,
	400) AS problem, t.files`

// The newest tasks. The limit keeps a judge from a queue of a hundred thousand.
var (
	newestTasks = db.Q[sketch](sketchColumns + ` FROM (SELECT * FROM tasks WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT 500) t
		JOIN repos r ON r.id = t.repo_id ORDER BY t.created_at DESC, t.id DESC`)
	newestOfRepo = db.Q[sketch](sketchColumns + ` FROM (SELECT * FROM tasks WHERE account_id = $1 AND repo_id = $2
		ORDER BY created_at DESC, id DESC LIMIT 500) t
		JOIN repos r ON r.id = t.repo_id ORDER BY t.created_at DESC, t.id DESC`)
)

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

// tasksNear returns the newest tasks in the repositories that the ask reaches,
// in any status.
func tasksNear(tx *db.Tx, r *row) (all []sketch, err error) {
	if len(r.Reach.V) == 1 {
		return newestOfRepo.All(tx, tx.Account, r.Reach.V[0])
	}
	all, err = newestTasks.All(tx, tx.Account)
	return slices.DeleteFunc(all, func(t sketch) bool { return !r.within(t.RepoID) }), err
}
