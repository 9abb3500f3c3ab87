package measure

import (
	"time"

	"yardmaster/internal/db"
)

// Lead is a task whose pull request was merged.
type Lead struct {
	PullID, TaskID    string
	FiledAt, MergedAt time.Time
}

// Leg is a time that a run or a question, whose Kind is person, took of a Lead.
type Leg struct {
	PullID string
	Stay
}

// Turn is a time that a task was in the queue, and then on a box.
type Turn struct {
	FiledAt       time.Time
	DependedUntil *time.Time // when the last task that it depends on was finished; nil: it depends on none
	TriedUntil    *time.Time // when the try before ended; nil: it is the first
	ClaimedAt     *time.Time // nil: it is in the queue
	EndedAt       *time.Time // nil: it is on its box, or in the queue
}

// From is when a box could have had the task, as far as rows tell.
func (w Turn) From() time.Time {
	at := w.FiledAt
	for _, other := range []*time.Time{w.DependedUntil, w.TriedUntil} {
		if other != nil && other.After(at) && (w.ClaimedAt == nil || other.Before(*w.ClaimedAt)) {
			at = *other
		}
	}
	return at
}

const (
	leadRows = `SELECT p.id AS pull_id, t.id AS task_id, t.created_at AS filed_at, p.merged_at FROM pulls p JOIN tasks t ON t.id = p.task_id
		WHERE p.account_id = :account_id AND p.` + merged + ` AND (:repo_id = '' OR p.repo_id = :repo_id)
		ORDER BY p.merged_at DESC, p.id LIMIT 2000`
	triedUntil = `(SELECT MAX(b.ended_at) FROM runs b WHERE b.task_id = w.task_id AND b.created_at < w.created_at)`
	ofLeads    = `SELECT m.pull_id, t.kind, w.id, w.task_id, w.attempt, COALESCE(` + triedUntil + `, t.created_at) AS waits_from,
		w.created_at AS began_at, w.started_at, w.ended_at, NULL AS before, w.outcome, NULL AS cost_micros
		FROM m JOIN tasks t ON t.`
	asksOf = `SELECT m.pull_id, 'person' AS kind, q.id, m.task_id, 0 AS attempt, q.began_at AS waits_from, q.began_at,
		NULL AS started_at, q.ended_at, NULL AS before, q.state AS outcome, NULL AS cost_micros FROM m JOIN `
	turnColumns = `SELECT t.created_at AS filed_at,
		(SELECT MAX(d.finished_at) FROM task_deps e JOIN tasks d ON d.id = e.depends_on WHERE e.task_id = t.id) AS depended_until, `
)

var (
	leads = db.QWith[repoArgs, Lead](leadRows)
	legs  = db.QWith[repoArgs, Leg](`WITH m AS (` + leadRows + `) SELECT * FROM (
		` + ofLeads + `id = m.task_id JOIN runs w ON w.task_id = t.id
		UNION ALL ` + ofLeads + `pr_id = m.pull_id AND t.id <> m.task_id JOIN runs w ON w.task_id = t.id
		UNION ALL ` + asksOf + `(SELECT id, task_id, created_at AS began_at, closed_at AS ended_at, state FROM blockers) q ON q.task_id = m.task_id
		UNION ALL ` + asksOf + `(SELECT id, pr_id, requested_at AS began_at, COALESCE(decided_at, requested_at) AS ended_at, state
			FROM pull_actions WHERE COALESCE(decided_by, '') <> 'policy' AND state <> 'pending') q ON q.pr_id = m.pull_id
		) AS l ORDER BY began_at, id LIMIT 50000`)

	turns = db.QWith[repoArgs, Turn](turnColumns + triedUntil + ` AS tried_until, w.created_at AS claimed_at, w.ended_at
			FROM runs w JOIN tasks t ON t.id = w.task_id WHERE w.account_id = :account_id AND w.ended_at >= :from_at AND w.created_at < :to_at
			AND (:repo_id = '' OR w.repo_id = :repo_id)
		UNION ALL ` + turnColumns + triedUntil + ` AS tried_until, w.created_at AS claimed_at, w.ended_at
			FROM tasks t JOIN runs w ON w.task_id = t.id AND w.ended_at IS NULL
			WHERE t.account_id = :account_id AND t.` + atWork + ` AND (:repo_id = '' OR t.repo_id = :repo_id)
		UNION ALL SELECT queued_at AS filed_at, NULL AS depended_until, NULL AS tried_until, NULL AS claimed_at, NULL AS ended_at FROM tasks
			WHERE account_id = :account_id AND ` + ready + ` AND (:repo_id = '' OR repo_id = :repo_id)
		ORDER BY filed_at LIMIT 50000`)

	slots = db.Q[int64](`SELECT CAST(COALESCE(SUM(slots), 0) AS BIGINT) FROM boxes WHERE account_id = $1 AND ` + enrolled)
)

// Leads are the tasks of tx.Account whose pull requests were merged in a span, of one repository
// or of all (""), the newest 2,000, with what took their time in the order in which it began.
func Leads(tx *db.Tx, s Span, repoID string) ([]Lead, []Leg, error) {
	args := repoArgs{of(tx.Account, s), repoID}
	all, err := leads.All(tx, args)
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	parts, err := legs.All(tx, args)
	return all, parts, err
}

// Turns are the times of tasks of tx.Account in the queue and on boxes, of those that were on a box
// in a span or are in the queue now. Tasks that left the queue otherwise are not among them.
func Turns(tx *db.Tx, s Span, repoID string) ([]Turn, error) {
	return turns.All(tx, repoArgs{of(tx.Account, s), repoID})
}

// SlotsOf is how many tasks the boxes of tx.Account can have at once.
func SlotsOf(tx *db.Tx) (int64, error) { return slots.One(tx, tx.Account) }
