package budget

import (
	"time"

	"yardmaster/internal/db"
)

// The ledger of days: what calls cost by the session, or the gift, that they count for, the key
// that they went over, and the provider and the model that answered.
var (
	addDay = db.SWith[addDayArgs](`INSERT INTO spend_days (account_id, day, session_id, key_id, provider, model, calls, unpriced, cost_micros,
		given_micros)
		VALUES (:account_id, :day, :session_id, :key_id, :provider, :model, :calls, :unpriced, :cost_micros, :given_micros)
		ON CONFLICT (account_id, day, session_id, key_id, provider, model) DO UPDATE SET calls = spend_days.calls + EXCLUDED.calls,
		unpriced = spend_days.unpriced + EXCLUDED.unpriced, cost_micros = spend_days.cost_micros + EXCLUDED.cost_micros,
		given_micros = spend_days.given_micros + EXCLUDED.given_micros`)
	dropDays = db.S(`DELETE FROM spend_days WHERE account_id IN (SELECT id FROM accounts) AND day < $1`)

	callsByDay = db.Q[dayRow](`SELECT day, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(unpriced) AS BIGINT) AS unpriced,
		CAST(SUM(cost_micros) AS BIGINT) AS spent, CAST(SUM(given_micros) AS BIGINT) AS given, COUNT(DISTINCT session_id) AS sessions
		FROM spend_days WHERE account_id = $1 AND day >= $2 AND day < $3 GROUP BY day ORDER BY day`)
	// spentByDay is callsByDay with the cost alone.
	spentByDay = db.Q[dayCost](`SELECT day, CAST(SUM(cost_micros) AS BIGINT) AS spent FROM spend_days
		WHERE account_id = $1 AND day >= $2 AND day < $3 GROUP BY day ORDER BY day`)
	firstDay = db.Q[*int64](`SELECT MIN(day) FROM spend_days WHERE account_id = $1`)

	// ledger is read as it is stored and added up by who asks: each sum in the database would read
	// the month, and its sessions, once more.
	ledger = db.Q[ledgerRow](`SELECT d.day, d.session_id, d.key_id, d.provider, d.model, d.calls, d.unpriced, d.cost_micros AS spent,
		d.given_micros AS given, s.repo_id, s.kind, s.task_id, t.plan_id FROM spend_days d
		LEFT JOIN sessions s ON s.id = d.session_id LEFT JOIN tasks t ON t.id = s.task_id
		WHERE d.account_id = $1 AND d.day >= $2 AND d.day < $3`)
	giftNames = db.Q[titled](`SELECT g.id, COALESCE(r.owner || '/' || r.name, '` + toPool + `') AS name FROM donations g
		LEFT JOIN repos r ON r.id = g.repo_id WHERE g.account_id = $1`)
)

const (
	partSums = `, CAST(SUM(d.calls) AS BIGINT) AS calls, CAST(SUM(d.unpriced) AS BIGINT) AS unpriced,
	CAST(SUM(d.cost_micros) AS BIGINT) AS spent, CAST(SUM(d.given_micros) AS BIGINT) AS given, COUNT(DISTINCT d.session_id) AS sessions FROM spend_days d `
	within = ` WHERE d.account_id = $1 AND d.day >= $2 AND d.day < $3 GROUP BY `
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

	// ownKeys, theirs and toPool are names of parts that have none of their own.
	ownKeys = "keys of members"
	theirs  = "given by others"
	toPool  = "pool"
)

// parts are the ways in which the ledger is added up for each day.
var parts = map[string]db.Query[partRow]{
	"model":  db.Q[partRow](`SELECT d.day, ` + byModel + `, d.day` + daily),
	"repo":   db.Q[partRow](`SELECT d.day, ` + byRepo + `, d.day` + daily),
	"kind":   db.Q[partRow](`SELECT d.day, ` + byKind + `, d.day` + daily),
	"member": db.Q[partRow](`SELECT d.day, ` + byMember + `, d.day` + daily),
	"task":   db.Q[partRow](`SELECT d.day, ` + byTask + `, d.day` + daily),
	"plan":   db.Q[partRow](`SELECT d.day, ` + byPlan + `, d.day` + daily),
	"key":    db.Q[partRow](`SELECT d.day, ` + byKey + `, d.day` + daily),
	"gift":   db.Q[partRow](`SELECT d.day, ` + byGift + `, d.day` + daily),
}

// titled is an object's id, and what it is called.
type titled struct{ ID, Name string }

// titles reads what objects of a kind of tx.Account are called, by their ids.
func titles(tx *db.Tx, kind string, ids []string) (map[string]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var b *db.Builder
	switch kind {
	case "repo":
		b = db.Build(`SELECT id, owner || '/' || name AS name FROM repos WHERE account_id = `, tx.Account)
	case "task":
		b = db.Build(`SELECT id, title AS name FROM tasks WHERE account_id = `, tx.Account)
	default:
		b = db.Build(`SELECT id, title AS name FROM plans WHERE account_id = `, tx.Account)
	}
	rows, err := db.Select[titled](tx, b.In("id", ids))
	out := make(map[string]string, len(rows))
	for _, r := range rows {
		out[r.ID] = r.Name
	}
	return out, err
}

// dayRow is the calls of one day.
type dayRow struct{ Day, Calls, Unpriced, Spent, Given, Sessions int64 }

// dayCost is what the calls of one day cost.
type dayCost struct{ Day, Spent int64 }

// partRow is the calls of one part, of a month or of a day of it.
type partRow struct {
	Day                                     int64
	ID, Name                                *string
	Calls, Unpriced, Spent, Given, Sessions int64
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
	GivenMicros                       int64 // that another account has paid
}

const daySeconds = 24 * 60 * 60

// dayOf is the day of a time, counted from 1970.
func dayOf(t time.Time) int64 { return t.Unix() / daySeconds }

// dateOf is a day as people write it.
func dateOf(day int64) string { return time.Unix(day*daySeconds, 0).UTC().Format(time.DateOnly) }
