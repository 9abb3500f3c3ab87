package task

import (
	"time"

	"yardmaster/internal/db"
)

type obstacleRow struct {
	ID          string
	Status      Status
	Stuck       bool
	FailureKind *string
	UpdatedAt   time.Time
	PRID        *string `db:"pr_id"`
	AskedSHA    *string `db:"asked_sha"` // the head that a person is asked about
	AskedAt     *time.Time
}

type (
	follower struct{ Root, ID string }
	crowdOf  struct {
		Root string
		N    int64
	}
)

// maxObstacles bounds how many are told apart.
const maxObstacles = 200

var selectObstacles = db.Q[obstacleRow](`SELECT t.id, t.status, t.stuck, t.failure_kind, t.updated_at, t.pr_id, a.head_sha AS asked_sha, a.requested_at AS asked_at
	FROM tasks t LEFT JOIN pull_actions a ON a.pr_id = t.pr_id AND a.state = 'pending'
	WHERE t.account_id = $1 AND t.status IN ('held', 'running', 'awaiting_ci', 'awaiting_review', 'mergeable') AND (t.status IN ('held', 'running') OR t.stuck OR a.id IS NOT NULL)
		AND (EXISTS (SELECT 1 FROM task_deps d JOIN tasks w ON w.id = d.task_id AND w.status = 'pending' WHERE d.depends_on = t.id)
			OR EXISTS (SELECT 1 FROM tasks c WHERE c.conflict_with = t.id))
	ORDER BY t.updated_at, t.id LIMIT $2`)

// followers begins a query over what waits for the obstacles, however far down.
func followers(all []obstacle) *db.Builder {
	roots := make([]string, len(all))
	for i := range all {
		roots[i] = all[i].ID
	}
	return db.Build(`WITH RECURSIVE behind (root, id) AS (SELECT depends_on, task_id FROM task_deps WHERE TRUE`).In("depends_on", roots).
		SQL(` UNION SELECT b.root, d.task_id FROM behind b JOIN task_deps d ON d.depends_on = b.id) `)
}

// selectFollowers lists which of the waiting tasks are behind which obstacle.
func selectFollowers(tx *db.Tx, all []obstacle, waiting []string) ([]follower, error) {
	return db.Select[follower](tx, followers(all).SQL(`SELECT root, id FROM behind WHERE TRUE`).In("id", waiting))
}

// crowdsBehind counts the pending tasks behind each obstacle.
func crowdsBehind(tx *db.Tx, all []obstacle) (map[string]int64, error) {
	out := map[string]int64{}
	if len(all) == 0 {
		return out, nil
	}
	rows, err := db.Select[crowdOf](tx, followers(all).SQL(`SELECT b.root, COUNT(*) AS n FROM behind b JOIN tasks t ON t.id = b.id AND t.status = 'pending' GROUP BY b.root`))
	for _, r := range rows {
		out[r.Root] = r.N
	}
	return out, err
}
