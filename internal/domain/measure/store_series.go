package measure

import (
	"time"

	"yardmaster/internal/db"
)

// What is counted over time, and by repository.
type What string

// All that Series and ByRepoOf count. Rates have their D: how many there were of which N went
// well; what is only counted has N and D alike.
const (
	PullsMerged What = "pulls_merged"
	PullsEnded  What = "pulls_ended" // merged, of those that came to an end
	TasksFiled  What = "tasks_filed"
	TasksEnded  What = "tasks_ended" // not failed, of those that ended and were not cancelled
	TasksFailed What = "tasks_failed"
	ChecksEnded What = "checks_ended" // passed, of those that passed or failed
	SessionsOfA What = "sessions"     // that began
	Cost        What = "cost"         // of calls of models
)

// Bucket is what was counted in one part of a span. At is the number of the part, from 0.
type Bucket struct {
	At       int64
	N, D     int64
	Micros   *int64 // of Cost: of the calls that have a price; nil: none has
	Unpriced int64  // of Cost: calls without one. Its N and D are all calls
}

// Plus is two parts as one, which is where the second is.
func (b Bucket) Plus(c Bucket) Bucket {
	c.N, c.D, c.Unpriced = b.N+c.N, b.D+c.D, b.Unpriced+c.Unpriced
	switch {
	case c.Micros == nil:
		c.Micros = b.Micros
	case b.Micros != nil:
		sum := *b.Micros + *c.Micros
		c.Micros = &sum
	}
	return c
}

// Share is what was counted of one repository, owner/name; empty for what belongs to none.
type Share struct {
	Repo     string
	N, D     int64
	Micros   *int64
	Unpriced int64
}

// seriesArgs are spanArgs of one repository, or of all ("").
type seriesArgs struct {
	repoArgs
	Width int64 // of a part, in microseconds
}

// The rows that are counted: at, repo_id, n, d, micros, unpriced.
const (
	mergedRows = `SELECT merged_at AS at, repo_id, 1 AS n, 1 AS d FROM pulls WHERE account_id = :account_id AND ` + merged
	endedPulls = mergedRows + ` UNION ALL SELECT closed_at AS at, repo_id, 0 AS n, 1 AS d FROM pulls WHERE account_id = :account_id AND ` + closed
	filedRows  = `SELECT created_at AS at, repo_id, 1 AS n, 1 AS d FROM tasks WHERE account_id = :account_id AND ` + filed
	endedTasks = `SELECT finished_at AS at, repo_id, CASE WHEN ` + failed + ` THEN 0 ELSE 1 END AS n, 1 AS d FROM tasks
		WHERE account_id = :account_id AND ` + ended + ` AND ` + graded
	failedRows = `SELECT finished_at AS at, repo_id, 1 AS n, 1 AS d FROM tasks WHERE account_id = :account_id AND ` + ended + ` AND ` + failed
	checkRows  = `SELECT finished_at AS at, repo_id, CASE WHEN status = 'passed' THEN 1 ELSE 0 END AS n, 1 AS d FROM ci_runs
		WHERE account_id = :account_id AND ` + ended + ` AND status IN ('passed', 'failed')`
	sessionRows = `SELECT started_at AS at, repo_id, 1 AS n, 1 AS d FROM sessions WHERE account_id = :account_id
		AND started_at >= :from_at AND started_at < :to_at`
	costRows = `SELECT m.minute AS at, s.repo_id, m.calls AS n, m.cost_micros, m.unpriced FROM spend_minutes m
		JOIN sessions s ON s.id = m.session_id WHERE m.account_id = :account_id AND ` + spent

	counted = `CAST(SUM(n) AS BIGINT) AS n, CAST(SUM(d) AS BIGINT) AS d, CAST(NULL AS BIGINT) AS micros, CAST(0 AS BIGINT) AS unpriced FROM (`
	costing = `CAST(SUM(n) AS BIGINT) AS n, CAST(SUM(n) AS BIGINT) AS d, CAST(SUM(cost_micros) AS BIGINT) AS micros,
		CAST(SUM(unpriced) AS BIGINT) AS unpriced FROM (`
	part   = `SELECT CAST((at - :from_at) / :width AS BIGINT) AS at, `
	ofOne  = `) AS x WHERE (:repo_id = '' OR repo_id = :repo_id)`
	inPart = ofOne + ` GROUP BY 1 ORDER BY 1`
	named  = `SELECT COALESCE(r.owner || '/' || r.name, '') AS repo, `
	inRepo = `) AS x LEFT JOIN repos r ON r.id = x.repo_id WHERE (:repo_id = '' OR x.repo_id = :repo_id) AND :width > 0
		GROUP BY r.owner, r.name ORDER BY 1 LIMIT 1000`
)

