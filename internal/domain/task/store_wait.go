package task

import (
	"time"

	"yardmaster/internal/db"
)

// Columns are the columns of Row, for statements of the queue.
const Columns = own

// IsReady is the condition in SQL of the tasks that are ready, see Row.Ready. It is,
// word by word, the condition of the indexes tasks_ready and tasks_ready_by.
const IsReady = `status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL`

// IsWaiting is the condition in SQL of the other pending tasks, that of the index
// tasks_waiting.
const IsWaiting = `status = 'pending' AND (waiting_deps > 0 OR not_before > 0 OR conflict_with IS NOT NULL)`

const freedColumns = `id, account_id, repo_id, template, priority, created_at, (` + IsReady + `) AS ready`

var (
	selectWasReady = db.Q[bool](`SELECT TRUE FROM tasks WHERE account_id = $1 AND id = $2 AND ` + IsReady)

	// selectDue and selectNextWake name the index tasks_later by its condition.
	selectDue = db.Q[string](`SELECT id FROM tasks WHERE account_id = $1 AND status = 'pending' AND not_before > 0 AND not_before <= $2
		ORDER BY not_before LIMIT 64`)
	wakeUp = db.Q[freed](`UPDATE tasks SET not_before = 0 WHERE account_id = $1 AND id = $2 AND status = 'pending' AND not_before > 0
		RETURNING ` + freedColumns)
	selectNextWake = db.Q[*time.Time](`SELECT MIN(not_before) FROM tasks
		WHERE account_id = $1 AND status = 'pending' AND not_before > 0 AND not_before > $2`)

	selectOpen = db.Q[Row](`SELECT ` + own + ` FROM tasks
		WHERE repo_id = $1 AND status IN ('claimed', 'running', 'awaiting_ci', 'awaiting_review', 'mergeable')
		ORDER BY claimed_at, id LIMIT $2`)
	selectInFlight = db.Q[string](`SELECT id FROM tasks WHERE account_id = $1 AND repo_id = $2 AND status IN ('claimed', 'running')
		ORDER BY created_at, id`)
	clearBehind = db.Q[freed](`UPDATE tasks SET conflict_with = NULL, conflict_at = NULL, conflict_paths = '[]' WHERE conflict_with = $1
		RETURNING ` + freedColumns)
	clearInRepo = db.Q[freed](`UPDATE tasks SET conflict_with = NULL, conflict_at = NULL, conflict_paths = '[]'
		WHERE repo_id = $1 AND status = 'pending' AND conflict_with IS NOT NULL RETURNING ` + freedColumns)

	// selectUnpaid is helped by the index tasks_status.
	selectUnpaid = db.Q[Row](`SELECT ` + own + ` FROM tasks
		WHERE account_id = $1 AND status = 'held' AND failure_kind IN ('budget_exhausted', 'unpriced_model')
		ORDER BY created_at, id LIMIT $2`)

	endLongWaits = db.S(`UPDATE tasks SET not_before = $1 WHERE status = 'pending' AND not_before > 0 AND not_before > $2`)
)

// freed is a task that has one wait less.
type freed struct {
	ID        string
	AccountID string
	RepoID    string
	Template  string
	Priority  int64
	CreatedAt time.Time
	Ready     bool
}

// Due lists the pending tasks of an account whose wait before the next try is over,
// those that have waited longest first and at most 64.
func Due(tx *db.Tx, account string) ([]string, error) { return selectDue.All(tx, account, tx.Now) }

// NextWake returns when the first wait before a next try in an account ends that is
// not over yet; nil if no task waits for that.
func NextWake(tx *db.Tx, account string) (*time.Time, error) {
	return selectNextWake.One(tx, account, tx.Now)
}

// Open lists the tasks whose work may still change the repository, up to limit, those
// that were claimed longest ago first.
func Open(tx *db.Tx, repoID string, limit int) ([]Row, error) {
	return selectOpen.All(tx, repoID, limit)
}

// HeldForMoney lists the tasks of tx.Account that are held for want of money or of a
// price for their model, up to limit, oldest first.
func HeldForMoney(tx *db.Tx, limit int) ([]Row, error) {
	return selectUnpaid.All(tx, tx.Account, limit)
}

// longestWait is the longest that a pending task backs off.
const longestWait = 30 * time.Minute

// ClockSetBack ends the waits of pending tasks that would last longer than
// longestWait.
func ClockSetBack(tx *db.Tx) error {
	_, err := endLongWaits.Exec(tx, tx.Now, tx.Now.Add(longestWait))
	return err
}
