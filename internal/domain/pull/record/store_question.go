package record

import (
	"yardmaster/internal/db"
)

type questionRow struct {
	ApprovalRow
	RepoID    string
	PullState string
	Present   string
	LookedSHA string `db:"looked_sha"`
}

// QuestionByID reads an action with what people are shown of its pull request.
var QuestionByID = db.Q[questionRow](`SELECT a.id, a.pr_id, a.kind, a.head_sha, a.state, a.error, a.decided_by, a.requested_at,
	a.decided_at, a.expires_at, a.called, a.retry_at, a.protected, a.carried_from, a.details, a.stale_why, a.begins_at, r.owner, r.name, p.number, p.title, p.url,
	p.checks, p.review, p.findings, p.changed_files, p.added_lines, p.deleted_lines, p.unwanted, p.left_out, p.task_id, p.repo_id,
	p.state AS pull_state, p.head_sha AS present, p.looked_sha
	FROM pull_actions a JOIN pulls p ON p.id = a.pr_id JOIN repos r ON r.id = p.repo_id
	WHERE a.account_id = $1 AND a.id = $2`)

var (
	// NewestIn are the newest pull requests of a repository.
	NewestIn = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2
		ORDER BY created_at DESC, id DESC LIMIT $3`)
	// NewestQuestionsIn are the newest actions of a repository that wait for an answer.
	NewestQuestionsIn = db.Q[string](`SELECT a.id FROM pull_actions a JOIN pulls p ON p.id = a.pr_id
		WHERE a.account_id = $1 AND a.state = 'pending' AND p.repo_id = $2
		ORDER BY a.requested_at DESC, a.id DESC LIMIT $3`)
)

// Refused tells whether a person has said no to a merge of the pull request, or requested
// changes, and no person has said yes to one since, to whatever head.
var Refused = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = $1 AND a.kind = 'merge' AND a.state = 'skipped'
	AND NOT EXISTS (SELECT 1 FROM pull_actions y WHERE y.pr_id = a.pr_id AND y.kind = 'merge' AND y.state <> 'skipped'
		AND y.decided_by <> 'policy' AND y.decided_at > a.decided_at))
	OR EXISTS (SELECT 1 FROM host_reviews h WHERE h.pr_id = $1 AND h.counts = 'yes'
		AND (h.state = 'changes_requested' OR h.state = 'dismissed' AND h.host_key LIKE 'here:%')
		AND NOT EXISTS (SELECT 1 FROM pull_actions y WHERE y.pr_id = h.pr_id AND y.kind = 'merge' AND y.state <> 'skipped'
			AND y.decided_by <> 'policy' AND y.decided_at > h.created_at))`)
