package task

import "yardmaster/internal/db"

// Sketch is a task in short, for readers of many.
type Sketch struct {
	ID      string
	RepoID  string
	Repo    string // owner/name
	Kind    string
	Status  Status
	Title   string
	Problem string // its first 400 characters
	Files   db.JSON[[]string]
}

const sketchColumns = `SELECT t.id, t.repo_id, r.owner || '/' || r.name AS repo, t.kind, t.status, t.title,
	SUBSTR(t.problem, 1, 400) AS problem, t.files`

var (
	newestTasks = db.Q[Sketch](sketchColumns + ` FROM (SELECT * FROM tasks
			WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT 500) t
		JOIN repos r ON r.id = t.repo_id ORDER BY t.created_at DESC, t.id DESC`)
	newestOfRepo = db.Q[Sketch](sketchColumns + ` FROM (SELECT * FROM tasks
			WHERE account_id = $1 AND repo_id = $2 ORDER BY created_at DESC, id DESC LIMIT 500) t
		JOIN repos r ON r.id = t.repo_id ORDER BY t.created_at DESC, t.id DESC`)
)

// ofAsk are the tasks that name an ask, without those that were cancelled.
var ofAsk = db.Q[string](`SELECT id FROM tasks WHERE account_id = $1 AND ask_id = $2 AND status <> 'cancelled' ORDER BY created_at, id`)

// OfAsk lists the tasks of tx.Account that name an ask as what they answer, without those that
// were cancelled.
func OfAsk(tx *db.Tx, askID string) ([]string, error) { return ofAsk.All(tx, tx.Account, askID) }

// Newest lists the newest tasks of tx.Account in any status, 500 at most, the
// newest first: those of one repository, or of all if repoID is empty.
func Newest(tx *db.Tx, repoID string) ([]Sketch, error) {
	if repoID != "" {
		return newestOfRepo.All(tx, tx.Account, repoID)
	}
	return newestTasks.All(tx, tx.Account)
}

var pullTasksOfPlan = db.Q[string](`SELECT c.id FROM tasks t JOIN tasks c ON c.pr_id = t.pr_id
	WHERE t.account_id = $1 AND c.account_id = $1 AND t.plan_id = $2 AND c.plan_id IS NULL AND c.kind IN ('review', 'babysit')
	ORDER BY c.id`)

// PullTasksOfPlan lists the tasks that look after the pull requests of a plan's
// tasks, of tx.Account, by id.
func PullTasksOfPlan(tx *db.Tx, planID string) ([]string, error) {
	return pullTasksOfPlan.All(tx, tx.Account, planID)
}

var newestIn = db.Q[string](`SELECT id FROM tasks WHERE account_id = $1 AND repo_id = $2 ORDER BY created_at DESC, id DESC LIMIT $3`)

// NewestIn lists the ids of the newest tasks of a repository of tx.Account, newest first
// and at most limit.
func NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return newestIn.All(tx, tx.Account, repoID, limit)
}
