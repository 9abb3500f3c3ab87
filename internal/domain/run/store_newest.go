package run

import (
	"time"

	"yardmaster/internal/db"
)

// Newest is what the newest run of a task recorded about itself.
type Newest struct {
	ID           string
	TaskID       string
	BoxID        string
	Agent        string
	AgentVersion *string
	Isolation    *string
	StartedAt    *time.Time // nil: its agent was never started
}

// NewestOf reads the newest runs of tasks of tx.Account, by task.
func NewestOf(tx *db.Tx, taskIDs []string) (map[string]Newest, error) {
	out := map[string]Newest{}
	if len(taskIDs) == 0 {
		return out, nil
	}
	rows, err := db.Select[Newest](tx, db.Build(`SELECT id, task_id, box_id, agent, agent_version, isolation, started_at FROM runs
		WHERE account_id = `, tx.Account).In("task_id", taskIDs).SQL(" ORDER BY created_at, id"))
	for _, r := range rows {
		out[r.TaskID] = r
	}
	return out, err
}

type activityRow struct{ TaskID, Activity string }

// selectActivities begins with the tasks in flight, of which there are few.
var selectActivities = db.Q[activityRow](`SELECT r.task_id, r.activity FROM tasks t JOIN runs r ON r.id = t.run_id
	WHERE t.account_id = $1 AND t.status IN ('claimed', 'running') AND r.activity IS NOT NULL`)

func activitiesOf(tx *db.Tx, taskIDs []string) ([]activityRow, error) {
	return db.Select[activityRow](tx, db.Build(`SELECT task_id, activity FROM runs
		WHERE account_id = `, tx.Account).SQL(" AND ended_at IS NULL AND activity IS NOT NULL").In("task_id", taskIDs))
}
