package record

import (
	"strings"

	"yardmaster/internal/db"
)

// Here tells whether a remark was made here.
func (r remarkRow) Here() bool { return strings.HasPrefix(r.HostKey, HereKey) }

// HostReviewRow is what a person has said about a pull request, at its host or here.
type HostReviewRow struct {
	ID       string
	State    string
	Counts   string
	Label    string
	ActionID *string
	Answered bool // a round has been begun for it
}

type remarkRow struct{ HostKey, Login, Label, Text string }

var (
	// InsertHostReview stores the first delivery of a review; a later one changes no row.
	InsertHostReview = db.SWith[InsertHostReviewArgs](`INSERT INTO host_reviews (id, account_id, repo_id, pr_id, host_key, login, label,
		state, counts, head_sha, text, said_at, created_at)
		VALUES (:id, :account_id, :repo_id, :pr_id, :host_key, :login, :label, :state, :counts, :head_sha, :text, :said_at, :now)
		ON CONFLICT DO NOTHING`)
	// HostReview reads a review by its key at the host.
	HostReview = db.Q[HostReviewRow](`SELECT id, state, counts, label, action_id, answered FROM host_reviews
		WHERE account_id = $1 AND pr_id = $2 AND host_key = $3`)
	// EarlierReviews are those that a later review of the same person replaces, at the host or
	// here: a login that is nobody's here has a label of its own.
	EarlierReviews = db.QWith[EarlierArgs, HostReviewRow](`SELECT id, state, counts, label, action_id, answered FROM host_reviews
		WHERE account_id = :account_id AND pr_id = :pr_id AND (login = :login OR label = :label)
		AND state IN ('approved', 'changes_requested')`)
	// LaterReviews tell whether those count that the same person has given after a time.
	LaterReviews = db.QWith[LaterArgs, string](`SELECT counts FROM host_reviews WHERE account_id = :account_id AND pr_id = :pr_id
		AND login = :login AND said_at > :said_at`)
	// SetHostReview gives a review another state.
	SetHostReview = db.S(`UPDATE host_reviews SET state = $2 WHERE id = $1`)
	// SetApproved notes the action that an approval has answered.
	SetApproved = db.S(`UPDATE host_reviews SET action_id = $2 WHERE id = $1`)
	// Standing is who has approved a head before anybody was asked about it.
	Standing = db.Q[StandingRow](`SELECT id, label FROM host_reviews WHERE pr_id = $1 AND head_sha = $2 AND state = 'approved'
		AND counts = 'yes' ORDER BY created_at, id LIMIT 1`)
	// OtherBase has the approvals of a pull request count no more, because it goes to another branch now.
	OtherBase = db.S(`UPDATE host_reviews SET counts = 'other_base' WHERE pr_id = $1 AND state = 'approved' AND counts = 'yes'`)
	// OpenObjections counts the people whose last word on a pull request requests changes, and those that no round has answered.
	OpenObjections = db.Q[struct{ All, Fresh int64 }](`SELECT COUNT(*) AS "all", COALESCE(SUM(CASE WHEN answered THEN 0 ELSE 1 END), 0) AS fresh
		FROM host_reviews WHERE pr_id = $1 AND state = 'changes_requested' AND counts = 'yes'`)
	// RemarksOf are the requests for changes that no round has answered, at most 20, the oldest first.
	RemarksOf = db.Q[remarkRow](`SELECT host_key, login, label, text FROM host_reviews WHERE pr_id = $1 AND state = 'changes_requested' AND counts = 'yes'
		AND answered = FALSE ORDER BY created_at, id LIMIT 20`)
	// AnswerRemarks notes whether a round was begun for the requests of a pull request.
	AnswerRemarks = db.S(`UPDATE host_reviews SET answered = $2, answered_sha = CASE WHEN $2 THEN answered_sha ELSE '' END
		WHERE pr_id = $1 AND state = 'changes_requested'`)
	// TakeBack ends an approval that was withdrawn, also one that waits for a new head.
	TakeBack = db.S(`UPDATE pull_actions SET state = 'stale', stale_why = 'withdrawn' WHERE id = $1 AND state IN ('approved', 'stale')`)
	// TakeAsideBack is TakeBack for what somebody has said yes to of a head that has moved since.
	TakeAsideBack = db.S(`UPDATE pull_actions SET stale_why = 'withdrawn' WHERE pr_id = $1 AND kind = 'merge' AND state = 'stale'
		AND stale_why = 'head_moved' AND decided_by = $2`)
)

// EarlierArgs are the parameters of EarlierReviews.
type EarlierArgs struct {
	AccountID, Login, Label string
	PRID                    string `db:"pr_id"`
}

// LaterArgs are the parameters of LaterReviews.
type LaterArgs struct {
	AccountID, Login string
	PRID             string `db:"pr_id"`
	SaidAt           int64
}

// StandingRow is an approval, and who has given it.
type StandingRow struct{ ID, Label string }

// InsertHostReviewArgs are the parameters of InsertHostReview.
type InsertHostReviewArgs struct {
	ID, AccountID, RepoID, HostKey, Login, Label, State, Counts, Text string

	PRID    string `db:"pr_id"`
	HeadSHA string `db:"head_sha"`
	SaidAt  int64
	Now     int64
}
