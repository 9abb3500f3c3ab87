package overview

import (
	"time"

	"yardmaster/internal/db"
)

type countRow struct{ Repos, Open, Merged, Approvals, Pulls int64 }

type taskCounts struct{ Running, Failed, Escalations, Doubles, Plans, Questions, Forms, Held int64 }

type repoCount struct {
	Repo string // owner/name; empty for none
	N    int64
}

type repoSpend struct {
	Repo   string
	Micros *int64
}

type burnRow struct {
	Micros             *int64
	Sessions, Unpriced int64
}

var (
	selectCounts = db.Q[countRow](`SELECT
		(SELECT COUNT(*) FROM repos WHERE account_id = $1 AND enabled) AS repos,
		(SELECT COUNT(*) FROM pulls WHERE account_id = $1 AND state = 'open') AS open,
		(SELECT COUNT(*) FROM pulls WHERE account_id = $1 AND merged_at >= $2) AS merged,
		(SELECT COUNT(*) FROM pull_actions WHERE account_id = $1 AND state = 'pending') AS approvals,
		(SELECT COUNT(*) FROM pulls WHERE account_id = $1 AND state = 'open' AND needs NOT IN ('', 'asked', 'push_asked')) AS pulls`)
	selectTaskCounts = db.Q[taskCounts](`SELECT
		(SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND status IN ('claimed', 'running')) AS running,
		(SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND finished_at >= $2 AND status = 'failed') AS failed,
		(SELECT COUNT(*) FROM escalations WHERE account_id = $1 AND resolved_at IS NULL) AS escalations,
		(SELECT COUNT(*) FROM escalations e JOIN pulls p ON p.id = e.pr_id WHERE e.account_id = $1 AND e.resolved_at IS NULL
			AND p.account_id = $1 AND p.state = 'open' AND p.needs NOT IN ('', 'asked', 'push_asked')) AS doubles,
		(SELECT COUNT(*) FROM plan_progress WHERE account_id = $1 AND bucket = 'held') AS plans,
		(SELECT COUNT(*) FROM blockers WHERE account_id = $1 AND state = 'open' AND kind <> 'missing_credential') AS questions,
		(SELECT COUNT(*) FROM blockers WHERE account_id = $1 AND state = 'open' AND kind = 'missing_credential') AS forms,
		(SELECT COUNT(*) FROM tasks t WHERE t.account_id = $1 AND t.status = 'held' AND NOT (COALESCE(t.failure_kind, 'blocked') = 'blocked'
			AND EXISTS (SELECT 1 FROM blockers b WHERE b.account_id = $1 AND b.task_id = t.id AND b.state = 'open'))) AS held`)
	// What happened since a time, by repository.
	mergedSince = db.Q[repoCount](`SELECT r.owner || '/' || r.name AS repo, COUNT(*) AS n FROM pulls p JOIN repos r ON r.id = p.repo_id
		WHERE p.account_id = $1 AND p.merged_at >= $2 GROUP BY r.owner, r.name`)
	filedSince = db.Q[repoCount](`SELECT r.owner || '/' || r.name AS repo, COUNT(*) AS n FROM tasks t JOIN repos r ON r.id = t.repo_id
		WHERE t.account_id = $1 AND t.created_at >= $2 AND t.kind NOT IN ('review', 'babysit', 'ci') GROUP BY r.owner, r.name`)
	spentSince = db.Q[repoSpend](`SELECT COALESCE(r.owner || '/' || r.name, '') AS repo, CAST(SUM(m.cost_micros) AS BIGINT) AS micros
		FROM spend_minutes m JOIN sessions s ON s.id = m.session_id LEFT JOIN repos r ON r.id = s.repo_id
		WHERE m.account_id = $1 AND m.minute >= $2 GROUP BY r.owner, r.name`)
	selectBurn = db.Q[burnRow](`SELECT CAST(SUM(cost_micros) AS BIGINT) AS micros, COUNT(DISTINCT session_id) AS sessions,
		COUNT(DISTINCT CASE WHEN unpriced > 0 THEN session_id END) AS unpriced FROM spend_minutes WHERE account_id = $1 AND minute >= $2`)
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

type spentRow struct {
	Count  int64
	Micros *int64
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
	selectPulls = db.QWith[windowArgs, RollupPulls](`SELECT
		COALESCE(SUM(CASE WHEN state = 'open' THEN 1 ELSE 0 END), 0) AS open,
		COALESCE(SUM(CASE WHEN state = 'open' AND needs <> '' THEN 1 ELSE 0 END), 0) AS waiting,
		(SELECT COUNT(*) FROM pull_actions a JOIN pulls q ON q.id = a.pr_id
			WHERE a.account_id = :account_id AND a.state = 'pending' AND q.repo_id = :repo_id) AS asked,
		COALESCE(SUM(CASE WHEN created_at >= :since THEN 1 ELSE 0 END), 0) AS opened,
		COALESCE(SUM(CASE WHEN merged_at >= :since THEN 1 ELSE 0 END), 0) AS merged,
		COALESCE(SUM(CASE WHEN state = 'closed' AND closed_at >= :since THEN 1 ELSE 0 END), 0) AS unmerged
		FROM pulls WHERE account_id = :account_id AND repo_id = :repo_id`)
	selectTasks = db.QWith[windowArgs, RollupTasks](`SELECT
		COALESCE(SUM(CASE WHEN status = 'pending' THEN 1 ELSE 0 END), 0) AS pending,
		COALESCE(SUM(CASE WHEN status = 'held' THEN 1 ELSE 0 END), 0) AS held,
		COALESCE(SUM(CASE WHEN status IN ('claimed', 'running') THEN 1 ELSE 0 END), 0) AS in_flight,
		COALESCE(SUM(CASE WHEN status IN ('awaiting_ci', 'awaiting_review', 'mergeable') THEN 1 ELSE 0 END), 0) AS shipping,
		COALESCE(SUM(CASE WHEN status IN ('completed', 'merged') AND finished_at >= :since THEN 1 ELSE 0 END), 0) AS completed,
		COALESCE(SUM(CASE WHEN status = 'failed' AND finished_at >= :since THEN 1 ELSE 0 END), 0) AS failed
		FROM tasks WHERE account_id = :account_id AND repo_id = :repo_id`)
	selectChecks = db.QWith[windowArgs, RollupChecks](`SELECT
		COALESCE(SUM(CASE WHEN status = 'passed' THEN 1 ELSE 0 END), 0) AS passed,
		COALESCE(SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END), 0) AS failed,
		COALESCE(SUM(CASE WHEN status = 'lost' THEN 1 ELSE 0 END), 0) AS lost
		FROM ci_runs WHERE account_id = :account_id AND repo_id = :repo_id AND finished_at >= :since`)
	selectSessions = db.QWith[windowArgs, spentRow](`SELECT COUNT(*) AS count, CAST(SUM(cost_micros) AS BIGINT) AS micros
		FROM sessions WHERE account_id = :account_id AND repo_id = :repo_id AND started_at >= :since`)
	selectBlockers = db.Q[int64](`SELECT COUNT(*) FROM blockers WHERE account_id = $1 AND repo_id = $2 AND state = 'open'`)

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
