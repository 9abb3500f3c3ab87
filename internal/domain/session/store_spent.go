package session

import (
	"slices"

	"yardmaster/internal/db"
)

type (
	// round is a task that repairs the pull request of the task Served.
	round struct{ ID, Served string }
	spent struct {
		TaskID string
		Micros int64
	}
)

// Spent sums the cost of the sessions of tasks of tx.Account, in micro-dollars by
// task, with the cost of the tasks that repaired a task's pull request. Calls
// without a price are left out, and so are tasks without a call that has one.
func Spent(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	if len(taskIDs) == 0 {
		return nil, nil
	}
	rounds, err := db.Select[round](tx, db.Build(`SELECT c.id, p.task_id AS served FROM pulls p JOIN tasks c ON c.pr_id = p.id
		WHERE c.kind = 'babysit' AND p.account_id = `, tx.Account).In("p.task_id", taskIDs))
	if err != nil {
		return nil, err
	}
	all := slices.Clone(taskIDs)
	for _, r := range rounds {
		all = append(all, r.ID)
	}
	rows, err := db.Select[spent](tx, db.Build(`SELECT task_id, CAST(SUM(cost_micros) AS BIGINT) AS micros FROM sessions
		WHERE account_id = `, tx.Account).And("cost_micros IS NOT NULL").In("task_id", all).SQL(" GROUP BY task_id"))
	out := make(map[string]int64, len(rows))
	for _, r := range rows {
		out[r.TaskID] = r.Micros
	}
	for _, r := range rounds {
		if micros, ok := out[r.ID]; ok {
			out[r.Served] += micros
		}
	}
	return out, err
}

var newestIn = db.Q[string](`SELECT id FROM sessions WHERE account_id = $1 AND repo_id = $2 ORDER BY started_at DESC, id DESC LIMIT $3`)

// NewestIn lists the ids of the newest sessions of a repository of tx.Account, newest first
// and at most limit.
func NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return newestIn.All(tx, tx.Account, repoID, limit)
}
