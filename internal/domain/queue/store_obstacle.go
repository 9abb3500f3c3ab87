package queue

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

type obstacleRow struct {
	ID          string
	Status      task.Status
	Stuck       bool
	FailureKind *string
	UpdatedAt   time.Time
	PRID        *string `db:"pr_id"`
}

type (
	follower struct{ Root, ID string }
	crowdOf  struct {
		Root string
		N    int64
	}
)

// maxObstacles is how many obstacles of an account are read.
const maxObstacles = 200

var selectObstacles = db.Q[obstacleRow](`SELECT t.id, t.status, t.stuck, t.failure_kind, t.updated_at, t.pr_id
	FROM tasks t LEFT JOIN pulls p ON p.id = t.pr_id AND p.needs <> ''
	WHERE t.account_id = $1 AND t.status IN ('held', 'running', 'awaiting_ci', 'awaiting_review', 'mergeable')
	AND (t.status IN ('held', 'running') OR t.stuck OR p.id IS NOT NULL)
		AND (EXISTS (SELECT 1 FROM task_deps d JOIN tasks w ON w.id = d.task_id AND w.status = 'pending' WHERE d.depends_on = t.id)
			OR EXISTS (SELECT 1 FROM tasks c WHERE c.conflict_with = t.id))
	ORDER BY t.updated_at, t.id LIMIT $2`)

// followers begins a query over the tasks of an account that wait for the obstacles,
// directly or through others, for their end or for the files that they change.
func followers(account string, all []obstacle) *db.Builder {
	return addFollowers(new(db.Builder), account, all)
}

// addFollowers is followers within another query.
func addFollowers(b *db.Builder, account string, all []obstacle) *db.Builder {
	roots := make([]string, len(all))
	for i := range all {
		roots[i] = all[i].ID
	}
	return b.SQL(`WITH RECURSIVE waiting (id, conflict_with) AS (SELECT id, conflict_with FROM tasks WHERE `+task.IsWaiting+
		` AND account_id = `, account).
		SQL(`), waits (up, down) AS (SELECT d.depends_on, w.id FROM waiting w JOIN task_deps d ON d.task_id = w.id
			UNION ALL SELECT conflict_with, id FROM waiting WHERE conflict_with IS NOT NULL),
		behind (root, id) AS (SELECT up, down FROM waits WHERE TRUE`).In("up", roots).
		SQL(` UNION SELECT b.root, w.down FROM behind b JOIN waits w ON w.up = b.id) `)
}

// selectFollowers lists which of the waiting tasks wait for which obstacle.
func selectFollowers(tx *db.Tx, all []obstacle, waiting []string) ([]follower, error) {
	return db.Select[follower](tx, followers(tx.Account, all).SQL(`SELECT root, id FROM behind WHERE TRUE`).In("id", waiting))
}

// crowdsBehind counts the pending tasks that wait for each obstacle.
func crowdsBehind(tx *db.Tx, all []obstacle) (map[string]int64, error) {
	out := map[string]int64{}
	if len(all) == 0 {
		return out, nil
	}
	rows, err := db.Select[crowdOf](tx, followers(tx.Account, all).SQL(`SELECT root, COUNT(*) AS n FROM behind GROUP BY root`))
	for _, r := range rows {
		out[r.Root] = r.N
	}
	return out, err
}
