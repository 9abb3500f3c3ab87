package task

import "yardmaster/internal/db"

var mindersOfPlan = db.Q[string](`SELECT c.id FROM tasks t JOIN tasks c ON c.pr_id = t.pr_id
	WHERE t.account_id = $1 AND c.account_id = $1 AND t.plan_id = $2 AND c.plan_id IS NULL AND c.kind IN ('review', 'babysit') ORDER BY c.id`)

// MindersOfPlan lists the tasks that look after the pull requests of a plan's
// tasks, of tx.Account, by id.
func MindersOfPlan(tx *db.Tx, planID string) ([]string, error) {
	return mindersOfPlan.All(tx, tx.Account, planID)
}
