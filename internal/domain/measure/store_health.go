package measure

import (
	"time"

	"yardmaster/internal/db"
)

// withinArgs are repoArgs with a time limit, in microseconds.
type withinArgs struct {
	repoArgs
	Within int64
}

// backlogArgs are the parameters of fresh.
type backlogArgs struct {
	AccountID, RepoID string
	Since             time.Time
}

// Lost is the kind of failure that most runs of a span ended by, and how many.
type Lost struct {
	Kind string
	N    int64
}

// Keys are the keys of model providers that an account has now, counted.
type Keys struct{ Total, Failing int64 }

var (
	taskRateOf = db.QWith[repoArgs, Rate](`SELECT COALESCE(SUM(CASE WHEN ` + failed + ` THEN 0 ELSE 1 END), 0) AS n, COUNT(*) AS d FROM tasks
		WHERE account_id = :account_id AND repo_id = :repo_id AND ` + ended + ` AND ` + graded)
	runRateOf = db.QWith[repoArgs, Rate](`SELECT COALESCE(SUM(CASE WHEN outcome = 'succeeded' THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d
		FROM runs WHERE account_id = :account_id AND repo_id = :repo_id AND ` + runEnded + ` AND ` + tried)
	lostBy = db.QWith[repoArgs, Lost](`SELECT failure_kind AS kind, COUNT(*) AS n FROM runs
		WHERE account_id = :account_id AND repo_id = :repo_id AND ` + runEnded + ` AND outcome IN ('failed', 'lost') AND failure_kind IS NOT NULL
		GROUP BY failure_kind ORDER BY n DESC, failure_kind LIMIT 1`)
	checkRateOf = db.QWith[repoArgs, Rate](`SELECT COALESCE(SUM(CASE WHEN status = 'passed' THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d
		FROM ci_runs WHERE account_id = :account_id AND repo_id = :repo_id AND ` + ended + ` AND status IN ('passed', 'failed')`)
	mergeRateOf = db.QWith[repoArgs, Rate](`SELECT COALESCE(SUM(merged), 0) AS n, COUNT(*) AS d FROM (
		SELECT 1 AS merged FROM pulls WHERE account_id = :account_id AND repo_id = :repo_id AND ` + merged + `
		UNION ALL SELECT 0 AS merged FROM pulls WHERE account_id = :account_id AND repo_id = :repo_id AND ` + closed + `) AS ended`)
	mergedWithin = db.QWith[withinArgs, Rate](`SELECT
		COALESCE(SUM(CASE WHEN p.merged_at - t.created_at <= :within THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d
		FROM pulls p JOIN tasks t ON t.id = p.task_id
		WHERE p.account_id = :account_id AND p.repo_id = :repo_id AND p.` + merged)
	// decidedWithin counts a question that is still open once it has waited for longer.
	decidedWithin = db.QWith[withinArgs, Rate](`SELECT COALESCE(SUM(CASE WHEN waited <= :within THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d FROM (
		SELECT a.decided_at - a.requested_at AS waited FROM pull_actions a JOIN pulls p ON p.id = a.pr_id
			WHERE a.account_id = :account_id AND p.repo_id = :repo_id AND a.decided_at >= :from_at AND a.decided_at < :to_at
			AND a.decided_by LIKE 'user:%'
		UNION ALL SELECT CAST(:to_at AS BIGINT) - a.requested_at AS waited FROM pull_actions a JOIN pulls p ON p.id = a.pr_id
			WHERE a.account_id = :account_id AND p.repo_id = :repo_id AND a.` + asked + `
			AND CAST(:to_at AS BIGINT) - a.requested_at > :within) AS questions`)
	fresh = db.QWith[backlogArgs, Rate](`SELECT COALESCE(SUM(CASE WHEN queued_at >= :since THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d
		FROM tasks WHERE account_id = :account_id AND repo_id = :repo_id AND ` + ready)
	keyPool = db.Q[Keys](`SELECT COUNT(*) AS total, COALESCE(SUM(CASE WHEN status = 'failing' THEN 1 ELSE 0 END), 0) AS failing
		FROM provider_keys WHERE account_id = $1 AND deleted_at IS NULL`)
)

// TaskRateOf is SuccessRate of a repository.
func TaskRateOf(tx *db.Tx, repoID string, s Span) (Rate, error) {
	return taskRateOf.One(tx, repoArgs{of(tx.Account, s), repoID})
}

// RunRateOf is how many of the runs of a repository of tx.Account that ended, and were not stopped
// from outside, have succeeded.
func RunRateOf(tx *db.Tx, repoID string, s Span) (Rate, error) {
	return runRateOf.One(tx, repoArgs{of(tx.Account, s), repoID})
}

// LostBy is how most runs that RunRateOf counts, and did not succeed, have failed; false if none
// has a kind.
func LostBy(tx *db.Tx, repoID string, s Span) (Lost, bool, error) {
	return lostBy.Maybe(tx, repoArgs{of(tx.Account, s), repoID})
}

// CheckRateOf is CheckRate of a repository.
func CheckRateOf(tx *db.Tx, repoID string, s Span) (Rate, error) {
	return checkRateOf.One(tx, repoArgs{of(tx.Account, s), repoID})
}

// MergeRateOf is MergeRate of a repository.
func MergeRateOf(tx *db.Tx, repoID string, s Span) (Rate, error) {
	return mergeRateOf.One(tx, repoArgs{of(tx.Account, s), repoID})
}

// MergedWithin is how many of the pull requests of tasks that were merged were merged within a time
// after their task was filed.
func MergedWithin(tx *db.Tx, repoID string, s Span, within time.Duration) (Rate, error) {
	return mergedWithin.One(tx, withinArgs{repoArgs{of(tx.Account, s), repoID}, within.Microseconds()})
}

// DecidedWithin is how many of the questions about pull requests that people answered were answered
// within a time after they were asked. One that has no answer at the end of the span counts as late
// once it has waited for longer, and before that not at all.
func DecidedWithin(tx *db.Tx, repoID string, s Span, within time.Duration) (Rate, error) {
	if s.To.IsZero() {
		s.To = tx.Now
	}
	return decidedWithin.One(tx, withinArgs{repoArgs{of(tx.Account, s), repoID}, within.Microseconds()})
}

// QueuedWithin is how many of the tasks of a repository that a box could take now have waited no
// longer than a time.
func QueuedWithin(tx *db.Tx, repoID string, within time.Duration) (Rate, error) {
	return fresh.One(tx, backlogArgs{AccountID: tx.Account, RepoID: repoID, Since: tx.Now.Add(-within)})
}

// KeyPool counts the keys of model providers of tx.Account.
func KeyPool(tx *db.Tx) (Keys, error) { return keyPool.One(tx, tx.Account) }
