package measure

import (
	"time"

	"yardmaster/internal/db"
)

// Try is a try at a task, with what came of its task, as far as a recorded queue needs it.
type Try struct {
	SessionID           string // of the try; with ClaimedAt the order of Tries
	RunID, TaskID, Repo string // owner/name
	Kind, Template      string
	Priority            int64
	CreatedAt           time.Time  // of the task
	DependedUntil       *time.Time // when the last task that it depends on was finished; nil: it depends on none
	TriedUntil          *time.Time // when the try before ended; nil: it is the first
	ClaimedAt           time.Time
	EndedAt             *time.Time
	Outcome             *string
	CostMicros          *int64
	Unpriced            int64
	Policy              *db.JSON[recorded] // that was in force
	Merged              bool
	Asked               int64 // how often a person was asked whether the task's pull request is merged
	Protected           int64 // of those, about what a person is asked about in every mode
}

// recorded is what a try's record of its policy tells.
type recorded struct {
	MergeMode string `json:"merge_mode"`
}

// MergeMode is the merge mode of the policy that was in force; "" if that is not known.
func (t Try) MergeMode() string {
	if t.Policy == nil {
		return ""
	}
	return t.Policy.V.MergeMode
}

// ReadyAt is when a box could have had the task, as far as rows tell. The waits between tries and
// what held the task are not in them.
func (t Try) ReadyAt() time.Time {
	at := t.CreatedAt
	for _, other := range []*time.Time{t.DependedUntil, t.TriedUntil} {
		if other != nil && other.After(at) && other.Before(t.ClaimedAt) {
			at = *other
		}
	}
	return at
}

// triesArgs are spanArgs behind a try, with the most rows.
type triesArgs struct {
	spanArgs
	AfterAt time.Time
	After   string
	Most    int
}

var tries = db.QWith[triesArgs, Try](`SELECT s.id AS session_id, w.id AS run_id, w.task_id, r.owner || '/' || r.name AS repo, t.kind,
	CASE WHEN t.kind = 'ci' THEN '' ELSE t.template END AS template, t.priority, t.created_at,
	(SELECT MAX(d.finished_at) FROM task_deps e JOIN tasks d ON d.id = e.depends_on WHERE e.task_id = t.id) AS depended_until,
	(SELECT MAX(b.ended_at) FROM runs b WHERE b.task_id = t.id AND b.created_at < w.created_at) AS tried_until,
	s.started_at AS claimed_at, w.ended_at, w.outcome, s.cost_micros, s.unpriced, s.policy,
	EXISTS (SELECT 1 FROM pulls p WHERE p.id = t.pr_id AND p.task_id = t.id AND p.merged_at IS NOT NULL) AS merged,
	(SELECT COUNT(*) FROM pulls p JOIN pull_actions a ON a.pr_id = p.id WHERE p.id = t.pr_id AND p.task_id = t.id AND a.kind = 'merge'
		AND COALESCE(a.decided_by, '') <> 'policy') AS asked,
	(SELECT COUNT(*) FROM pulls p JOIN pull_actions a ON a.pr_id = p.id WHERE p.id = t.pr_id AND p.task_id = t.id AND a.kind = 'merge'
		AND COALESCE(a.decided_by, '') <> 'policy' AND a.protected IS NOT NULL) AS protected
	FROM sessions s JOIN runs w ON w.id = s.run_id JOIN tasks t ON t.id = w.task_id JOIN repos r ON r.id = w.repo_id
	WHERE s.account_id = :account_id AND s.started_at >= :from_at AND s.started_at < :to_at
	AND (s.started_at, s.id) > (:after_at, :after) ORDER BY s.started_at, s.id LIMIT :most`)

// Tries are the tries of tx.Account that were claimed in a span, behind one of a time and a
// session, the oldest first and at most most.
func Tries(tx *db.Tx, s Span, afterAt time.Time, after string, most int) ([]Try, error) {
	return tries.All(tx, triesArgs{of(tx.Account, s), afterAt, after, most})
}
