package digest

import (
	"time"

	"yardmaster/internal/db"
)

// spanArgs are the parameters of the statements about a time.
type spanArgs struct {
	AccountID    string
	FromAt, ToAt time.Time
}

// listArgs are the parameters of the statements that read rows of a time.
type listArgs struct {
	spanArgs
	Most int
}

type spentRow struct {
	Micros                    *int64
	Sessions, Calls, Unpriced int64
}

type rateRow struct{ N, D int64 }

// Each of these is one statement, over an index that begins with the account. The names of
// repositories and people are joined to the rows that are shown.
var (
	merges = db.QWith[listArgs, Merge](`SELECT p.id AS pr_id, r.owner || '/' || r.name AS repo, p.number, p.title, u.login AS requested_by,
		p.merged_by, p.merged_at, p.total
		FROM (SELECT id, repo_id, task_id, number, title, merged_by, merged_at, COUNT(*) OVER () AS total FROM pulls
			WHERE account_id = :account_id AND merged_at >= :from_at AND merged_at < :to_at ORDER BY merged_at DESC, id LIMIT :most) p
		JOIN repos r ON r.id = p.repo_id LEFT JOIN tasks t ON t.id = p.task_id LEFT JOIN users u ON u.id = t.requested_by
		ORDER BY p.merged_at DESC, p.id`)
	failures = db.QWith[listArgs, Failure](`SELECT t.id AS task_id, r.owner || '/' || r.name AS repo, t.title, t.failure_kind,
		COALESCE(t.failure, '') AS why, t.finished_at AS failed_at, t.total
		FROM (SELECT id, repo_id, title, failure_kind, failure, finished_at, COUNT(*) OVER () AS total FROM tasks
			WHERE account_id = :account_id AND finished_at >= :from_at AND finished_at < :to_at AND status = 'failed'
			ORDER BY finished_at DESC, id LIMIT :most) t
		JOIN repos r ON r.id = t.repo_id ORDER BY t.finished_at DESC, t.id`)
	spending = db.QWith[spanArgs, spentRow](`SELECT CAST(SUM(cost_micros) AS BIGINT) AS micros, COUNT(DISTINCT session_id) AS sessions,
		CAST(COALESCE(SUM(calls), 0) AS BIGINT) AS calls, CAST(COALESCE(SUM(unpriced), 0) AS BIGINT) AS unpriced FROM spend_minutes
		WHERE account_id = :account_id AND minute >= :from_at AND minute < :to_at`)

	// graded are the statements of the rates, in their order.
	graded = []db.QueryWith[spanArgs, rateRow]{
		db.QWith[spanArgs, rateRow](`SELECT COALESCE(SUM(CASE WHEN status = 'failed' THEN 0 ELSE 1 END), 0) AS n, COUNT(*) AS d FROM tasks
			WHERE account_id = :account_id AND finished_at >= :from_at AND finished_at < :to_at
			AND status IN ('completed', 'merged', 'failed')`),
		db.QWith[spanArgs, rateRow](`SELECT COALESCE(SUM(merged), 0) AS n, COUNT(*) AS d FROM (
			SELECT 1 AS merged FROM pulls WHERE account_id = :account_id AND merged_at >= :from_at AND merged_at < :to_at
			UNION ALL SELECT 0 AS merged FROM pulls
			WHERE account_id = :account_id AND closed_at >= :from_at AND closed_at < :to_at AND state = 'closed') AS ended`),
		db.QWith[spanArgs, rateRow](`SELECT COALESCE(SUM(CASE WHEN status = 'passed' THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d FROM ci_runs
			WHERE account_id = :account_id AND finished_at >= :from_at AND finished_at < :to_at AND status IN ('passed', 'failed')`),
	}

	// waiting are the statements about what waits for people, each of one kind.
	waiting = []db.Query[Wait]{
		db.Q[Wait](`SELECT 'approval' AS kind, a.pr_id AS id, r.owner || '/' || r.name AS repo, p.title, a.kind AS why, u.login AS who,
			a.requested_at AS since, a.total
			FROM (SELECT pr_id, kind, requested_at, COUNT(*) OVER () AS total FROM pull_actions
				WHERE account_id = $1 AND state = 'pending' ORDER BY requested_at, id LIMIT $2) a
			JOIN pulls p ON p.id = a.pr_id JOIN repos r ON r.id = p.repo_id LEFT JOIN tasks t ON t.id = p.task_id
			LEFT JOIN users u ON u.id = t.requested_by`),
		db.Q[Wait](`SELECT 'blocker' AS kind, b.id, r.owner || '/' || r.name AS repo, t.title, b.kind AS why, u.login AS who,
			b.created_at AS since, b.total
			FROM (SELECT id, repo_id, task_id, kind, created_at, COUNT(*) OVER () AS total FROM blockers
				WHERE account_id = $1 AND state = 'open' ORDER BY created_at, id LIMIT $2) b
			JOIN tasks t ON t.id = b.task_id JOIN repos r ON r.id = b.repo_id LEFT JOIN users u ON u.id = t.requested_by`),
		db.Q[Wait](`SELECT 'escalation' AS kind, e.id, r.owner || '/' || r.name AS repo, e.title, e.category AS why,
			CAST(NULL AS TEXT) AS who, e.created_at AS since, e.total
			FROM (SELECT id, repo_id, title, category, created_at, COUNT(*) OVER () AS total FROM escalations
				WHERE account_id = $1 AND resolved_at IS NULL ORDER BY created_at, id LIMIT $2) e
			LEFT JOIN repos r ON r.id = e.repo_id`),
		db.Q[Wait](`SELECT 'plan' AS kind, p.id, r.owner || '/' || r.name AS repo, p.title, 'approval' AS why, u.login AS who,
			p.created_at AS since, g.total
			FROM (SELECT plan_id, COUNT(*) OVER () AS total FROM plan_progress
				WHERE account_id = $1 AND bucket = 'held' ORDER BY last_activity_at, plan_id LIMIT $2) g
			JOIN plans p ON p.id = g.plan_id JOIN repos r ON r.id = p.repo_id LEFT JOIN users u ON u.id = p.requested_by`),
		db.Q[Wait](`SELECT 'task' AS kind, t.id, r.owner || '/' || r.name AS repo, t.title, COALESCE(t.failure_kind, 'held') AS why,
			u.login AS who, t.updated_at AS since, t.total
			FROM (SELECT id, repo_id, title, failure_kind, requested_by, updated_at, COUNT(*) OVER () AS total FROM tasks
				WHERE account_id = $1 AND status = 'held' AND (failure_kind IS NULL OR failure_kind <> 'blocked')
				ORDER BY created_at, id LIMIT $2) t
			JOIN repos r ON r.id = t.repo_id LEFT JOIN users u ON u.id = t.requested_by`),
		db.Q[Wait](`SELECT 'pr' AS kind, p.id, r.owner || '/' || r.name AS repo, p.title, p.needs AS why, u.login AS who,
			COALESCE(p.needs_at, p.updated_at) AS since, p.total
			FROM (SELECT id, repo_id, task_id, title, needs, needs_at, updated_at, COUNT(*) OVER () AS total FROM pulls
				WHERE account_id = $1 AND state = 'open' AND needs <> ''
				AND NOT EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = pulls.id AND a.state = 'pending')
				ORDER BY created_at, id LIMIT $2) p
			JOIN repos r ON r.id = p.repo_id LEFT JOIN tasks t ON t.id = p.task_id LEFT JOIN users u ON u.id = t.requested_by`),
	}
)
