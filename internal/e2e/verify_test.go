package e2e

import (
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"yardmaster/internal/client"
)

// verify ends a scenario: it checks what the API says, stops everything, and
// checks what is stored. Tasks must have ended by then.
func (st *stack) verify() {
	st.t.Helper()
	st.verifyAPI()
	st.stop()
	s := st.open("server/yardmaster.db")
	s.wrong = st.t.Errorf
	s.verify()
}

// open opens a database of a stopped server, for reading.
func (st *stack) open(name string) store {
	st.t.Helper()
	d, err := sql.Open("sqlite", "file:"+st.path(name)+"?mode=ro")
	if err != nil {
		st.t.Fatal(err)
	}
	st.t.Cleanup(func() { d.Close() })
	return store{stack: st, db: d}
}

func (s store) verify() {
	s.tasks()
	s.runs()
	s.eventsOfRuns()
	s.pulls()
	s.audit()
}

// stop ends all processes the gentle way.
func (st *stack) stop() {
	st.t.Helper()
	for _, b := range st.boxes {
		b.stop()
	}
	st.server.stop()
}

// verifyAPI walks every task, try and event that the API shows.
func (st *stack) verifyAPI() {
	st.t.Helper()
	var p struct{ Data []client.Task }
	st.call(http.MethodGet, "/v1/tasks?per_page=200", nil, &p)
	if len(p.Data) == 0 {
		st.t.Error("there are no tasks")
	}
	var merged []string
	for _, t := range p.Data {
		if !t.Ended() {
			st.t.Errorf("task %s is left %s", t.ID, t.Status)
		}
		if t.Status == "merged" {
			merged = append(merged, "done-"+t.Branch[strings.LastIndexByte(t.Branch, '/')+1:])
		}
		for _, r := range st.tries(t.ID) {
			events := st.events(r)
			for i, e := range events {
				if e.Seq != int64(i+1) {
					st.t.Errorf("event %d of run %s has the number %d", i+1, r.ID, e.Seq)
					break
				}
			}
			if int64(len(events)) != r.LastSeq {
				st.t.Errorf("run %s shows %d events of %d", r.ID, len(events), r.LastSeq)
			}
		}
	}
	slices.Sort(merged)
	if got := st.delivered(); !slices.Equal(got, merged) {
		st.t.Errorf("the main branch has %v, merged were %v", got, merged)
	}
}

// store is the database of a stopped server.
type store struct {
	*stack
	db    *sql.DB
	wrong func(format string, args ...any) // hears of each violation
}

// none reports every row of a query as a violation of what is said.
func (s store) none(violated, query string, args ...any) {
	s.t.Helper()
	for _, row := range s.rows(query, args...) {
		s.wrong("%s: %v", violated, row)
	}
}

