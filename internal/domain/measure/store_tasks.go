package measure

import (
	"time"

	"yardmaster/internal/db"
)

// Tasks are tasks of a repository, counted.
type Tasks struct {
	Pending, Held, InFlight, Shipping int64 // now; Shipping have an open pull request
	Completed, Failed                 int64 // in the span
}

// Failure is a task that failed for good.
type Failure struct {
	TaskID   string
	Repo     string // owner/name
	Title    string
	Failure  *string `db:"failure_kind"`
	Why      string
	FailedAt time.Time
	Total    int64 // of which it is one
}

// Running are tasks that a box holds now, and those that failed for good in a span.
type Running struct{ Running, Failed int64 }

var (
	tasksOf = db.QWith[repoArgs, Tasks](`SELECT
		COALESCE(SUM(CASE WHEN status = 'pending' THEN 1 ELSE 0 END), 0) AS pending,
		COALESCE(SUM(CASE WHEN status = 'held' THEN 1 ELSE 0 END), 0) AS held,
		COALESCE(SUM(CASE WHEN ` + atWork + ` THEN 1 ELSE 0 END), 0) AS in_flight,
		COALESCE(SUM(CASE WHEN ` + shipping + ` THEN 1 ELSE 0 END), 0) AS shipping,
		COALESCE(SUM(CASE WHEN ` + succeeded + ` AND ` + ended + ` THEN 1 ELSE 0 END), 0) AS completed,
		COALESCE(SUM(CASE WHEN ` + failed + ` AND ` + ended + ` THEN 1 ELSE 0 END), 0) AS failed
		FROM tasks WHERE account_id = :account_id AND repo_id = :repo_id`)
	running = db.QWith[spanArgs, Running](`SELECT
		(SELECT COUNT(*) FROM tasks WHERE account_id = :account_id AND ` + atWork + `) AS running,
		(SELECT COUNT(*) FROM tasks WHERE account_id = :account_id AND ` + ended + ` AND ` + failed + `) AS failed`)
	filedByRepo = db.QWith[spanArgs, ByRepo](`SELECT r.owner || '/' || r.name AS repo, t.n FROM (SELECT repo_id, COUNT(*) AS n FROM tasks
		WHERE account_id = :account_id AND ` + filed + ` GROUP BY repo_id) t JOIN repos r ON r.id = t.repo_id`)
	failures = db.QWith[listArgs, Failure](`SELECT t.id AS task_id, r.owner || '/' || r.name AS repo, t.title, t.failure_kind,
		COALESCE(t.failure, '') AS why, t.finished_at AS failed_at, t.total
		FROM (SELECT id, repo_id, title, failure_kind, failure, finished_at, COUNT(*) OVER () AS total FROM tasks
			WHERE account_id = :account_id AND ` + ended + ` AND ` + failed + ` ORDER BY finished_at DESC, id LIMIT :most) t
		JOIN repos r ON r.id = t.repo_id ORDER BY t.finished_at DESC, t.id`)
	successRate = db.QWith[spanArgs, Rate](`SELECT COALESCE(SUM(CASE WHEN ` + failed + ` THEN 0 ELSE 1 END), 0) AS n, COUNT(*) AS d FROM tasks
		WHERE account_id = :account_id AND ` + ended + ` AND ` + graded)
)

// TasksOf counts the tasks of a repository of tx.Account.
func TasksOf(tx *db.Tx, repoID string, s Span) (Tasks, error) {
	return tasksOf.One(tx, repoArgs{of(tx.Account, s), repoID})
}

// RunningTasks counts the tasks of tx.Account that boxes hold, and those that failed.
func RunningTasks(tx *db.Tx, s Span) (Running, error) { return running.One(tx, of(tx.Account, s)) }

// FiledByRepo counts the tasks of tx.Account that were filed, for each repository that has some.
func FiledByRepo(tx *db.Tx, s Span) ([]ByRepo, error) { return filedByRepo.All(tx, of(tx.Account, s)) }

// Failures are the tasks of tx.Account that failed for good, the newest first and at most most.
func Failures(tx *db.Tx, s Span, most int) ([]Failure, error) {
	return failures.All(tx, listArgs{of(tx.Account, s), most})
}

// SuccessRate is how many of the tasks of tx.Account that ended, and were not cancelled, did not
// fail.
func SuccessRate(tx *db.Tx, s Span) (Rate, error) { return successRate.One(tx, of(tx.Account, s)) }
