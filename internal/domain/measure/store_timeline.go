package measure

import (
	"time"

	"yardmaster/internal/db"
)

// Stay is a time that a run had a task, or that a person was asked about it.
type Stay struct {
	Kind       string // of the task of a run; blocker or approval of a person
	ID, TaskID string // of the run, blocker or question; of the task whose run it is, "" of a question
	Attempt    int64  // of the run's task
	WaitsFrom  time.Time
	BeganAt    time.Time
	StartedAt  *time.Time // when the agent of the run began
	EndedAt    *time.Time
	Before     *string // the failure kind of the try before
	Outcome    *string
	CostMicros *int64
}

// Way is when a task was filed, and when it ended.
type Way struct {
	CreatedAt  time.Time
	FinishedAt *time.Time
}

var way = db.Q[Way](`SELECT created_at, finished_at FROM tasks WHERE account_id = $1 AND id = $2`)

// WayOf is the way of a task of tx.Account; false: there is no such task.
func WayOf(tx *db.Tx, taskID string) (Way, bool, error) { return way.Maybe(tx, tx.Account, taskID) }

// stays are the runs of a task and those of the tasks about the pull request that it made: its
// checks, reviews and repairs.
var (
	stays = db.Q[Stay](`SELECT t.kind, w.id, w.task_id, w.attempt,
		COALESCE((SELECT MAX(b.ended_at) FROM runs b WHERE b.task_id = w.task_id AND b.created_at < w.created_at), t.created_at) AS waits_from,
		w.created_at AS began_at, w.started_at, w.ended_at,
		(SELECT b.failure_kind FROM runs b WHERE b.task_id = w.task_id AND b.created_at < w.created_at
			ORDER BY b.created_at DESC LIMIT 1) AS before,
		w.outcome, (SELECT CAST(SUM(s.cost_micros) AS BIGINT) FROM sessions s WHERE s.run_id = w.id) AS cost_micros
		FROM runs w JOIN tasks t ON t.id = w.task_id
		WHERE w.account_id = $1 AND (w.task_id = $2 OR t.pr_id = (SELECT p.id FROM pulls p WHERE p.account_id = $1 AND p.task_id = $2))
		ORDER BY w.created_at, w.id LIMIT 500`)
	// questions are what people were asked on the way: what a run lacked, and whether the pull request is merged.
	questions = db.Q[Stay](`SELECT kind, id, task_id, attempt, began_at AS waits_from, began_at, NULL AS started_at, ended_at,
		NULL AS before, outcome, NULL AS cost_micros FROM (
		SELECT 'blocker' AS kind, b.id, b.task_id, 0 AS attempt, b.created_at AS began_at, b.closed_at AS ended_at, b.state AS outcome
			FROM blockers b WHERE b.account_id = $1 AND b.task_id = $2
		UNION ALL
		SELECT 'approval' AS kind, a.id, '' AS task_id, 0 AS attempt, a.requested_at AS began_at,
			CASE WHEN a.decided_at IS NULL AND a.state <> 'pending' THEN a.requested_at ELSE a.decided_at END AS ended_at, a.state AS outcome
			FROM pull_actions a JOIN pulls p ON p.id = a.pr_id
			WHERE a.account_id = $1 AND p.task_id = $2 AND COALESCE(a.decided_by, '') <> 'policy') q
		ORDER BY began_at, id LIMIT 500`)
)

// Stays are what became of a task of tx.Account on its way, in the order in which it began: at
// most 500 runs, and as many questions to people. A run that no box began waits from the time at
// which it could have begun.
func Stays(tx *db.Tx, taskID string) (runs, asked []Stay, err error) {
	if runs, err = stays.All(tx, tx.Account, taskID); err != nil {
		return nil, nil, err
	}
	asked, err = questions.All(tx, tx.Account, taskID)
	return runs, asked, err
}
