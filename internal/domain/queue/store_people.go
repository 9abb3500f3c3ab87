package queue

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// unfinished is the condition of the index tasks_unfinished, word by word.
const unfinished = `status IN ('pending', 'held', 'claimed', 'running', 'awaiting_ci', 'awaiting_review', 'mergeable')`

var (
	waitingCrews = db.Q[crew](`SELECT DISTINCT repo_id, template, NULL AS requested_by, FALSE AS by_person FROM tasks
		WHERE account_id = $1 AND ` + task.IsWaiting)
	crewsByPerson = db.Q[crew](`SELECT DISTINCT repo_id, template, requested_by, TRUE AS by_person FROM tasks
		WHERE account_id = $1 AND status = 'pending'`)
)

// countTasks begins a query that counts tasks of an account.
func countTasks(account string) *db.Builder {
	return db.Build(`SELECT COUNT(*) FROM tasks WHERE account_id = `, account)
}

// whoWait are the tasks of an account that have waited for a person since before a time.
type whoWait struct {
	account   string
	before    time.Time
	crews     []crew     // whose pending tasks do
	obstacles []obstacle // whose followers do
	parked    []string   // tasks whose runs do; nil: tasks that are marked as stuck count instead
}

// narrow appends the condition to a query that already has a WHERE.
func (w whoWait) narrow(b *db.Builder) {
	b.And(unfinished + ` AND (`)
	if w.parked == nil {
		b.SQL(`stuck`)
	} else {
		b.SQL(`status = 'running'`).In("id", w.parked)
	}
	b.SQL(` OR status = 'held' AND updated_at < `, w.before)
	b.SQL(` OR status IN ('awaiting_ci', 'awaiting_review', 'mergeable') AND pr_id IN (SELECT p.id FROM pulls p WHERE p.account_id = `, w.account).
		SQL(` AND p.state = 'open' AND p.needs <> '' AND COALESCE(p.needs_at, 0) < `, w.before).SQL(`)`)
	b.SQL(` OR status = 'pending' AND queued_at < `, w.before).SQL(` AND (FALSE`)
	for i := 0; i < len(w.crews); {
		c, n := w.crews[i], i+1
		for !c.ByPerson && n < len(w.crews) && w.crews[n].Template == c.Template {
			n++
		}
		b.SQL(` OR template = `, c.Template)
		repos := make([]string, 0, n-i)
		for ; i < n; i++ {
			repos = append(repos, w.crews[i].RepoID)
		}
		b.In("repo_id", repos)
		switch {
		case c.ByPerson && c.RequestedBy == nil:
			b.SQL(` AND requested_by IS NULL`)
		case c.ByPerson:
			b.And("requested_by = ", *c.RequestedBy)
		}
	}
	if len(w.obstacles) > 0 {
		b.SQL(` OR id IN (`)
		addFollowers(b, w.account, w.obstacles).SQL(`SELECT id FROM behind)`)
	}
	b.SQL(`))`)
}
