package pull

import "yardmaster/internal/db"

var (
	setReview = db.SWith[setReviewArgs](`UPDATE pulls SET review = :review, findings = :findings, updated_at = :updated_at WHERE id = :id`)
	noReview  = db.S(`UPDATE pulls SET review = 'off' WHERE id = $1 AND review = 'due'`)
	// reviewNow has the facts of heads read again that nobody has reviewed, which begins their
	// review.
	reviewNow = db.S(`UPDATE pulls SET facts_want = facts_want + 1 WHERE repo_id = $1 AND state = 'open' AND review = 'off'`)
	putOff    = db.S(`UPDATE pulls SET attend_at = $2 WHERE id = $1`)
	// putForth leaves a round alone that waits for longer than putOff has it wait.
	putForth = db.S(`UPDATE pulls SET attend_at = $2 WHERE id = $1 AND attend_at > $2 AND attend_at <= $3`)
	changeOf = db.Q[struct{ Change, MergeBase string }](`SELECT change, merge_base FROM pulls WHERE id = $1`)
)

// setReviewArgs are the parameters of setReview.
type setReviewArgs struct {
	ID, Review          string
	Findings, UpdatedAt int64
}
