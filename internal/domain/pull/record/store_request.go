package record

import (
	"yardmaster/internal/db"
)

type requestRow struct{ ID, Label string }

// answeredRow is a request that the next head answers.
type answeredRow struct {
	ID      string
	HostKey string
}

var (
	// RequestsOf are the requests of members for changes that stand, oldest first.
	RequestsOf = db.Q[requestRow](`SELECT id, label FROM host_reviews WHERE account_id = $1 AND pr_id = $2
		AND state = 'changes_requested' AND counts = 'yes' AND host_key LIKE 'here:%' ORDER BY created_at, id`)
	// ToAnswer are the requests for which a round was begun and no head has come since, with those
	// of the same person before, whose threads the round was given as well.
	ToAnswer = db.Q[answeredRow](`SELECT h.id, h.host_key FROM host_reviews h WHERE h.account_id = $1 AND h.pr_id = $2 AND h.counts = 'yes'
		AND h.answered_sha = '' AND (h.state = 'changes_requested' AND h.answered = TRUE OR h.state = 'superseded' AND h.text <> ''
			AND EXISTS (SELECT 1 FROM host_reviews n WHERE n.pr_id = h.pr_id AND n.login = h.login AND n.state = 'changes_requested'
				AND n.counts = 'yes' AND n.answered = TRUE AND n.answered_sha = ''))
		ORDER BY h.created_at, h.id`)
	// SetAnswered notes the head that has answered a request.
	SetAnswered = db.S(`UPDATE host_reviews SET answered_sha = $2 WHERE id = $1`)
	// Requested marks the no that a request is to a question. It is taken back with the
	// request, and answers nothing any more: NoAnswer.
	Requested = db.S(`UPDATE pull_actions SET stale_why = 'requested' WHERE id = $1`)
	// NoAnswer takes back the no that a request was to the question about a head.
	NoAnswer = db.S(`UPDATE pull_actions SET stale_why = 'taken_back' WHERE pr_id = $1 AND head_sha = $2 AND kind = 'merge' AND state = 'skipped'
		AND stale_why = 'requested'`)
	// OrdersOf are the merges of whatever account that somebody has ordered and that have not begun.
	OrdersOf = db.Q[orderRow](`SELECT account_id, pr_id FROM pull_actions WHERE state = 'approved'
		AND kind = 'merge' AND called = FALSE AND decided_by = $1 ORDER BY pr_id`)
	// Unapproved makes a no of a yes that is not carried out yet.
	Unapproved = db.S(`UPDATE pull_actions SET state = 'skipped', decided_at = $2 WHERE id = $1 AND state = 'approved' AND called = FALSE`)
)

// orderRow is a merge that somebody has ordered.
type orderRow struct {
	AccountID string
	PRID      string `db:"pr_id"`
}
