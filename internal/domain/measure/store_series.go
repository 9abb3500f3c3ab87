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

// What repositories have is counted in each part, and of each repository, by an index that has all
// that is asked: nothing is read beyond it, and nothing is sorted. A part is b, a repository r.
const (
	parts = `WITH RECURSIVE p (at) AS (SELECT CAST(0 AS BIGINT) UNION ALL
			SELECT at + 1 FROM p WHERE CAST(:from_at AS BIGINT) + (at + 1) * CAST(:width AS BIGINT) < CAST(:to_at AS BIGINT)),
		q (at, from_at, next_at) AS (SELECT at, CAST(:from_at AS BIGINT) + at * CAST(:width AS BIGINT),
			CAST(:from_at AS BIGINT) + (at + 1) * CAST(:width AS BIGINT) FROM p),
		b (at, from_at, to_at) AS (SELECT at, from_at,
			CASE WHEN next_at < CAST(:to_at AS BIGINT) THEN next_at ELSE CAST(:to_at AS BIGINT) END FROM q) `
	ofRepos = ` FROM repos r WHERE r.account_id = :account_id AND (:repo_id = '' OR r.id = :repo_id)`

	fromTasks = `(SELECT COUNT(*) FROM tasks WHERE repo_id = r.id AND `
	fromPulls = `(SELECT COUNT(*) FROM pulls WHERE repo_id = r.id AND `
	fromRuns  = `(SELECT COUNT(*) FROM ci_runs WHERE repo_id = r.id AND `

	// wentWell and didNot are how many rows of a repository went well in a part, and how many did not.
	wentWell = `CASE :what WHEN 'pulls_merged' THEN ` + fromPulls + mergedIn + `) WHEN 'pulls_ended' THEN ` + fromPulls + mergedIn + `)
		WHEN 'tasks_filed' THEN ` + fromTasks + filedIn + `) WHEN 'tasks_failed' THEN ` + fromTasks + failed + ` AND ` + endedIn + `)
		WHEN 'tasks_ended' THEN ` + fromTasks + succeeded + ` AND ` + endedIn + `)
		WHEN 'checks_ended' THEN ` + fromRuns + `status = 'passed' AND ` + endedIn + `) ELSE 0 END`
	didNot = `CASE :what WHEN 'pulls_ended' THEN ` + fromPulls + closedIn + `)
		WHEN 'tasks_ended' THEN ` + fromTasks + failed + ` AND ` + endedIn + `)
		WHEN 'checks_ended' THEN ` + fromRuns + failed + ` AND ` + endedIn + `) ELSE 0 END`
)

// The rows that are counted of what need not have a repository.
const (
	begunRows = `SELECT started_at AS at, repo_id, 1 AS n FROM sessions
		WHERE :what = 'sessions' AND account_id = :account_id AND started_at >= :from_at AND started_at < :to_at`
	costRows = `SELECT m.minute AS at, s.repo_id, m.calls AS n, m.cost_micros, m.unpriced FROM spend_minutes m
		JOIN sessions s ON s.id = m.session_id WHERE :what = 'cost' AND m.account_id = :account_id AND ` + spent

	beginning = `CAST(SUM(n) AS BIGINT) AS n, CAST(SUM(n) AS BIGINT) AS d, CAST(NULL AS BIGINT) AS micros, CAST(0 AS BIGINT) AS unpriced
		FROM (` + begunRows
	costing = `CAST(SUM(n) AS BIGINT) AS n, CAST(SUM(n) AS BIGINT) AS d, CAST(SUM(cost_micros) AS BIGINT) AS micros,
		CAST(SUM(unpriced) AS BIGINT) AS unpriced FROM (` + costRows
	part   = `SELECT CAST((at - :from_at) / :width AS BIGINT) AS at, `
	inPart = `) AS x WHERE (:repo_id = '' OR repo_id = :repo_id) GROUP BY 1 ORDER BY 1`
	named  = `SELECT COALESCE(r.owner || '/' || r.name, '') AS repo, `
	inRepo = `) AS x LEFT JOIN repos r ON r.id = x.repo_id WHERE (:repo_id = '' OR x.repo_id = :repo_id) AND :width > 0
		GROUP BY r.owner, r.name ORDER BY 1 LIMIT 1000`
)

