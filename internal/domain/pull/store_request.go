package pull

import "yardmaster/internal/db"

type requestRow struct {
	ID, Label string
	Answered  bool // a round has been begun for it
}

var (
	// requestsOf are the requests of members for changes that stand, oldest first.
	requestsOf = db.Q[requestRow](`SELECT id, label, answered FROM host_reviews WHERE account_id = $1 AND pr_id = $2
		AND state = 'changes_requested' AND counts = 'yes' AND host_key LIKE 'here:%' ORDER BY created_at, id`)
	// requested marks the no that a request is to a question. It is taken back with the
	// request, and answers nothing any more: noAnswer.
	requested = db.S(`UPDATE pull_actions SET stale_why = 'requested' WHERE id = $1`)
	noAnswer  = db.S(`UPDATE pull_actions SET stale_why = 'taken_back' WHERE pr_id = $1 AND head_sha = $2 AND kind = 'merge' AND state = 'skipped'
		AND stale_why = 'requested'`)
	// unapproved makes a no of a yes that is not carried out yet.
	unapproved = db.S(`UPDATE pull_actions SET state = 'skipped', decided_at = $2 WHERE id = $1 AND state = 'approved' AND called = FALSE`)
)
