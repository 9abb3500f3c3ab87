package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"yardmaster/internal/client"
	"yardmaster/internal/proof/chaos"
)

// verify ends a scenario: it checks the API, stops everything, and checks the stored
// data. Tasks must have ended before.
func (st *stack) verify() {
	st.t.Helper()
	st.verifyAPI()
	st.stop()
	r := st.open("server/yardmaster.db")
	r.Found = func(f chaos.Fault, what string) { st.t.Errorf("%s: %s", f, what) }
	if err := r.Verify(context.WithoutCancel(st.ctx)); err != nil {
		st.t.Error(err)
	}
}

// open opens a database of a stopped server, for reading.
func (st *stack) open(name string) chaos.Record {
	st.t.Helper()
	d, err := sql.Open("sqlite", "file:"+st.path(name)+"?mode=ro")
	if err != nil {
		st.t.Fatal(err)
	}
	st.t.Cleanup(func() { d.Close() })
	return chaos.Record{DB: d, Repo: st.bare()}
}

// stop stops all processes.
func (st *stack) stop() {
	st.t.Helper()
	for _, b := range st.boxes {
		b.stop()
	}
	st.server.stop()
}

// idle tells whether every task has ended.
func (st *stack) idle() bool {
	st.t.Helper()
	var p struct{ Data []client.Task }
	st.call(http.MethodGet, "/v1/tasks?per_page=200", nil, &p)
	return !slices.ContainsFunc(p.Data, func(t client.Task) bool { return !t.Ended() })
}

// verifyAPI checks every task, try and event that the API shows.
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

// Each check of verify notices a violation.
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
		`UPDATE audit SET seq = (SELECT MAX(seq) + 1 FROM audit) WHERE kind = 'run.ended'
			AND object = (SELECT id FROM runs WHERE attempt = 1)`,
		`UPDATE runs SET ended_at = NULL WHERE attempt = 2`,
		`UPDATE runs SET attempt = 3 WHERE attempt = 2`,
		`UPDATE runs SET outcome = 'succeeded'`,
		`UPDATE run_tokens SET revoked_at = NULL`,
		`UPDATE sessions SET ended_at = NULL`,
		`UPDATE tasks SET status = 'pending'`,
		`UPDATE tasks SET pr_id = NULL`,
		`UPDATE tasks SET status = 'failed'`,
		`CREATE TEMP TABLE twin AS SELECT * FROM pulls; UPDATE twin SET id = id || 'x', number = number + 1; INSERT INTO pulls SELECT *
			FROM twin`,
		`UPDATE pulls SET merge_sha = head_sha`,
		`DELETE FROM audit WHERE kind = 'task.claimed'`,
		`DELETE FROM audit WHERE kind = 'run.ended'`,
		`DELETE FROM audit WHERE seq = 2`,
		`UPDATE audit SET data = '{"status":"failed"}' WHERE kind = 'task.merged'`,
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
		r := st.open(copied)
		r.Found = func(chaos.Fault, string) { noticed++ }
		if err := r.Verify(st.ctx); err != nil {
			t.Errorf("%s: %v", harm, err)
		}
		if noticed == 0 {
			t.Errorf("nothing was noticed of: %s", harm)
		}
	}
}