// mostShares is how many repositories ByRepoOf answers.
const mostShares = 1000

type (
	// tallied are rows of a part: those that went well, and the rest.
	tallied struct{ At, N, Rest int64 }
	// talliedOf are those of a repository.
	talliedOf struct {
		Repo    string
		N, Rest int64
	}
)

var (
	series = db.QWith[seriesArgs, tallied](parts + `SELECT b.at,
		(SELECT COALESCE(CAST(SUM(` + wentWell + `) AS BIGINT), 0)` + ofRepos + `) AS n,
		(SELECT COALESCE(CAST(SUM(` + didNot + `) AS BIGINT), 0)` + ofRepos + `) AS rest FROM b ORDER BY b.at`)
	shares = db.QWith[seriesArgs, talliedOf](parts + `SELECT r.owner || '/' || r.name AS repo, ` + wentWell + ` AS n, ` + didNot + ` AS rest
		FROM b CROSS JOIN repos r WHERE r.account_id = :account_id AND (:repo_id = '' OR r.id = :repo_id) ORDER BY 1`)

	beginSeries = db.QWith[seriesArgs, Bucket](part + beginning + inPart)
	beginShares = db.QWith[seriesArgs, Share](named + beginning + inRepo)
	costSeries  = db.QWith[seriesArgs, Bucket](part + costing + inPart)
	costShares  = db.QWith[seriesArgs, Share](named + costing + inRepo)

	boxesOnline = db.Q[Rate](`SELECT COALESCE(SUM(CASE WHEN presence = 'online' THEN 1 ELSE 0 END), 0) AS n, COUNT(*) AS d
		FROM boxes WHERE account_id = $1 AND ` + enrolled)
)

// Series counts something of tx.Account in parts of a span that has an end, each as long as
// width, of one repository or of all (""). Parts in which nothing happened are left out. Cost is
// kept by the minute, and From is that of its minute.
func Series(tx *db.Tx, what What, s Span, width time.Duration, repoID string) ([]Bucket, error) {
	args := seriesArgs{repoArgs{of(tx.Account, s), repoID}, what, width.Microseconds()}
	switch what {
	case Cost:
		args.spanArgs = of(tx.Account, s.minutes())
		return costSeries.All(tx, args)
	case SessionsOfA:
		return beginSeries.All(tx, args)
	}
	rows, err := series.All(tx, args)
	var out []Bucket
	for _, r := range rows {
		if r.N+r.Rest > 0 {
			out = append(out, Bucket{At: r.At, N: r.N, D: r.N + r.Rest})
		}
	}
	return out, err
}

// Total is Series in one part.
func Total(tx *db.Tx, what What, s Span, repoID string) (Bucket, error) {
	all, err := Series(tx, what, s, s.whole(), repoID)
	if err != nil || len(all) == 0 {
		return Bucket{}, err
	}
	return all[0], nil
}

// whole is a width in which a span is one part, beginning with its minute too.
func (s Span) whole() time.Duration { return s.end().Sub(s.From) + time.Minute }

// ByRepoOf is Total for each repository that has some, by its name; of the first 1,000.
func ByRepoOf(tx *db.Tx, what What, s Span, repoID string) ([]Share, error) {
	args := seriesArgs{repoArgs{of(tx.Account, s), repoID}, what, s.whole().Microseconds()}
	switch what {
	case Cost:
		args.spanArgs, args.Width = of(tx.Account, s.minutes()), 1
		return costShares.All(tx, args)
	case SessionsOfA:
		args.Width = 1
		return beginShares.All(tx, args)
	}
	rows, err := shares.All(tx, args)
	var out []Share
	for _, r := range rows {
		if r.N+r.Rest > 0 && len(out) < mostShares {
			out = append(out, Share{Repo: r.Repo, N: r.N, D: r.N + r.Rest})
		}
	}
	return out, err
}

// BoxesOnline is how many of the boxes of tx.Account are online.
func BoxesOnline(tx *db.Tx) (Rate, error) { return boxesOnline.One(tx, tx.Account) }
