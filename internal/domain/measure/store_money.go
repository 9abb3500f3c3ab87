package measure

import (
	"slices"
	"time"

	"yardmaster/internal/db"
)

// Money is what calls of models cost, estimated.
type Money struct {
	Micros   *int64 // micro-dollars of calls that have a price; nil: none has
	Sessions int64  // that called a model
	Calls    int64
	Unpriced int64 // calls without a known price
	Partly   int64 // sessions with such calls
}

// RepoMoney is the cost of a repository, owner/name; empty for what belongs to none.
type RepoMoney struct {
	Repo   string
	Micros *int64
}

// Sessions are sessions that began in a span, with what they have cost since.
type Sessions struct {
	Count  int64
	Micros *int64
}

type (
	// round is a task that reviews or repairs the pull request of the task Served.
	round     struct{ ID, Served string }
	taskSpent struct {
		TaskID string
		Micros int64
	}
)

var (
	money = db.QWith[spanArgs, Money](`SELECT CAST(SUM(cost_micros) AS BIGINT) AS micros, COUNT(DISTINCT session_id) AS sessions,
		CAST(COALESCE(SUM(calls), 0) AS BIGINT) AS calls, CAST(COALESCE(SUM(unpriced), 0) AS BIGINT) AS unpriced,
		COUNT(DISTINCT CASE WHEN unpriced > 0 THEN session_id END) AS partly
		FROM spend_minutes WHERE account_id = :account_id AND ` + spent)
	moneyByRepo = db.QWith[spanArgs, RepoMoney](`SELECT COALESCE(r.owner || '/' || r.name, '') AS repo, CAST(SUM(m.cost_micros) AS BIGINT) AS micros
		FROM spend_minutes m JOIN sessions s ON s.id = m.session_id LEFT JOIN repos r ON r.id = s.repo_id
		WHERE m.account_id = :account_id AND ` + spent + ` GROUP BY r.owner, r.name`)
	sessionsOf = db.QWith[repoArgs, Sessions](`SELECT COUNT(*) AS count, CAST(SUM(cost_micros) AS BIGINT) AS micros
		FROM sessions WHERE account_id = :account_id AND repo_id = :repo_id AND started_at >= :from_at AND started_at < :to_at`)
)

// minutes is the span in whole minutes, by which money is kept.
func (s Span) minutes() Span { return Span{From: s.From.Truncate(time.Minute), To: s.To} }

// Spent is what calls of models cost tx.Account. From is that of its minute.
func Spent(tx *db.Tx, s Span) (Money, error) { return money.One(tx, of(tx.Account, s.minutes())) }

// SpentByRepo is Spent for each repository with such calls.
func SpentByRepo(tx *db.Tx, s Span) ([]RepoMoney, error) {
	return moneyByRepo.All(tx, of(tx.Account, s.minutes()))
}

// SessionsOf counts the sessions of a repository of tx.Account that began.
func SessionsOf(tx *db.Tx, repoID string, s Span) (Sessions, error) {
	return sessionsOf.One(tx, repoArgs{of(tx.Account, s), repoID})
}

// SpentOn sums the cost of the sessions of tasks of tx.Account, in micro-dollars by
// task, with the cost of the tasks that reviewed or repaired a task's pull request: what
// counts within its budget. Calls without a price are left out, and so are tasks without
// a call that has one.
func SpentOn(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	if len(taskIDs) == 0 {
		return nil, nil
	}
	rounds, err := db.Select[round](tx, db.Build(`SELECT c.id, p.task_id AS served FROM pulls p JOIN tasks c ON c.pr_id = p.id
		WHERE c.kind IN ('babysit', 'review') AND p.account_id = `, tx.Account).In("p.task_id", taskIDs))
	if err != nil {
		return nil, err
	}
	all := slices.Clone(taskIDs)
	for _, r := range rounds {
		all = append(all, r.ID)
	}
	rows, err := db.Select[taskSpent](tx, db.Build(`SELECT task_id, CAST(SUM(cost_micros) AS BIGINT) AS micros FROM sessions
		WHERE account_id = `, tx.Account).And("cost_micros IS NOT NULL").In("task_id", all).SQL(" GROUP BY task_id"))
	out := make(map[string]int64, len(rows))
	for _, r := range rows {
		out[r.TaskID] = r.Micros
	}
	for _, r := range rounds {
		if micros, ok := out[r.ID]; ok {
			out[r.Served] += micros
		}
	}
	return out, err
}
