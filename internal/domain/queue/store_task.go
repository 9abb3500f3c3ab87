package queue

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

var (
	selectHead = db.QWith[headArgs, task.Row](`SELECT ` + task.Columns + ` FROM tasks
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority
		AND ` + task.IsReady + ` ORDER BY created_at, id LIMIT :limit`)
	selectHeadBy = db.QWith[headByArgs, task.Row](`SELECT ` + task.Columns + ` FROM tasks
		WHERE account_id = :account_id AND requested_by = :requested_by AND repo_id = :repo_id AND template = :template
		AND priority = :priority AND ` + task.IsReady + ` ORDER BY created_at, id LIMIT :limit`)

	selectHeadOfNobody = db.QWith[headArgs, task.Row](`SELECT ` + task.Columns + ` FROM tasks
		WHERE account_id = :account_id AND requested_by IS NULL AND repo_id = :repo_id AND template = :template
		AND priority = :priority AND ` + task.IsReady + ` ORDER BY created_at, id LIMIT :limit`)

	// countAhead counts the tasks of its lane before a task, countAfter those from the
	// task on, each up to :most.
	countAhead = db.QWith[placeArgs, int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM tasks
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority
		AND ` + task.IsReady + ` AND (created_at, id) < (:created_at, :id) LIMIT :most) AS ahead`)
	countAfter = db.QWith[placeArgs, int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM tasks
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority
		AND ` + task.IsReady + ` AND (created_at, id) >= (:created_at, :id) LIMIT :most) AS after`)

	// selectReadyFrom lists the ready tasks that are as new as a task, newest first.
	selectReadyFrom = db.QWith[selectReadyFromArgs, waiter](`SELECT repo_id, template, priority, created_at, id FROM tasks
		WHERE account_id = :account_id AND ` + task.IsReady +
		` AND (created_at, id) >= (:created_at, :id) ORDER BY created_at DESC, id DESC LIMIT :limit`)

	// countReadyBy is for accounts that boxes of members serve.
	countReadyBy = db.Q[crowd](`SELECT repo_id, template, priority, requested_by, TRUE AS told_apart, FALSE AS waits, FALSE AS later,
		NULL AS conflict_with, COUNT(*) AS n,
		MIN(queued_at) AS queued, MIN(updated_at) AS updated, NULL AS not_before FROM tasks WHERE account_id = $1 AND ` + task.IsReady + `
		GROUP BY repo_id, template, priority, requested_by`)
	countWaiting = db.Q[crowd](`SELECT repo_id, template, 0 AS priority, NULL AS requested_by, FALSE AS told_apart,
		(waiting_deps > 0) AS waits, (not_before > $2) AS later, conflict_with,
		COUNT(*) AS n, MIN(queued_at) AS queued, MIN(updated_at) AS updated, MAX(not_before) AS not_before FROM tasks
		WHERE account_id = $1 AND ` + task.IsWaiting + `
		GROUP BY repo_id, template, (waiting_deps > 0), (not_before > $2), conflict_with`)
	selectWaiting = db.Q[task.Row](`SELECT ` + task.Columns + ` FROM tasks WHERE account_id = $1 AND ` + task.IsWaiting +
		` ORDER BY created_at, id LIMIT $2`)
)

// selectReadyFromArgs are the parameters of selectReadyFrom.
type selectReadyFromArgs struct {
	AccountID string
	CreatedAt time.Time
	ID        string
	Limit     int
}

// headArgs are a lane and how many of its first tasks to read; headByArgs are for those
// that one person asked for.
type (
	headArgs struct {
		AccountID, RepoID, Template string
		Priority                    int64
		Limit                       int
	}
	headByArgs struct {
		headArgs
		RequestedBy string
	}
)

// placeArgs are a pending task, and how many tasks to count at most.
type placeArgs struct {
	task.Row
	Most int64
}

type (
	// waiter is a ready task.
	waiter struct {
		RepoID    string
		Template  string
		Priority  int64
		CreatedAt time.Time
		ID        string
	}
	// gap is how many ready tasks of its lane a task and the next of a page have
	// between them, the former included.
	gap struct {
		ID string
		N  int64
	}

	// crowd is how many pending tasks wait for the same.
	crowd struct {
		RepoID       string
		Template     string
		Priority     int64
		RequestedBy  *string
		ToldApart    bool // by the person who asked for them
		Waits        bool
		Later        bool
		ConflictWith *string
		N            int64
		Queued       time.Time
		Updated      time.Time
		NotBefore    *time.Time
	}
)

// selectGaps counts, for each of the tasks, the ready tasks of its lane from it to the
// next of the tasks.
func selectGaps(tx *db.Tx, account string, ids []string) (map[string]int64, error) {
	rows, err := db.Select[gap](tx, db.Build(`WITH page AS (SELECT id, repo_id, template, priority, created_at,
			LEAD(created_at) OVER lane AS next_at, LEAD(id) OVER lane AS next_id FROM tasks WHERE account_id = `, account).In("id", ids).
		SQL(` WINDOW lane AS (PARTITION BY repo_id, template, priority ORDER BY created_at, id))
		SELECT p.id, (SELECT COUNT(*) FROM tasks t WHERE t.account_id = `,
			account).SQL(` AND t.repo_id = p.repo_id AND t.template = p.template AND t.priority = p.priority
			AND t.status = 'pending' AND t.waiting_deps = 0 AND t.not_before = 0 AND t.conflict_with IS NULL
			AND (t.created_at, t.id) >= (p.created_at, p.id) AND (t.created_at, t.id) < (p.next_at, p.next_id)) AS n FROM page p
			WHERE p.next_at IS NOT NULL`))
	out := map[string]int64{}
	for _, g := range rows {
		out[g.ID] = g.N
	}
	return out, err
}

// ownHead reads the first tasks of a lane that go over keys of those who asked for them.
func ownHead(tx *db.Tx, a headArgs, people []string) ([]task.Row, error) {
	return db.Select[task.Row](tx, db.Build(`SELECT `+task.Columns+` FROM tasks WHERE account_id = `, a.AccountID).
		And("repo_id = ", a.RepoID).And("template = ", a.Template).And("priority = ", a.Priority).In("requested_by", people).
		SQL(` AND unbound = FALSE AND `+task.IsReady+` ORDER BY created_at, id LIMIT `, a.Limit))
}
