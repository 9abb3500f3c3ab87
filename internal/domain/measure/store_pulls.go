package measure

import (
	"time"

	"yardmaster/internal/db"
)

// Pulls are pull requests of a repository, counted.
type Pulls struct {
	Open, Stopped, Asked   int64 // now
	Opened, Merged, Closed int64 // in the span; Closed without a merge
}

// Checks are checks that ended in a span, counted: with 0, with another exit code, without one.
type Checks struct{ Passed, Failed, Lost int64 }

// ByRepo is a number of a repository, owner/name.
type ByRepo struct {
	Repo string
	N    int64
}

// Merge is a pull request that was merged.
type Merge struct {
	PRID        string `db:"pr_id"`
	Repo        string // owner/name
	Number      int64
	Title       string
	RequestedBy *string // login of the person whose work it is
	MergedBy    *string // label of who decided it
	MergedAt    time.Time
	Total       int64 // of which it is one
}

var (
	pullsOf = db.QWith[repoArgs, Pulls](`SELECT
		COALESCE(SUM(CASE WHEN state = 'open' THEN 1 ELSE 0 END), 0) AS open,
		COALESCE(SUM(CASE WHEN ` + stopped + ` THEN 1 ELSE 0 END), 0) AS stopped,
		(SELECT COUNT(*) FROM pull_actions a JOIN pulls q ON q.id = a.pr_id
			WHERE a.account_id = :account_id AND a.` + asked + ` AND q.repo_id = :repo_id) AS asked,
		COALESCE(SUM(CASE WHEN created_at >= :from_at AND created_at < :to_at THEN 1 ELSE 0 END), 0) AS opened,
		COALESCE(SUM(CASE WHEN ` + merged + ` THEN 1 ELSE 0 END), 0) AS merged,
		COALESCE(SUM(CASE WHEN ` + closed + ` THEN 1 ELSE 0 END), 0) AS closed
		FROM pulls WHERE account_id = :account_id AND repo_id = :repo_id`)
	mergedCount  = db.QWith[spanArgs, int64](`SELECT COUNT(*) FROM pulls WHERE account_id = :account_id AND ` + merged)
	mergedByRepo = db.QWith[spanArgs, ByRepo](`SELECT r.owner || '/' || r.name AS repo, COUNT(*) AS n FROM pulls JOIN repos r ON r.id = repo_id
		WHERE pulls.account_id = :account_id AND ` + merged + ` GROUP BY r.owner, r.name`)
	// The names of repositories and people are joined to the rows that are shown.
	merges = db.QWith[listArgs, Merge](`SELECT p.id AS pr_id, r.owner || '/' || r.name AS repo, p.number, p.title, u.login AS requested_by,
		p.merged_by, p.merged_at, p.total
		FROM (SELECT id, repo_id, task_id, number, title, merged_by, merged_at, COUNT(*) OVER () AS total FROM pulls
			WHERE account_id = :account_id AND ` + merged + ` ORDER BY merged_at DESC, id LIMIT :most) p
		JOIN repos r ON r.id = p.repo_id LEFT JOIN tasks t ON t.id = p.task_id LEFT JOIN users u ON u.id = t.requested_by
		ORDER BY p.merged_at DESC, p.id`)
	mergeRate = db.QWith[spanArgs, Rate](`SELECT COALESCE(SUM(merged), 0) AS n, COUNT(*) AS d FROM (
		SELECT 1 AS merged FROM pulls WHERE account_id = :account_id AND ` + merged + `
		UNION ALL SELECT 0 AS merged FROM pulls WHERE account_id = :account_id AND ` + closed + `) AS ended`)

	checksOf = db.QWith[repoArgs, Checks](`SELECT
		COALESCE(SUM(CASE WHEN status = 'passed' THEN 1 ELSE 0 END), 0) AS passed,
		COALESCE(SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END), 0) AS failed,
		COALESCE(SUM(CASE WHEN status = 'lost' THEN 1 ELSE 0 END), 0) AS lost
		FROM ci_runs WHERE account_id = :account_id AND repo_id = :repo_id AND ` + ended)
	checkRate = db.QWith[spanArgs, Rate](`SELECT COALESCE(SUM(CASE WHEN status = 'passed' THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d
		FROM ci_runs WHERE account_id = :account_id AND ` + ended + ` AND status IN ('passed', 'failed')`)
)

// PullsOf counts the pull requests of a repository of tx.Account.
func PullsOf(tx *db.Tx, repoID string, s Span) (Pulls, error) {
	return pullsOf.One(tx, repoArgs{of(tx.Account, s), repoID})
}

// Merged counts the pull requests of tx.Account that were merged.
func Merged(tx *db.Tx, s Span) (int64, error) { return mergedCount.One(tx, of(tx.Account, s)) }

// MergedByRepo is Merged for each repository that has some.
func MergedByRepo(tx *db.Tx, s Span) ([]ByRepo, error) {
	return mergedByRepo.All(tx, of(tx.Account, s))
}

// Merges are the pull requests of tx.Account that were merged, the newest first and at most most.
func Merges(tx *db.Tx, s Span, most int) ([]Merge, error) {
	return merges.All(tx, listArgs{of(tx.Account, s), most})
}

// MergeRate is how many of the pull requests of tx.Account that came to an end were merged.
func MergeRate(tx *db.Tx, s Span) (Rate, error) { return mergeRate.One(tx, of(tx.Account, s)) }

// ChecksOf counts the checks of a repository of tx.Account that ended.
func ChecksOf(tx *db.Tx, repoID string, s Span) (Checks, error) {
	return checksOf.One(tx, repoArgs{of(tx.Account, s), repoID})
}

// CheckRate is how many of the checks of tx.Account that passed or failed have passed.
func CheckRate(tx *db.Tx, s Span) (Rate, error) { return checkRate.One(tx, of(tx.Account, s)) }
