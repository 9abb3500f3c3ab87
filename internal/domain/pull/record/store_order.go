package record

import (
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

// notDue keeps an order from older releases, which carry out what is due by a column. A later
// release drops the column.
const notDue = `due_at = 253402300799000000`

const standingOrder = ` FROM pull_actions a WHERE a.kind = 'merge' AND a.state = 'approved'`

// What comes of an order is recorded by the node alone that has its entry in the queue; see orders.go.
var (
	OrderByID  = db.Q[DueRow](`SELECT ` + dueColumns + standingOrder + ` AND a.id = $1`)
	OpenOrders = db.Q[due.Open](`SELECT a.id AS key, a.account_id AS account` + standingOrder + ` LIMIT $1`)
	// OrdersAbove are those of work that was begun on that of a task.
	OrdersAbove = db.Q[string](`SELECT a.id` + standingOrder + `
		AND a.pr_id IN (SELECT p.id FROM pulls p JOIN tasks t ON t.id = p.task_id WHERE t.stacked_on = $1) ORDER BY a.id`)
	// RefusedOrders are those of a repository that have failed. Those are left out that wait for a limit of the host.
	RefusedOrders = db.Q[string](`SELECT a.id` + standingOrder + ` AND a.error <> $2
		AND a.pr_id IN (SELECT id FROM pulls WHERE repo_id = $1 AND state = 'open') ORDER BY a.id`)
	// CallHost notes that the host is told to carry an order out.
	CallHost = db.S(`UPDATE pull_actions SET called = TRUE WHERE id = $1 AND state = 'approved'`)
	// NotCalled notes that the host was not told, or did not take the call.
	NotCalled = db.S(`UPDATE pull_actions SET called = FALSE WHERE id = $1 AND state = 'approved'`)
	Postpone  = db.SWith[PostponeArgs](`UPDATE pull_actions SET error = :error, retry_at = :retry_at,
		called = CASE WHEN :told THEN called ELSE FALSE END WHERE id = :id AND state = 'approved'`)
	EndAction = db.S(`UPDATE pull_actions SET state = $2, error = $3 WHERE id = $1 AND state = 'approved'`)
)

// PostponeArgs are the parameters of postpone.
type PostponeArgs struct {
	ID, Error string
	RetryAt   int64
	Told      bool // the host was, and may have carried it out all the same
}

// StandingOrders answers those orders to merge of tx.Account that stand, by id: approved, for
// the present head of an open pull request that was not abandoned, of a repository that is
// enabled, whose checks have passed, and held by no finding and by nobody who requests changes.
func StandingOrders(tx *db.Tx, ids []string) (map[string]Order, error) {
	out := map[string]Order{}
	if len(ids) == 0 {
		return out, nil
	}
	rows, err := db.Select[Order](tx, db.Build(`SELECT a.id, a.head_sha, p.base_ref FROM pull_actions a JOIN pulls p ON p.id = a.pr_id JOIN repos r ON r.id = p.repo_id
		WHERE r.enabled = TRUE AND a.state = 'approved' AND a.kind = 'merge' AND p.state = 'open' AND p.head_sha = a.head_sha AND p.abandoned_at IS NULL
			AND p.checks IN ('none', 'passed') AND p.objections = 0 AND p.findings = 0 AND a.account_id = `,
		tx.Account).In("a.id", ids))
	for _, o := range rows {
		out[o.ID] = o
	}
	return out, err
}
