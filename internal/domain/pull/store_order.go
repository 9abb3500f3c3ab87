package pull

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
	orderByID  = db.Q[dueRow](`SELECT ` + dueColumns + standingOrder + ` AND a.id = $1`)
	openOrders = db.Q[due.Open](`SELECT a.id AS key, a.account_id AS account` + standingOrder + ` LIMIT $1`)
	// ordersAbove are those of work that was begun on that of a task.
	ordersAbove = db.Q[string](`SELECT a.id` + standingOrder + `
		AND a.pr_id IN (SELECT p.id FROM pulls p JOIN tasks t ON t.id = p.task_id WHERE t.stacked_on = $1) ORDER BY a.id`)
	// refusedOrders are those of a repository that have failed. Those are left out that wait for a limit of the host.
	refusedOrders = db.Q[string](`SELECT a.id` + standingOrder + ` AND a.error <> $2
		AND a.pr_id IN (SELECT id FROM pulls WHERE repo_id = $1 AND state = 'open') ORDER BY a.id`)
	// callHost notes that the host is told to carry an order out.
	callHost = db.S(`UPDATE pull_actions SET called = TRUE WHERE id = $1 AND state = 'approved'`)
	// notCalled notes that the host was not told, or did not take the call.
	notCalled = db.S(`UPDATE pull_actions SET called = FALSE WHERE id = $1 AND state = 'approved'`)
	postpone  = db.SWith[postponeArgs](`UPDATE pull_actions SET error = :error, retry_at = :retry_at,
		called = CASE WHEN :told THEN called ELSE FALSE END WHERE id = :id AND state = 'approved'`)
	endAction = db.S(`UPDATE pull_actions SET state = $2, error = $3 WHERE id = $1 AND state = 'approved'`)
)

// postponeArgs are the parameters of postpone.
type postponeArgs struct {
	ID, Error string
	RetryAt   int64
	Told      bool // the host was, and may have carried it out all the same
}