func (s store) rows(query string, args ...any) (out [][]any) {
	s.t.Helper()
	rows, err := s.db.Query(query, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		s.t.Fatal(err)
	}
	for rows.Next() {
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s store) tasks() {
	s.none("a task is neither done nor failed nor cancelled",
		`SELECT id, status FROM tasks WHERE status NOT IN ('completed', 'merged', 'failed', 'cancelled')`)
	s.none("a merged task has no merged pull request of its own", `SELECT t.id FROM tasks t
		LEFT JOIN pulls p ON p.id = t.pr_id AND p.task_id = t.id AND p.state = 'merged' WHERE t.status = 'merged' AND p.id IS NULL`)
	s.none("a task that was done has other than one try that succeeded", `SELECT t.id, COUNT(r.id) FROM tasks t
		LEFT JOIN runs r ON r.task_id = t.id AND r.outcome = 'succeeded' WHERE t.status IN ('merged', 'completed') GROUP BY t.id HAVING COUNT(r.id) <> 1`)
}

// runs checks that at no time two boxes held one task.
func (s store) runs() {
	s.none("a run has not ended", `SELECT id, state FROM runs WHERE ended_at IS NULL OR state <> 'ended' OR outcome IS NULL`)
	s.none("a token outlived its run", `SELECT k.run_id, k.kind FROM run_tokens k JOIN runs r ON r.id = k.run_id WHERE k.revoked_at IS NULL OR k.revoked_at > r.ended_at`)
	s.none("a run has other than one session, or one that goes on", `SELECT r.id FROM runs r LEFT JOIN sessions s ON s.run_id = r.id
		GROUP BY r.id HAVING COUNT(s.id) <> 1 OR COUNT(s.ended_at) <> 1`)
	var task any
	var attempt, ended int64
	for _, row := range s.rows(`SELECT task_id, attempt, created_at, ended_at, id FROM runs ORDER BY task_id, created_at, attempt`) {
		began := row[2].(int64)
		if row[0] != task {
			task, attempt, ended = row[0], 0, 0
		}
		if n := row[1].(int64); n != attempt+1 {
			s.wrong("attempt %d of task %v is followed by %d", attempt, task, n)
		}
		if began < ended {
			s.wrong("run %v began %s before the one before it had ended", row[4], time.Duration(ended-began)*time.Microsecond)
		}
		attempt = row[1].(int64)
		ended, _ = row[3].(int64)
	}
}

// eventsOfRuns checks that no event is missing, and what can only happen once.
func (s store) eventsOfRuns() {
	s.none("the events of a run are not 1 to n", `SELECT r.id, r.committed_seq, COUNT(e.seq), MIN(e.seq), MAX(e.seq) FROM runs r LEFT JOIN run_events e ON e.run_id = r.id
		GROUP BY r.id HAVING COUNT(e.seq) <> r.committed_seq OR r.committed_seq > 0 AND (MIN(e.seq) <> 1 OR MAX(e.seq) <> r.committed_seq)`)
	s.none("an event is of another attempt or of no run", `SELECT e.run_id, e.seq FROM run_events e LEFT JOIN runs r ON r.id = e.run_id AND r.attempt = e.attempt WHERE r.id IS NULL`)
	s.none("an event is there twice", `SELECT run_id, kind, COUNT(*) FROM run_events
		WHERE kind IN ('run.accepted', 'preparing', 'prepared', 'started', 'run.finished') GROUP BY run_id, kind HAVING COUNT(*) > 1`)
	s.none("an event follows the last", `SELECT r.id FROM runs r JOIN run_events e ON e.run_id = r.id AND e.kind = 'run.finished' WHERE e.seq <> r.committed_seq`)
	s.none("a run succeeded without its box's word", `SELECT r.id FROM runs r LEFT JOIN run_events e ON e.run_id = r.id AND e.kind = 'run.finished'
		WHERE r.outcome = 'succeeded' AND e.seq IS NULL`)
}

func (s store) pulls() {
	s.none("a task has several pull requests", `SELECT task_id, COUNT(*) FROM pulls GROUP BY task_id HAVING COUNT(*) > 1`)
	merged := s.rows(`SELECT merge_sha FROM pulls WHERE state = 'merged'`)
	merges := strings.Fields(s.git(s.bare(), "rev-list", "--first-parent", "--min-parents=2", "main"))
	if len(merged) != len(merges) {
		s.wrong("%d pull requests were merged, by %d commits", len(merged), len(merges))
	}
	for _, row := range merged {
		if sha := fmt.Sprint(row[0]); !slices.Contains(merges, sha) {
			s.wrong("the merge %s is not on the main branch", sha)
		}
	}
}

// audit checks the trail against the rows it tells of.
func (s store) audit() {
	once := `SELECT o.id, COUNT(a.id) FROM %s o LEFT JOIN audit a ON a.object = o.id AND a.kind = '%s' WHERE %s GROUP BY o.id HAVING COUNT(a.id) <> 1`
	for _, c := range []struct{ table, kind, where string }{
		{"tasks", "task.created", "TRUE"},
		{"tasks", "task.merged", "o.status = 'merged'"},
		{"tasks", "task.awaiting_ci", "o.status = 'merged'"},
		{"tasks", "task.failed", "o.status = 'failed'"},
		{"runs", "run.ended", "TRUE"},
	} {
		s.none("the trail does not have "+c.kind+" once", fmt.Sprintf(once, c.table, c.kind, c.where))
	}
	s.none("the trail counts other claims than there are runs", `SELECT t.id FROM tasks t
		WHERE (SELECT COUNT(*) FROM runs r WHERE r.task_id = t.id) <> (SELECT COUNT(*) FROM audit a WHERE a.object = t.id AND a.kind = 'task.claimed')`)
	s.none("the trail's last word on a task is not its status", `SELECT t.id, t.status, a.kind, a.data FROM tasks t JOIN audit a ON a.id =
		(SELECT id FROM audit WHERE object = t.id AND kind LIKE 'task.%' ORDER BY at DESC, id DESC LIMIT 1)
		WHERE json_extract(a.data, '$.status') <> t.status`)
}

// The checks above would notice.
func TestVerifyNoticesWhatIsWrong(t *testing.T) {
	st := newStack(t)
	st.script("work", `[ ! -e half ] || { rm half; `+deliver+`; exit; }; echo half >half; `+work)
	b := st.join("box")
	id := st.file("work", "Be done in two tries")
	r := st.live(id, 1)
	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 5 })
	b.kill()
	b.run()
	st.merges(id)
	st.verify()

	for _, harm := range []string{
		`DELETE FROM run_events WHERE kind = 'preparing'`,
		`DELETE FROM run_events WHERE seq = 1`,
		`INSERT INTO run_events SELECT run_id, seq + 1000, attempt, t, mono, kind, data FROM run_events WHERE kind = 'started'`,
		`UPDATE run_events SET attempt = attempt + 1 WHERE kind = 'started'`,
		`UPDATE runs SET ended_at = created_at + 60000000 WHERE attempt = 1`,
		`UPDATE runs SET ended_at = NULL WHERE attempt = 2`,
		`UPDATE runs SET attempt = 3 WHERE attempt = 2`,
		`UPDATE runs SET outcome = 'succeeded'`,
		`UPDATE run_tokens SET revoked_at = NULL`,
		`UPDATE sessions SET ended_at = NULL`,
		`UPDATE tasks SET status = 'pending'`,
		`UPDATE tasks SET pr_id = NULL`,
		`UPDATE tasks SET status = 'failed'`,
		`CREATE TEMP TABLE twin AS SELECT * FROM pulls; UPDATE twin SET id = id || 'x', number = number + 1; INSERT INTO pulls SELECT * FROM twin`,
		`UPDATE pulls SET merge_sha = head_sha`,
		`DELETE FROM audit WHERE kind = 'task.claimed'`,
		`DELETE FROM audit WHERE kind = 'run.ended'`,
		`UPDATE audit SET kind = 'task.merged' WHERE kind = 'task.awaiting_ci'`,
	} {
		copied := fmt.Sprintf("harmed%d.db", stacks.Add(1))
		d, err := sql.Open("sqlite", "file:"+st.path("server/yardmaster.db"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Exec(`VACUUM INTO ?`, st.path(copied))
		d.Close()
		if err != nil {
			t.Fatal(err)
		}
		if d, err = sql.Open("sqlite", "file:"+st.path(copied)); err == nil {
			_, err = d.Exec(harm)
			d.Close()
		}
		if err != nil {
			t.Fatalf("%s: %v", harm, err)
		}
		noticed := 0
		s := st.open(copied)
		s.wrong = func(string, ...any) { noticed++ }
		s.verify()
		if noticed == 0 {
			t.Errorf("nothing was noticed of: %s", harm)
		}
	}
}
