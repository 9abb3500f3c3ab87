package chaos

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// Fault is a class of violations.
type Fault string

// The classes of violations in a ledger.
const (
	TaskLost      Fault = "tasks lost"            // filed, and neither stored nor ended
	TaskDoubled   Fault = "tasks doubled"         // filed once, stored more often
	RunDoubled    Fault = "runs doubled"          // two at a time, or both counted
	PullDoubled   Fault = "pull requests doubled" // of one task, or merged twice
	Gap           Fault = "sequence gaps"         // or repetitions
	SecretLeaked  Fault = "secrets leaked"
	Contradiction Fault = "contradictions"    // between two places that store the same fact
	Crash         Fault = "processes crashed" // without a signal
)

// Faults are all classes, in the order of the ledger.
var Faults = []Fault{TaskLost, TaskDoubled, RunDoubled, PullDoubled, Gap, SecretLeaked, Contradiction, Crash}

// Record is the data of a stopped server. Its database is read in SQL that both
// engines understand.
type Record struct {
	DB   *sql.DB
	Repo string // the bare repository of the tasks
	// Found is called with each violation.
	Found func(f Fault, what string)
}

// Verify looks for violations. All tasks must have ended before. It fails if the
// record cannot be read.
func (r Record) Verify(ctx context.Context) error {
	return errors.Join(r.tasks(ctx), r.runs(ctx), r.events(ctx), r.pulls(ctx), r.trail(ctx))
}

