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

// seriesArgs are spanArgs of one repository, or of all (""), and of one thing to count.
type seriesArgs struct {
	repoArgs
	What  What
	Width int64 // of a part, in microseconds
}

// The rows that are counted. Those of other things than :what are not looked for.
const (
	countedRows = `SELECT merged_at AS at, repo_id, 1 AS n, 1 AS d FROM pulls
			WHERE :what IN ('pulls_merged', 'pulls_ended') AND account_id = :account_id AND ` + merged + `
		UNION ALL SELECT closed_at AS at, repo_id, 0 AS n, 1 AS d FROM pulls
			WHERE :what = 'pulls_ended' AND account_id = :account_id AND ` + closed + `
		UNION ALL SELECT created_at AS at, repo_id, 1 AS n, 1 AS d FROM tasks
			WHERE :what = 'tasks_filed' AND account_id = :account_id AND ` + filed + `
		UNION ALL SELECT finished_at AS at, repo_id, CASE WHEN ` + failed + ` THEN 0 ELSE 1 END AS n, 1 AS d FROM tasks
			WHERE :what = 'tasks_ended' AND account_id = :account_id AND ` + ended + ` AND ` + graded + `
		UNION ALL SELECT finished_at AS at, repo_id, 1 AS n, 1 AS d FROM tasks
			WHERE :what = 'tasks_failed' AND account_id = :account_id AND ` + ended + ` AND ` + failed + `
		UNION ALL SELECT finished_at AS at, repo_id, CASE WHEN status = 'passed' THEN 1 ELSE 0 END AS n, 1 AS d FROM ci_runs
			WHERE :what = 'checks_ended' AND account_id = :account_id AND ` + ended + ` AND status IN ('passed', 'failed')
		UNION ALL SELECT started_at AS at, repo_id, 1 AS n, 1 AS d FROM sessions
			WHERE :what = 'sessions' AND account_id = :account_id AND started_at >= :from_at AND started_at < :to_at`
	costRows = `SELECT m.minute AS at, s.repo_id, m.calls AS n, m.cost_micros, m.unpriced FROM spend_minutes m
		JOIN sessions s ON s.id = m.session_id WHERE :what = 'cost' AND m.account_id = :account_id AND ` + spent

	counted = `CAST(SUM(n) AS BIGINT) AS n, CAST(SUM(d) AS BIGINT) AS d, CAST(NULL AS BIGINT) AS micros, CAST(0 AS BIGINT) AS unpriced
		FROM (` + countedRows
	costing = `CAST(SUM(n) AS BIGINT) AS n, CAST(SUM(n) AS BIGINT) AS d, CAST(SUM(cost_micros) AS BIGINT) AS micros,
		CAST(SUM(unpriced) AS BIGINT) AS unpriced FROM (` + costRows
	part   = `SELECT CAST((at - :from_at) / :width AS BIGINT) AS at, `
	inPart = `) AS x WHERE (:repo_id = '' OR repo_id = :repo_id) GROUP BY 1 ORDER BY 1`
	named  = `SELECT COALESCE(r.owner || '/' || r.name, '') AS repo, `
	inRepo = `) AS x LEFT JOIN repos r ON r.id = x.repo_id WHERE (:repo_id = '' OR x.repo_id = :repo_id) AND :width > 0
		GROUP BY r.owner, r.name ORDER BY 1 LIMIT 1000`
)

var (
	series     = db.QWith[seriesArgs, Bucket](part + counted + inPart)
	costSeries = db.QWith[seriesArgs, Bucket](part + costing + inPart)
	shares     = db.QWith[seriesArgs, Share](named + counted + inRepo)
	costShares = db.QWith[seriesArgs, Share](named + costing + inRepo)

	boxesOnline = db.Q[Rate](`SELECT COALESCE(SUM(CASE WHEN presence = 'online' THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d
		FROM boxes WHERE account_id = $1 AND ` + enrolled)
)

// Series counts something of tx.Account in parts of a span that has an end, each as long as
// width, of one repository or of all (""). Parts in which nothing happened are left out. Cost is
// kept by the minute, and From is that of its minute.
func Series(tx *db.Tx, what What, s Span, width time.Duration, repoID string) ([]Bucket, error) {
	if what == Cost {
		return costSeries.All(tx, seriesArgs{repoArgs{of(tx.Account, s.minutes()), repoID}, what, width.Microseconds()})
	}
	return series.All(tx, seriesArgs{repoArgs{of(tx.Account, s), repoID}, what, width.Microseconds()})
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
		return costShares.All(tx, seriesArgs{repoArgs{of(tx.Account, s.minutes()), repoID}, what, 1})
	}
	return shares.All(tx, seriesArgs{repoArgs{of(tx.Account, s), repoID}, what, 1})
}

// BoxesOnline is how many of the boxes of tx.Account are online.
func BoxesOnline(tx *db.Tx) (Rate, error) { return boxesOnline.One(tx, tx.Account) }
