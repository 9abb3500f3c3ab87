package measure

import (
	"math"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
)

// TemplateLane is what came of the tasks that a template, or its challenger, has got.
type TemplateLane struct {
	Template     string
	Tasks        int64
	Merged       Rate // of the tasks that ended and were not cancelled
	Reverted     Rate // of the pull requests that were merged
	Micros       *int64
	HumanMinutes int64 // between questions about merges and the answers of people
}

// Wilson is the interval in which 95 of 100 such rates have their true value (Wilson 1927); 0 and
// 1 if there was nothing.
func (r Rate) Wilson() (low, high float64) {
	if r.D == 0 {
		return 0, 1
	}
	const z = 1.959964
	n, p := float64(r.D), float64(r.N)/float64(r.D)
	middle, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max((middle-half)/(1+z*z/n), 0), min((middle+half)/(1+z*z/n), 1)
}

type (
	laneArgs    struct{ AccountID, Template string }
	laneTaskRow struct {
		TaskID, Lane, RepoID, Status string
		Ended                        bool    // and not cancelled
		PRID                         *string `db:"pr_id"`
		MergedAt                     *time.Time
	}
	answeredRow struct {
		Lane    string
		Minutes int64
	}
)

var (
	laneTasks = db.QWith[laneArgs, laneTaskRow](`SELECT l.task_id, l.lane, t.repo_id, t.status, (` + graded + `) AS ended, p.id AS pr_id, p.merged_at
		FROM template_lanes l JOIN tasks t ON t.id = l.task_id LEFT JOIN pulls p ON p.id = t.pr_id
		WHERE l.account_id = :account_id AND l.template = :template ORDER BY l.created_at DESC, l.task_id LIMIT 20000`)
	laneAnswers = db.QWith[laneArgs, answeredRow](`SELECT l.lane, CAST(SUM(a.decided_at - a.requested_at) / 60000000 AS BIGINT) AS minutes
		FROM template_lanes l JOIN pulls p ON p.task_id = l.task_id JOIN pull_actions a ON a.pr_id = p.id AND a.kind = 'merge'
		AND a.decided_by LIKE 'user:%' WHERE l.account_id = :account_id AND l.template = :template GROUP BY l.lane`)
)

// LanesOf counts what came of the tasks of tx.Account that were split between a template and
// challengers of it, by the template that they got; the newest 20,000.
func LanesOf(tx *db.Tx, template string) ([]TemplateLane, error) {
	args := laneArgs{tx.Account, template}
	rows, err := laneTasks.All(tx, args)
	if err != nil {
		return nil, err
	}
	gone, err := revertedOf(tx, rows)
	if err != nil {
		return nil, err
	}
	answers, err := laneAnswers.All(tx, args)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.TaskID)
	}
	cost := map[string]int64{}
	for part := range slices.Chunk(ids, 500) {
		some, err := SpentOn(tx, part)
		if err != nil {
			return nil, err
		}
		for id, micros := range some {
			cost[id] = micros
		}
	}
	var out []TemplateLane
	for _, r := range rows {
		at := slices.IndexFunc(out, func(l TemplateLane) bool { return l.Template == r.Lane })
		if at < 0 {
			at, out = len(out), append(out, TemplateLane{Template: r.Lane})
		}
		l := &out[at]
		l.count(r, gone)
		if micros, known := cost[r.TaskID]; known {
			if l.Micros == nil {
				l.Micros = new(int64)
			}
			*l.Micros += micros
		}
	}
	for _, a := range answers {
		if at := slices.IndexFunc(out, func(l TemplateLane) bool { return l.Template == a.Lane }); at >= 0 {
			out[at].HumanMinutes = a.Minutes
		}
	}
	slices.SortFunc(out, func(a, b TemplateLane) int { return strings.Compare(a.Template, b.Template) })
	return out, nil
}

func (l *TemplateLane) count(r laneTaskRow, gone map[string]bool) {
	l.Tasks++
	if r.Ended {
		l.Merged.D++
		if r.Status == "merged" {
			l.Merged.N++
		}
	}
	if r.MergedAt != nil {
		l.Reverted.D++
		if gone[*r.PRID] {
			l.Reverted.N++
		}
	}
}

// revertedOf finds which pull requests of the repositories of tasks were reverted.
func revertedOf(tx *db.Tx, rows []laneTaskRow) (map[string]bool, error) {
	out, first := map[string]bool{}, map[string]time.Time{}
	for _, r := range rows {
		if at, known := first[r.RepoID]; r.MergedAt != nil && (!known || r.MergedAt.Before(at)) {
			first[r.RepoID] = *r.MergedAt
		}
	}
	for repoID, from := range first {
		args := repoArgs{of(tx.Account, Since(from)), repoID}
		all, err := selectAuthored.All(tx, args)
		if err != nil {
			return nil, err
		}
		reverts, err := selectReverts.All(tx, revertArgs{args, mostReverts})
		if err != nil {
			return nil, err
		}
		for id := range goneOf(all, reverts) {
			out[id] = true
		}
	}
	return out, nil
}
