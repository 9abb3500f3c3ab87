package pull

import "yardmaster/internal/db"

type requestRow struct {
	ID, Label string
	Answered  bool // a round has been begun for it
}

// requestsOf are the requests of members for changes that stand, oldest first.
var requestsOf = db.Q[requestRow](`SELECT id, label, answered FROM host_reviews WHERE account_id = $1 AND pr_id = $2
	AND state = 'changes_requested' AND counts = 'yes' AND host_key LIKE 'here:%' ORDER BY created_at, id`)