var (
	mergedSeries  = db.QWith[seriesArgs, Bucket](part + counted + mergedRows + inPart)
	endedSeries   = db.QWith[seriesArgs, Bucket](part + counted + endedPulls + inPart)
	filedSeries   = db.QWith[seriesArgs, Bucket](part + counted + filedRows + inPart)
	tasksSeries   = db.QWith[seriesArgs, Bucket](part + counted + endedTasks + inPart)
	failedSeries  = db.QWith[seriesArgs, Bucket](part + counted + failedRows + inPart)
	checkSeries   = db.QWith[seriesArgs, Bucket](part + counted + checkRows + inPart)
	sessionSeries = db.QWith[seriesArgs, Bucket](part + counted + sessionRows + inPart)
	costSeries    = db.QWith[seriesArgs, Bucket](part + costing + costRows + inPart)

	mergedShares  = db.QWith[seriesArgs, Share](named + counted + mergedRows + inRepo)
	endedShares   = db.QWith[seriesArgs, Share](named + counted + endedPulls + inRepo)
	filedShares   = db.QWith[seriesArgs, Share](named + counted + filedRows + inRepo)
	tasksShares   = db.QWith[seriesArgs, Share](named + counted + endedTasks + inRepo)
	failedShares  = db.QWith[seriesArgs, Share](named + counted + failedRows + inRepo)
	checkShares   = db.QWith[seriesArgs, Share](named + counted + checkRows + inRepo)
	sessionShares = db.QWith[seriesArgs, Share](named + counted + sessionRows + inRepo)
	costShares    = db.QWith[seriesArgs, Share](named + costing + costRows + inRepo)

	boxesOnline = db.Q[Rate](`SELECT COALESCE(SUM(CASE WHEN presence = 'online' THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d
		FROM boxes WHERE account_id = $1 AND ` + enrolled)
)

func (w What) series() db.QueryWith[seriesArgs, Bucket] {
	switch w {
	case PullsMerged:
		return mergedSeries
	case PullsEnded:
		return endedSeries
	case TasksFiled:
		return filedSeries
	case TasksEnded:
		return tasksSeries
	case TasksFailed:
		return failedSeries
	case ChecksEnded:
		return checkSeries
	case SessionsOfA:
		return sessionSeries
	default:
		return costSeries
	}
}

func (w What) shares() db.QueryWith[seriesArgs, Share] {
	switch w {
	case PullsMerged:
		return mergedShares
	case PullsEnded:
		return endedShares
	case TasksFiled:
		return filedShares
	case TasksEnded:
		return tasksShares
	case TasksFailed:
		return failedShares
	case ChecksEnded:
		return checkShares
	case SessionsOfA:
		return sessionShares
	default:
		return costShares
	}
}

// Series counts something of tx.Account in parts of a span that has an end, each as long as
// width, of one repository or of all (""). Parts in which nothing happened are left out. Cost is
// kept by the minute, and From is that of its minute.
func Series(tx *db.Tx, what What, s Span, width time.Duration, repoID string) ([]Bucket, error) {
	if what == Cost {
		s = s.minutes()
	}
	return what.series().All(tx, seriesArgs{repoArgs{of(tx.Account, s), repoID}, width.Microseconds()})
}

// Total is Series in one part.
func Total(tx *db.Tx, what What, s Span, repoID string) (Bucket, error) {
	all, err := Series(tx, what, s, s.end().Sub(s.From)+time.Minute, repoID)
	if err != nil || len(all) == 0 {
		return Bucket{}, err
	}
	return all[0], nil
}

// ByRepoOf is Total for each repository that has some, by its name.
func ByRepoOf(tx *db.Tx, what What, s Span, repoID string) ([]Share, error) {
	if what == Cost {
		s = s.minutes()
	}
	return what.shares().All(tx, seriesArgs{repoArgs{of(tx.Account, s), repoID}, 1})
}

// BoxesOnline is how many of the boxes of tx.Account are online.
func BoxesOnline(tx *db.Tx) (Rate, error) { return boxesOnline.One(tx, tx.Account) }