func (r Record) rows(ctx context.Context, query string, args ...any) (out [][]any, err error) {
	rows, err := r.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// rule is a query of which every row is a violation.
type rule struct {
	fault Fault
	said  string
	query string
}

func (r Record) none(ctx context.Context, rules ...rule) error {
	for _, rule := range rules {
		rows, err := r.rows(ctx, rule.query)
		if err != nil {
			return err
		}
		for _, row := range rows {
			r.Found(rule.fault, fmt.Sprintf("%s: %v", rule.said, row))
		}
	}
	return nil
}

func (r Record) tasks(ctx context.Context) error {
	return r.none(ctx,
		rule{TaskLost, "a task is neither done nor failed nor cancelled",
			`SELECT id, status FROM tasks WHERE status NOT IN ('completed', 'merged', 'failed', 'cancelled')`},
		rule{TaskLost, "a merged task has no merged pull request of its own", `SELECT t.id FROM tasks t
			LEFT JOIN pulls p ON p.id = t.pr_id AND p.task_id = t.id AND p.state = 'merged' WHERE t.status = 'merged' AND p.id IS NULL`},
		rule{RunDoubled, "a task that was done has other than one try that succeeded", `SELECT t.id, COUNT(r.id) FROM tasks t
			LEFT JOIN runs r ON r.task_id = t.id AND r.outcome = 'succeeded' WHERE t.status IN ('merged', 'completed')
			GROUP BY t.id HAVING COUNT(r.id) <> 1`},
	)
}

// runs checks that no two boxes ever held one task at a time.
func (r Record) runs(ctx context.Context) error {
	err := r.none(ctx,
		rule{TaskLost, "a run has not ended", `SELECT id, state FROM runs WHERE ended_at IS NULL OR state <> 'ended' OR outcome IS NULL`},
		rule{Contradiction, "a token outlived its run",
			`SELECT k.run_id, k.kind FROM run_tokens k JOIN runs r ON r.id = k.run_id WHERE k.revoked_at IS NULL`},
		rule{Contradiction, "a run has other than one session, or one that goes on",
			`SELECT r.id FROM runs r LEFT JOIN sessions s ON s.run_id = r.id
			GROUP BY r.id HAVING COUNT(s.id) <> 1 OR COUNT(s.ended_at) <> 1`},
	)
	if err != nil {
		return err
	}
	rows, err := r.rows(ctx, `SELECT task_id, attempt, id FROM runs`)
	if err != nil {
		return err
	}
	t, err := r.told(ctx)
	slices.SortFunc(rows, func(a, b []any) int {
		return cmp.Or(cmp.Compare(fmt.Sprint(a[0]), fmt.Sprint(b[0])), cmp.Compare(t.began[fmt.Sprint(a[2])], t.began[fmt.Sprint(b[2])]))
	})
	var task string
	var attempt, before, free int64
	for _, row := range rows {
		run := fmt.Sprint(row[2])
		if of := fmt.Sprint(row[0]); of != task {
			task, attempt, before, free = of, 0, 0, 0
		}
		n, _ := row[1].(int64)
		// A task that a person redispatches has all its tries again.
		if slices.ContainsFunc(t.afresh[task], func(at int64) bool { return before < at && at < t.began[run] }) {
			attempt = 0
		}
		if n != attempt+1 {
			r.Found(Gap, fmt.Sprintf("attempt %d of task %s is followed by %d", attempt, task, n))
		}
		if t.began[run] <= free {
			r.Found(RunDoubled, fmt.Sprintf("run %s began before the one before it had ended", run))
		}
		attempt, before, free = n, t.began[run], t.ended[run]
	}
	return err
}

// told has the positions in the audit trail at which things happened. Positions are
// ordered, which times are not if clocks are set.
type told struct {
	began, ended map[string]int64   // runs
	afresh       map[string][]int64 // tasks, that got all their tries again
}

func (r Record) told(ctx context.Context) (told, error) {
	t := told{map[string]int64{}, map[string]int64{}, map[string][]int64{}}
	rows, err := r.rows(ctx, `SELECT kind, object, data, seq FROM audit
		WHERE kind IN ('task.claimed', 'run.ended', 'task.redispatched', 'task.released')`)
	for _, row := range rows {
		object := fmt.Sprint(row[1])
		place, _ := row[3].(int64)
		switch row[0] {
		case "run.ended":
			t.ended[object] = place
		case "task.claimed":
			var claimed struct {
				RunID string `json:"run_id"`
			}
			if err := json.Unmarshal(fmt.Append(nil, row[2]), &claimed); err != nil {
				return t, fmt.Errorf("an audit row of task %s: %w", object, err)
			}
			t.began[claimed.RunID] = place
		default:
			t.afresh[object] = append(t.afresh[object], place)
		}
	}
	return t, err
}

// events checks that no event of a run is missing, and that unique events are unique.
func (r Record) events(ctx context.Context) error {
	return r.none(ctx,
		rule{Gap, "the events of a run are not 1 to n",
			`SELECT r.id, r.committed_seq, COUNT(e.seq), MIN(e.seq), MAX(e.seq) FROM runs r LEFT JOIN run_events e ON e.run_id = r.id
			GROUP BY r.id, r.committed_seq HAVING COUNT(e.seq) <> r.committed_seq OR r.committed_seq > 0
			AND (MIN(e.seq) <> 1 OR MAX(e.seq) <> r.committed_seq)`},
		rule{Gap, "an event is of another attempt or of no run",
			`SELECT e.run_id, e.seq FROM run_events e LEFT JOIN runs r ON r.id = e.run_id AND r.attempt = e.attempt WHERE r.id IS NULL`},
		rule{Gap, "an event is there twice", `SELECT run_id, kind, COUNT(*) FROM run_events
			WHERE kind IN ('run.accepted', 'preparing', 'prepared', 'started', 'run.finished') GROUP BY run_id, kind HAVING COUNT(*) > 1`},
		rule{Gap, "an event follows the last",
			`SELECT r.id FROM runs r JOIN run_events e ON e.run_id = r.id AND e.kind = 'run.finished' WHERE e.seq <> r.committed_seq`},
		rule{Contradiction, "a run succeeded without its box's word",
			`SELECT r.id FROM runs r LEFT JOIN run_events e ON e.run_id = r.id AND e.kind = 'run.finished'
			WHERE r.outcome = 'succeeded' AND e.seq IS NULL`},
	)
}

func (r Record) pulls(ctx context.Context) error {
	err := r.none(ctx,
		rule{PullDoubled, "a task has several pull requests",
			`SELECT task_id, COUNT(*) FROM pulls WHERE task_id IS NOT NULL GROUP BY task_id HAVING COUNT(*) > 1`},
		rule{Contradiction, "a pull request was merged, and its task is not",
			`SELECT p.id, t.id, t.status FROM pulls p JOIN tasks t ON t.id = p.task_id
				WHERE p.state = 'merged' AND t.status NOT IN ('merged', 'cancelled')`},
	)
	if err != nil {
		return err
	}
	merged, err := r.rows(ctx, `SELECT merge_sha FROM pulls WHERE state = 'merged'`)
	if err != nil {
		return err
	}
	merges, err := r.git(ctx, "rev-list", "--first-parent", "--min-parents=2", "main")
	if err != nil {
		return err
	}
	if len(merged) != len(merges) {
		r.Found(PullDoubled, fmt.Sprintf("%d pull requests were merged, by %d commits", len(merged), len(merges)))
	}
	for _, row := range merged {
		if sha := fmt.Sprint(row[0]); !slices.Contains(merges, sha) {
			r.Found(TaskLost, fmt.Sprintf("the merge %s is not on the main branch", sha))
		}
	}
	return nil
}

// git answers the words that git prints about the repository.
func (r Record) git(ctx context.Context, args ...string) ([]string, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"--git-dir", r.Repo}, args...)...)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	return strings.Fields(string(out)), nil
}

