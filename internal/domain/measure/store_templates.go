package measure

import "yardmaster/internal/db"

// mostByTemplate is how many runs ByTemplate counts.
const mostByTemplate = 20_000

// TemplateRate is how often the runs of a template did what they were to do, and what they cost.
type TemplateRate struct {
	Template string
	N, D     int64  // succeeded, of those that ended by themselves
	Micros   *int64 // what those of them cost that have a price; nil: none has
	Priced   int64  // how many have one
}

// templateArgs are repoArgs with the most runs.
type templateArgs struct {
	repoArgs
	Most int
}

var byTemplate = db.QWith[templateArgs, TemplateRate](`SELECT template, CAST(SUM(n) AS BIGINT) AS n, COUNT(*) AS d,
	CAST(SUM(micros) AS BIGINT) AS micros, COUNT(micros) AS priced FROM (
		SELECT t.template, CASE WHEN w.outcome = 'succeeded' THEN 1 ELSE 0 END AS n,
			(SELECT SUM(s.cost_micros) FROM sessions s WHERE s.run_id = w.id AND s.account_id = :account_id) AS micros
		FROM (SELECT id, task_id, outcome, ended_at FROM runs WHERE account_id = :account_id AND ` + runEnded + ` AND ` + byItself + `
			AND (:repo_id = '' OR repo_id = :repo_id)) AS w
		JOIN tasks t ON t.id = w.task_id WHERE t.kind = 'work' ORDER BY w.ended_at DESC, w.id LIMIT :most) AS x
	GROUP BY template ORDER BY d DESC, template`)

// ByTemplate counts the runs of work of tx.Account that ended by themselves in a span, of one
// repository or of all (""), by template, the most used first; the newest 20,000.
func ByTemplate(tx *db.Tx, s Span, repoID string) ([]TemplateRate, error) {
	return byTemplate.All(tx, templateArgs{repoArgs{of(tx.Account, s), repoID}, mostByTemplate})
}
