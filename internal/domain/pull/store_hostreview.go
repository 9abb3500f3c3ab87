package pull

import "yardmaster/internal/db"

type hostReviewRow struct {
	ID       string
	State    string
	Counts   string
	Label    string
	ActionID *string
	Answered bool // a round has been begun for it
}

type remarkRow struct{ HostKey, Login, Label, Text string }

var (
	// insertHostReview stores the first delivery of a review; a later one changes no row.
	insertHostReview = db.SWith[insertHostReviewArgs](`INSERT INTO host_reviews (id, account_id, repo_id, pr_id, host_key, login, label,
		state, counts, head_sha, text, said_at, created_at)
		VALUES (:id, :account_id, :repo_id, :pr_id, :host_key, :login, :label, :state, :counts, :head_sha, :text, :said_at, :now)
		ON CONFLICT DO NOTHING`)
	hostReview = db.Q[hostReviewRow](`SELECT id, state, counts, label, action_id, answered FROM host_reviews
		WHERE account_id = $1 AND pr_id = $2 AND host_key = $3`)
	// earlierReviews are those that a later review of the same person replaces, at the host or
	// here: a login that is nobody's here has a label of its own.
	earlierReviews = db.QWith[earlierArgs, hostReviewRow](`SELECT id, state, counts, label, action_id, answered FROM host_reviews
		WHERE account_id = :account_id AND pr_id = :pr_id AND (login = :login OR label = :label)
		AND state IN ('approved', 'changes_requested')`)
	// laterReviews tell whether those count that the same person has given after a time.
	laterReviews = db.QWith[laterArgs, string](`SELECT counts FROM host_reviews WHERE account_id = :account_id AND pr_id = :pr_id
		AND login = :login AND said_at > :said_at`)
	setHostReview = db.S(`UPDATE host_reviews SET state = $2 WHERE id = $1`)
	setApproved   = db.S(`UPDATE host_reviews SET action_id = $2 WHERE id = $1`)
	// standing is who has approved a head before anybody was asked about it.
	standing = db.Q[standingRow](`SELECT id, label FROM host_reviews WHERE pr_id = $1 AND head_sha = $2 AND state = 'approved'
		AND counts = 'yes' ORDER BY created_at, id LIMIT 1`)
	otherBase      = db.S(`UPDATE host_reviews SET counts = 'other_base' WHERE pr_id = $1 AND state = 'approved' AND counts = 'yes'`)
	openObjections = db.Q[struct{ All, Fresh int64 }](`SELECT COUNT(*) AS "all", COALESCE(SUM(CASE WHEN answered THEN 0 ELSE 1 END), 0) AS fresh
		FROM host_reviews WHERE pr_id = $1 AND state = 'changes_requested' AND counts = 'yes'`)
	remarksOf = db.Q[remarkRow](`SELECT host_key, login, label, text FROM host_reviews WHERE pr_id = $1 AND state = 'changes_requested' AND counts = 'yes'
		AND answered = FALSE ORDER BY created_at, id LIMIT 20`)
	answerRemarks = db.S(`UPDATE host_reviews SET answered = $2, answered_sha = CASE WHEN $2 THEN answered_sha ELSE '' END
		WHERE pr_id = $1 AND state = 'changes_requested'`)
	// takeBack ends an approval that was withdrawn, also one that waits for a new head.
	takeBack = db.S(`UPDATE pull_actions SET state = 'stale', stale_why = 'withdrawn' WHERE id = $1 AND state IN ('approved', 'stale')`)
	// takeAsideBack is takeBack for what somebody has said yes to of a head that has moved since.
	takeAsideBack = db.S(`UPDATE pull_actions SET stale_why = 'withdrawn' WHERE pr_id = $1 AND kind = 'merge' AND state = 'stale'
		AND stale_why = 'head_moved' AND decided_by = $2`)
)

// earlierArgs are the parameters of earlierReviews.
type earlierArgs struct {
	AccountID, Login, Label string
	PRID                    string `db:"pr_id"`
}

// laterArgs are the parameters of laterReviews.
type laterArgs struct {
	AccountID, Login string
	PRID             string `db:"pr_id"`
	SaidAt           int64
}

type standingRow struct{ ID, Label string }

// insertHostReviewArgs are the parameters of insertHostReview.
type insertHostReviewArgs struct {
	ID, AccountID, RepoID, HostKey, Login, Label, State, Counts, Text string

	PRID    string `db:"pr_id"`
	HeadSHA string `db:"head_sha"`
	SaidAt  int64
	Now     int64
}
