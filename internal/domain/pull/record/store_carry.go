package record

import (
	"time"

	"yardmaster/internal/db"
)

// asideRow is a stale action that a new head may take over.
type asideRow struct {
	ID          string
	HeadSHA     string `db:"head_sha"`
	BaseRef     string
	MergeBases  int64
	Change      string
	DecidedBy   *string
	CarriedFrom *string
	ExpiresAt   time.Time
}

// over tells whether nobody has answered a question in time. The next head is asked about anew.
func (a asideRow) over(now time.Time) bool { return a.DecidedBy == nil && !now.Before(a.ExpiresAt) }

// aside are the stale actions whose head has moved away, of people, about a known change,
// that named nothing protected and nothing brought back. A later refusal takes them back.
const aside = ` FROM pull_actions a WHERE a.pr_id = $1 AND a.kind = 'merge' AND a.state = 'stale' AND a.stale_why = 'head_moved' AND a.change <> '' AND a.protected IS NULL
	AND (a.decided_by IS NULL OR a.decided_by <> 'policy')
	AND NOT EXISTS (SELECT 1 FROM pull_actions n WHERE n.pr_id = a.pr_id AND n.kind = a.kind AND n.state = 'skipped' AND n.requested_at >= a.requested_at)`

const asideColumns = `a.id, a.head_sha, a.base_ref, a.merge_bases, a.change, a.decided_by, a.carried_from, a.expires_at`

var (
	// SetAsideAction keeps the time of a decision.
	SetAsideAction = db.S(`UPDATE pull_actions SET state = 'stale', stale_why = 'head_moved', decided_at = COALESCE(decided_at, $2)
		WHERE pr_id = $1 AND state IN ('pending', 'approved')`)
	// DropAside has no new head take over what was decided about earlier ones.
	DropAside = db.S(`UPDATE pull_actions SET stale_why = 'withdrawn' WHERE pr_id = $1 AND kind = 'merge' AND state = 'stale'
		AND stale_why = 'head_moved'`)
	// MayCarry tells whether there is a stale action of a pull request that a new head may take over.
	MayCarry = db.Q[bool](`SELECT EXISTS (SELECT 1` + aside + `)`)
	// SameChange prefers an approval to a question, and then the newest.
	SameChange = db.Q[asideRow](`SELECT ` + asideColumns + aside + ` AND a.change = $2
		ORDER BY CASE WHEN a.decided_by IS NULL THEN 1 ELSE 0 END, a.requested_at DESC, a.id DESC LIMIT 1`)
	// AsideByID reads a stale action that a new head may take over.
	AsideByID = db.Q[asideRow](`SELECT ` + asideColumns + aside + ` AND a.id = $2`)
	// CarryAction makes a stale action open again, for another head.
	CarryAction = db.SWith[CarryArgs](`UPDATE pull_actions SET state = :state, stale_why = '', error = NULL, called = FALSE,
		carried_from = COALESCE(carried_from, head_sha), head_sha = :head_sha, ` + notDue + `,
		decided_at = CASE WHEN :state = 'pending' THEN NULL ELSE decided_at END
		WHERE id = :id AND state = 'stale'`)
	// KnowAction notes what an action is about that was made before that was known.
	KnowAction = db.S(`UPDATE pull_actions SET change = (SELECT p.change FROM pulls p WHERE p.id = $1),
		patch_id = (SELECT p.patch_id FROM pulls p WHERE p.id = $1), merge_base = (SELECT p.merge_base FROM pulls p WHERE p.id = $1),
		merge_bases = (SELECT p.merge_bases FROM pulls p WHERE p.id = $1), base_ref = (SELECT p.base_ref FROM pulls p WHERE p.id = $1)
		WHERE pr_id = $1 AND head_sha = $2 AND change = '' AND state IN ('pending', 'approved')`)
)

// CarryArgs are the parameters of CarryAction.
type CarryArgs struct{ ID, State, HeadSHA string }