// trail compares the audit trail with the rows that it describes. A task fails once,
// and once more for every time that it was revived.
func (r Record) trail(ctx context.Context) error {
	once := `SELECT o.id, COUNT(a.id) FROM %s o LEFT JOIN audit a ON a.object = o.id AND a.kind = '%s' WHERE %s
		GROUP BY o.id HAVING COUNT(a.id) <> 1`
	var rules []rule
	for _, c := range []struct{ table, kind, where string }{
		{"tasks", "task.created", "TRUE"},
		{"tasks", "task.merged", "o.status = 'merged'"},
		{"tasks", "task.cancelled", "o.status = 'cancelled'"},
		{"tasks", "task.awaiting_ci", "o.status = 'merged'"},
		{"runs", "run.ended", "TRUE"},
	} {
		rules = append(rules, rule{Contradiction, "the trail does not have " + c.kind + " once",
			fmt.Sprintf(once, c.table, c.kind, c.where)})
	}
	rules = append(rules,
		rule{Contradiction, "the trail has other than one task.failed more than the task was revived",
			`SELECT o.id FROM tasks o WHERE o.status = 'failed'
			AND (SELECT COUNT(*) FROM audit a WHERE a.object = o.id AND a.kind = 'task.failed') NOT BETWEEN 1
			AND 1 + (SELECT COUNT(*) FROM audit a WHERE a.object = o.id AND a.kind IN ('task.redispatched', 'task.released'))`},
		rule{Gap, "the trail of an account is not 1 to n",
			`SELECT account_id, COUNT(*), MIN(seq), MAX(seq) FROM audit WHERE seq > 0 GROUP BY account_id HAVING COUNT(*) <> MAX(seq)`},
		rule{Contradiction, "the trail counts other claims than there are runs", `SELECT t.id FROM tasks t
			WHERE (SELECT COUNT(*) FROM runs r WHERE r.task_id = t.id) <> (SELECT COUNT(*) FROM audit a
			WHERE a.object = t.id AND a.kind = 'task.claimed')`},
	)
	if err := r.none(ctx, rules...); err != nil {
		return err
	}
	rows, err := r.rows(ctx, `SELECT t.id, t.status, a.kind, a.data FROM tasks t JOIN audit a ON a.id =
		(SELECT id FROM audit WHERE object = t.id AND kind LIKE 'task.%' ORDER BY seq DESC LIMIT 1)`)
	for _, row := range rows {
		var last struct{ Status *string }
		if err := json.Unmarshal(fmt.Append(nil, row[3]), &last); err != nil {
			return fmt.Errorf("the audit row %v of task %v: %w", row[2], row[0], err)
		}
		if last.Status != nil && *last.Status != fmt.Sprint(row[1]) {
			r.Found(Contradiction, fmt.Sprintf("the trail's last word on a task is not its status: %v", row))
		}
	}
	return err
}
