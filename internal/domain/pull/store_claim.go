package pull

import "yardmaster/internal/db"

// An order is carried out by the node that has claimed it last. What a node notes of it afterwards
// counts for its claim alone: another node takes the order when the hold is over, and then the first,
// which may have been stopped meanwhile, changes nothing.
var (
	takeDue = db.Q[dueRow](`UPDATE pull_actions SET due_at = $2, tries = tries + 1, claim = $3
		WHERE id IN (SELECT id FROM pull_actions WHERE state = 'approved' AND kind = 'merge' AND due_at <= $1 ORDER BY due_at LIMIT 1)
			AND due_at <= $1 AND state = 'approved'
		RETURNING ` + dueColumns)
	keepDue = db.S(`UPDATE pull_actions SET due_at = $3 WHERE id = $1 AND claim = $2 AND state = 'approved' AND due_at < $3`)
	// callHost notes that the host is told to carry an order out.
	callHost = db.S(`UPDATE pull_actions SET called = TRUE WHERE id = $1 AND claim = $2 AND state = 'approved'`)
	postpone = db.SWith[putOffArgs](`UPDATE pull_actions SET due_at = :due_at, error = :error, claim = ''
		WHERE id = :id AND claim = :claim AND state = 'approved'`)
	// waitHost puts off a merge of which the host did not take the call. That is no try.
	waitHost = db.SWith[putOffArgs](`UPDATE pull_actions SET due_at = :due_at, error = :error, tries = tries - 1, called = FALSE, claim = ''
		WHERE id = :id AND claim = :claim AND state = 'approved'`)
	// waitLonger puts off an action that may not be carried out yet. That is no try.
	waitLonger = db.S(`UPDATE pull_actions SET due_at = $3, tries = tries - 1, called = FALSE, claim = ''
		WHERE id = $1 AND claim = $2 AND state = 'approved'`)
	endAction = db.SWith[endArgs](`UPDATE pull_actions SET state = :state, error = :error
		WHERE id = :id AND claim = :claim AND state = 'approved'`)
)

// putOffArgs are the parameters of postpone and waitHost.
type putOffArgs struct {
	ID, Claim string
	DueAt     int64
	Error     string
}

// endArgs are the parameters of endAction.
type endArgs struct {
	ID, Claim string
	State     string
	Error     *string
}
