package overview

import (
	"time"

	"yardmaster/internal/db"
)

type repoRow struct {
	ID, DefaultBranch string
	LastActivityAt    *time.Time
}

// publicRow is a repository that shows some of its activity to everybody.
type publicRow struct {
	ID, AccountID, Owner, Name           string
	DonationsEnabled, PublicStatsEnabled bool
}

// authoredRow is a merged pull request that a task has opened.
type authoredRow struct {
	ID, Title, HeadRef string
	MergeSHA           *string `db:"merge_sha"`
	MergedAt           time.Time
	Approved           bool // by a person who was asked
}

type revertRow struct {
	Title, Body string
	MergedAt    time.Time
}

// windowArgs name the rows of one repository since a time.
type windowArgs struct {
	AccountID, RepoID string
	Since             time.Time
}

type revertArgs struct {
	windowArgs
	Limit int
}

var (
	selectRepo = db.Q[repoRow](`SELECT id, default_branch, last_activity_at FROM repos
		WHERE account_id = $1 AND owner = $2 AND name = $3 AND enabled`)
	// selectPublic finds a repository, of whatever account, that shows something to
	// everybody.
	selectPublic = db.Q[publicRow](`SELECT id, account_id, owner, name, donations_enabled, public_stats_enabled FROM repos
		WHERE owner = $1 AND name = $2 AND enabled = TRUE AND private = FALSE AND (donations_enabled = TRUE OR public_stats_enabled = TRUE)
		ORDER BY enabled DESC, created_at, id LIMIT 1`)
	selectAuthored = db.QWith[windowArgs, authoredRow](`SELECT p.id, p.title, p.head_ref, p.merge_sha, p.merged_at,
		EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = p.id AND a.kind = 'merge' AND a.state = 'applied'
			AND a.decided_by LIKE 'user:%') AS approved
		FROM pulls p WHERE p.account_id = :account_id AND p.repo_id = :repo_id AND p.state = 'merged' AND p.merged_at >= :since
		AND (p.task_id IS NOT NULL OR p.author_kind = 'agent') ORDER BY p.merged_at, p.id`)
	selectReverts = db.QWith[revertArgs, revertRow](`SELECT title, body, merged_at FROM pulls
		WHERE account_id = :account_id AND repo_id = :repo_id AND state = 'merged' AND merged_at >= :since
		AND (title LIKE 'Revert "%' OR body LIKE '%This reverts commit %') ORDER BY merged_at DESC, id LIMIT :limit`)
	selectHuman = db.Q[*time.Time](`SELECT MAX(merged_at) FROM pulls WHERE account_id = $1 AND repo_id = $2 AND state = 'merged'
		AND task_id IS NULL AND author_kind NOT IN ('agent', 'bot')`)
)
