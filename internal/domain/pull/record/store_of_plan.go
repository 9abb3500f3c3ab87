package record

import (
	"yardmaster/internal/db"
)

// IdleOfPlan reads the tasks of a plan that go on only if a person acts: the task
// is stuck, its pull request waits for an approval, or the repair is held.
var IdleOfPlan = db.Q[string](`SELECT t.id FROM tasks t
	WHERE t.account_id = $1 AND t.plan_id = $2 AND t.status IN ('running', 'awaiting_ci', 'awaiting_review', 'mergeable')
	AND (t.stuck OR EXISTS (SELECT 1 FROM tasks c WHERE c.pr_id = t.pr_id AND c.kind = 'babysit' AND c.status = 'held')
		OR EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = t.pr_id AND a.state = 'pending')
		OR t.status IN ('awaiting_review', 'mergeable')
			AND NOT EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = t.pr_id AND a.state = 'approved'))`)

// Brief is a pull request as the pages of other domains show it.
type Brief struct {
	ID     string
	Number int64
	Title  string
	URL    string `db:"url"`
	State  string
}

// Briefs reads the pull requests of tx.Account among prIDs, by id.
func Briefs(tx *db.Tx, prIDs []string) (map[string]Brief, error) {
	rows, err := db.Select[Brief](tx, db.Build(`SELECT id, number, title, url, state FROM pulls WHERE account_id = `, tx.Account).
		In("id", prIDs))
	out := map[string]Brief{}
	for _, r := range rows {
		r.Number = max(r.Number, 0) // below zero: its host is yet to number it
		out[r.ID] = r
	}
	return out, err
}
