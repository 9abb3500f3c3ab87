package record

import (
	"yardmaster/internal/db"
)

// startSHA is the commit at which the work of the task of a pull request p began, once the
// work that it was begun on is merged.
const startSHA = `COALESCE((SELECT t.start_sha FROM tasks t JOIN tasks b ON b.id = t.stacked_on
	WHERE t.id = p.task_id AND b.status = 'merged'), '') AS start_sha`

// MergedHeads are the newest heads that were merged into a base.
var MergedHeads = db.Q[string](`SELECT head_sha FROM pulls WHERE repo_id = $1 AND base_ref = $2 AND state = 'merged'
	ORDER BY merged_at DESC LIMIT 200`)

var (
	// CarriedOutAt tells whether an order to merge a head was carried out.
	CarriedOutAt = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pull_actions
		WHERE pr_id = $1 AND head_sha = $2 AND kind = 'merge' AND state = 'applied')`)
)
