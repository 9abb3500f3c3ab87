package budget

import (
	"time"

	"yardmaster/internal/db"
)

// The ledger of days: what calls cost by the session, or the gift, that they count for, the key
// that they went over, and the provider and the model that answered.
var (
	addDay = db.SWith[addDayArgs](`INSERT INTO spend_days (account_id, day, session_id, key_id, provider, model, calls, unpriced, cost_micros)
		VALUES (:account_id, :day, :session_id, :key_id, :provider, :model, :calls, :unpriced, :cost_micros)
		ON CONFLICT (account_id, day, session_id, key_id, provider, model) DO UPDATE SET calls = spend_days.calls + EXCLUDED.calls,
		unpriced = spend_days.unpriced + EXCLUDED.unpriced, cost_micros = spend_days.cost_micros + EXCLUDED.cost_micros`)
	dropDays = db.S(`DELETE FROM spend_days WHERE account_id IN (SELECT id FROM accounts) AND day < $1`)

	callsByDay = db.Q[dayRow](`SELECT day, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(unpriced) AS BIGINT) AS unpriced,
		CAST(SUM(cost_micros) AS BIGINT) AS spent, COUNT(DISTINCT session_id) AS sessions
		FROM spend_days WHERE account_id = $1 AND day >= $2 AND day < $3 GROUP BY day ORDER BY day`)
	firstDay      = db.Q[*int64](`SELECT MIN(day) FROM spend_days WHERE account_id = $1`)
	countSessions = db.Q[int64](`SELECT COUNT(DISTINCT session_id) FROM spend_days WHERE account_id = $1 AND day >= $2 AND day < $3`)
)

const (
	partSums = `, CAST(SUM(d.calls) AS BIGINT) AS calls, CAST(SUM(d.unpriced) AS BIGINT) AS unpriced,
	CAST(SUM(d.cost_micros) AS BIGINT) AS spent, COUNT(DISTINCT d.session_id) AS sessions FROM spend_days d `
	within = ` WHERE d.account_id = $1 AND d.day >= $2 AND d.day < $3 GROUP BY `
	first  = ` ORDER BY spent DESC, calls DESC, 2, 3 LIMIT 100`
	daily  = ` ORDER BY 1, spent DESC, calls DESC, 2, 3`

	ofSession = `LEFT JOIN sessions s ON s.id = d.session_id `
	ofTask    = ofSession + `LEFT JOIN tasks t ON t.id = s.task_id `

	byModel = `d.provider AS id, d.model AS name` + partSums + within + `d.provider, d.model`
	byRepo  = `r.id AS id, r.owner || '/' || r.name AS name` + partSums + ofSession + `LEFT JOIN repos r ON r.id = s.repo_id` +
		within + `r.id, r.owner, r.name`
	byKind   = `NULL AS id, s.kind AS name` + partSums + ofSession + within + `s.kind`
	byMember = `COALESCE(t.requested_by, s.requested_by) AS id, NULL AS name` + partSums + ofTask + within +
		`COALESCE(t.requested_by, s.requested_by)`
	byTask = `t.id AS id, t.title AS name` + partSums + ofTask + within + `t.id, t.title`
	byPlan = `p.id AS id, p.title AS name` + partSums + ofTask + `LEFT JOIN plans p ON p.id = t.plan_id` + within + `p.id, p.title`
	byKey  = `d.key_id AS id, NULL AS name` + partSums + within + `d.key_id`
	byGift = `g.id AS id, COALESCE(r.owner || '/' || r.name, '` + toPool + `') AS name` + partSums +
		`JOIN donations g ON g.id = d.session_id LEFT JOIN repos r ON r.id = g.repo_id` + within + `g.id, r.owner, r.name`

	// ownKeys and toPool are names of parts that have none of their own.
	ownKeys = "keys of members"
	toPool  = "pool"
)

// parts are the ways in which the ledger is added up: of a month, and for each of its days.
var parts = map[string]struct{ month, days db.Query[partRow] }{
	"model":  {db.Q[partRow](`SELECT 0 AS day, ` + byModel + first), db.Q[partRow](`SELECT d.day, ` + byModel + `, d.day` + daily)},
	"repo":   {db.Q[partRow](`SELECT 0 AS day, ` + byRepo + first), db.Q[partRow](`SELECT d.day, ` + byRepo + `, d.day` + daily)},
	"kind":   {db.Q[partRow](`SELECT 0 AS day, ` + byKind + first), db.Q[partRow](`SELECT d.day, ` + byKind + `, d.day` + daily)},
	"member": {db.Q[partRow](`SELECT 0 AS day, ` + byMember + first), db.Q[partRow](`SELECT d.day, ` + byMember + `, d.day` + daily)},
	"task":   {db.Q[partRow](`SELECT 0 AS day, ` + byTask + first), db.Q[partRow](`SELECT d.day, ` + byTask + `, d.day` + daily)},
	"plan":   {db.Q[partRow](`SELECT 0 AS day, ` + byPlan + first), db.Q[partRow](`SELECT d.day, ` + byPlan + `, d.day` + daily)},
	"key":    {db.Q[partRow](`SELECT 0 AS day, ` + byKey + first), db.Q[partRow](`SELECT d.day, ` + byKey + `, d.day` + daily)},
	"gift":   {db.Q[partRow](`SELECT 0 AS day, ` + byGift + first), db.Q[partRow](`SELECT d.day, ` + byGift + `, d.day` + daily)},
}

// dayRow is the calls of one day.
type dayRow struct{ Day, Calls, Unpriced, Spent, Sessions int64 }

// partRow is the calls of one part, of a month or of a day of it.
type partRow struct {
	Day                              int64
	ID, Name                         *string
	Calls, Unpriced, Spent, Sessions int64
}

// cappedRepos are the repositories of an account that have a limit.
var cappedRepos = db.Q[cappedRow](`SELECT r.id, r.owner || '/' || r.name AS name, l.micros, COALESCE(b.spent, 0) AS spent,
	COALESCE(b.reserved, 0) AS reserved FROM budget_limits l JOIN repos r ON r.id = l.ref AND r.account_id = l.account_id
	LEFT JOIN budgets b ON b.account_id = l.account_id AND b.scope = l.scope AND b.ref = l.ref AND b.period = $2
	WHERE l.account_id = $1 AND l.scope = '` + Repo + `' ORDER BY r.owner, r.name, r.id`)

// cappedRow is a repository with its limit.
type cappedRow struct {
	ID, Name                string
	Micros, Spent, Reserved int64
}

// addDayArgs are the parameters of addDay.
type addDayArgs struct {
	AccountID                         string
	Day                               int64
	SessionID, KeyID, Provider, Model string
	Calls, Unpriced, CostMicros       int64
}

const daySeconds = 24 * 60 * 60

// dayOf is the day of a time, counted from 1970.
func dayOf(t time.Time) int64 { return t.Unix() / daySeconds }

// dateOf is a day as people write it.
func dateOf(day int64) string { return time.Unix(day*daySeconds, 0).UTC().Format(time.DateOnly) }
