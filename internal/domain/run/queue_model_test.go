package run

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// steps is how many random steps TestQueueUnderDisorder takes on each database.
var steps = flag.Int("steps", 500, "random steps of the model of the queue, on each database")

// stepsACase is how many of them one queue lives through.
const stepsACase = 50

var (
	anotherRepo = db.S(`INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled, created_at)
		VALUES ($1, $2, $2, $3, 'builtin', 'main', FALSE, TRUE, 0)`)
	enableRepo = db.S(`UPDATE repos SET enabled = $2 WHERE id = $1`)
	setFleet   = db.S(`UPDATE boxes SET slots = $2, presence = $3, state = $4 WHERE id = $1`)
)

// queueModel is an account with three repositories, two boxes and two nodes,
// all at odds with each other. What it believes is what it was told: by the
// moves of tasks that were committed, and by the answers of calls.
type queueModel struct {
	*model
	nodes [2]*node
	repos []string

	mu      sync.Mutex
	believe map[string]task.Status
	records map[string]int64 // what each task's audit rows have to count
	broken  error
}

type node struct {
	*Service
	db   *db.DB
	http http.Handler
}

// mergeless is a code host on which any two works of one repository conflict,
// and each commit changes the file that it is named after.
type mergeless struct{}

func (mergeless) Changes(_ context.Context, _, sha string) ([]string, error) {
	return []string{sha}, nil
}
func (mergeless) Conflicts(_ context.Context, _, a, _ string) ([]string, error) {
	return []string{a}, nil
}

// node starts a node on a database, as after a restart: it remembers nothing.
func (m *queueModel) node(d *db.DB) *node {
	f := *m.fixture
	f.serve(d)
	s := f.Service
	s.Tasks.Backoff = []time.Duration{time.Second, time.Minute}
	s.Tasks.Seats = func(*db.Tx, string) (int64, error) { return 3, nil }
	s.Tasks.Foresight = mergeless{}
	s.Tasks.HeadOf = func(*db.Tx, string) (string, error) { return "a.go", nil }
	s.OnFinished = func(tx *db.Tx, t *task.Row, r *Row, f protocol.Finished) (bool, error) {
		if f.State != protocol.Succeeded || f.Tip == "" {
			return false, nil
		}
		return true, s.Tasks.ToAwaitingCI(tx, t, "pull of "+r.ID)
	}
	byID := s.Tasks.RepoByID
	s.Tasks.RepoByID = func(tx *db.Tx, repoID string) (task.Repo, error) {
		r, err := byID(tx, repoID)
		r.Conflicts = map[string]string{m.repos[0]: task.ConflictsHold, m.repos[1]: task.ConflictsIgnore, m.repos[2]: task.ConflictsStack}[repoID]
		return r, err
	}
	s.Tasks.Moved = append(s.Tasks.Moved, func(tx *db.Tx, t *task.Row, from task.Status) error {
		taskID, to := t.ID, t.Status
		tx.AfterCommit(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			switch was, known := m.believe[taskID]; {
			case from == "" && known, from != "" && was != from:
				m.broken = fmt.Errorf("task %s was %s and moved from %s to %s", taskID, was, from, to)
			case from != "" && !task.Allowed(from, to):
				m.broken = fmt.Errorf("task %s moved from %s to %s", taskID, from, to)
			}
			m.believe[taskID] = to
			m.records[taskID]++
		})
		return nil
	})
	n := &node{Service: s, db: d}
	f.Service = s
	n.http = f.handler()
	return n
}

// on is a node to talk to.
func (m *queueModel) on() *node {
	n := rapid.SampledFrom(m.nodes[:]).Draw(m.r, "node")
	m.fixture.Service = n.Service
	return n
}

func (m *queueModel) call(n *node, method, path string, body map[string]any) (int, map[string]any) {
	w := httptest.NewRecorder()
	var in []byte
	if body != nil {
		var err error
		if in, err = json.Marshal(body); err != nil {
			m.fail("%v", err)
		}
	}
	req := httptest.NewRequest(method, path, bytes.NewReader(in))
	req.Header.Set("Content-Type", "application/json")
	n.http.ServeHTTP(w, req)
	out := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		m.fail("%s %s: %s", method, path, w.Body)
	}
	if w.Code >= 500 {
		m.fail("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Code, out
}

// file asks for a task, with dependencies on what there is.
func (m *queueModel) file(*rapid.T) {
	if len(m.tasks) >= 14 {
		m.r.Skip("enough tasks")
	}
	n := m.on()
	var deps []string
	for range rapid.IntRange(0, 2).Draw(m.r, "deps") {
		if len(m.tasks) > 0 {
			deps = append(deps, rapid.SampledFrom(m.tasks).Draw(m.r, "on"))
		}
	}
	body := map[string]any{
		"repo":  m.account + "/" + rapid.SampledFrom([]string{"web", "api", "ops"}).Draw(m.r, "repo"),
		"title": "Fix it", "problem": "It is broken.", "depends_on": deps,
		"priority": rapid.SampledFrom([]int{10, 50, 50, 100}).Draw(m.r, "priority"),
		"files":    rapid.SampledFrom([][]string{{}, {"a.go"}, {"**/*.go"}, {"docs"}}).Draw(m.r, "files"),
		"labels":   map[string]string{"n": strconv.Itoa(len(m.tasks))},
	}
	status, out := m.call(n, "POST", "/v1/tasks", body)
	switch {
	case status == 202:
		m.tasks = append(m.tasks, out["task_id"].(string))
		if at, depth := out["queue_position"].(float64), out["queue_depth"].(float64); at < 1 || at > depth {
			m.fail("filed as number %v of %v", at, depth)
		}
	case status == 400 && slices.ContainsFunc(deps, func(d string) bool { return m.believe[d] == task.Failed || m.believe[d] == task.Cancelled }):
	case status == 409:
	default:
		m.fail("filed: %d %v", status, out)
	}
}

// claimBoth has both boxes claim at the same moment, on a node each.
func (m *queueModel) claimBoth(*rapid.T) {
	var replies [2]protocol.ClaimReply
	var errs [2]error
	var claims [2]string
	var wg sync.WaitGroup
	for i := range 2 {
		claims[i] = id.New()
		wg.Go(func() {
			replies[i], errs[i] = m.nodes[i].Claim(context.Background(), m.boxes[i], protocol.Claim{ID: claims[i], Free: 1})
		})
	}
	wg.Wait()
	for i, r := range replies {
		if errs[i] != nil {
			m.fail("claim: %v", errs[i])
		}
		if r.Run != nil {
			m.attempts = append(m.attempts, &attempt{box: m.boxes[i], claim: claims[i], start: r.Run})
		} else if len(r.Reasons) == 0 {
			m.fail("a claim that gets nothing is told why")
		}
	}
}

func (m *queueModel) claimOne(*rapid.T)   { m.on(); m.model.claimOne(m.r) }
func (m *queueModel) claimAgain(*rapid.T) { m.on(); m.model.claimAgain(m.r) }
func (m *queueModel) speak(*rapid.T)      { m.on(); m.model.speak(m.r) }
func (m *queueModel) finish(*rapid.T) {
	m.on()
	if rapid.Bool().Draw(m.r, "with commits") {
		m.say(m.pick(), []protocol.Event{finished(protocol.Finished{State: protocol.Succeeded, Tip: "tip", Base: "base"})}, 0)
		return
	}
	m.model.finish(m.r)
}

func (m *queueModel) lose(*rapid.T)  { m.on(); m.model.lose(m.r) }
func (m *queueModel) hello(*rapid.T) { m.on(); m.model.hello(m.r) }

func (m *queueModel) wait(*rapid.T) {
	m.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, 20 * time.Minute}).Draw(m.r, "time"))
	if rapid.Bool().Draw(m.r, "scan") {
		if err := m.on().Scan(context.Background()); err != nil {
			m.fail("scan: %v", err)
		}
	}
}

func (m *queueModel) any() string {
	if len(m.tasks) == 0 {
		m.r.Skip("no tasks")
	}
	return rapid.SampledFrom(m.tasks).Draw(m.r, "task")
}

func (m *queueModel) interfere(*rapid.T) {
	taskID := m.any()
	verb := rapid.SampledFrom([]string{"cancel", "reassign", "redispatch", "reassign", "redispatch"}).Draw(m.r, "verb")
	was := m.believe[taskID]
	status, out := m.call(m.on(), "POST", "/v1/tasks/"+taskID+"/"+verb, nil)
	switch {
	case status != 200 && status != 409:
		m.fail("%s answers %d %v", verb, status, out)
	case verb == "cancel" && (status != 200 || (out["kind"] == "already_terminal") != was.Terminal()),
		verb == "reassign" && (status == 409) != was.Terminal(), verb == "reassign" && status == 200 && out["reassigned"] != was.InFlight(),
		verb == "redispatch" && status == 200 && was != task.Failed && was != task.Held && was != task.Running:
		m.fail("%s of a task that was %s answers %d %v", verb, was, status, out)
	}
}

// answer releases a task that is held.
func (m *queueModel) answer(*rapid.T) {
	n := m.on()
	m.locked(func(tx *db.Tx, t *task.Row) error {
		if t.Status != task.Held {
			return nil
		}
		return n.Tasks.Release(tx, t)
	})
}

// ship has a pull request come of a running task, or go on.
func (m *queueModel) ship(*rapid.T) {
	n := m.on()
	m.locked(func(tx *db.Tx, t *task.Row) error {
		switch t.Status {
		case task.AwaitingCI:
			return n.Tasks.ToMergeable(tx, t)
		case task.Mergeable:
			if t.Attempt%2 == 0 {
				return n.Tasks.Fail(tx, t, task.PRClosed, "closed")
			}
			return n.Tasks.Merged(tx, t)
		}
		return nil
	})
}

// relink changes what a task waits for, as a plan does that is regrouped.
func (m *queueModel) relink(*rapid.T) {
	n, on := m.on(), m.any()
	var moved []string
	m.locked(func(tx *db.Tx, t *task.Row) error {
		moved = nil
		up, _, err := task.Get(tx, m.account, on)
		if err != nil || on == t.ID || t.Status != task.Pending && t.Status != task.Failed {
			return err
		}
		if up.Status.Terminal() && up.Status != task.Completed && up.Status != task.Merged {
			moved, err = n.Tasks.Relink(tx, t, nil, []string{on})
			return err
		}
		if at, err := task.Reaches(tx, []string{on}, []string{t.ID}); err != nil || at != "" {
			return err
		}
		moved, err = n.Tasks.Relink(tx, t, []string{on}, nil)
		return err
	})
	for _, taskID := range moved {
		if m.believe[taskID] != task.Pending {
			m.fail("task %s was released and is %s", taskID, m.believe[taskID])
		}
	}
}

func (m *queueModel) locked(fn func(tx *db.Tx, t *task.Row) error) {
	taskID := m.any()
	m.do(func(tx *db.Tx) error {
		t, _, err := task.Lock(tx, m.account, taskID)
		if err != nil {
			return err
		}
		return fn(tx, &t)
	})
}

// fleet takes boxes away and gives them back.
func (m *queueModel) fleet(*rapid.T) {
	m.do(func(tx *db.Tx) error {
		_, err := setFleet.Exec(tx, rapid.SampledFrom(m.boxes[:]).Draw(m.r, "box"), rapid.IntRange(0, 2).Draw(m.r, "slots"),
			rapid.SampledFrom([]string{"online", "online", "offline"}).Draw(m.r, "presence"), rapid.SampledFrom([]string{"enrolled", "enrolled", "draining"}).Draw(m.r, "state"))
		return err
	})
}

func (m *queueModel) enable(*rapid.T) {
	m.do(func(tx *db.Tx) error {
		_, err := enableRepo.Exec(tx, rapid.SampledFrom(m.repos).Draw(m.r, "repo"), rapid.SampledFrom([]bool{true, true, false}).Draw(m.r, "enabled"))
		return err
	})
}

func (m *queueModel) restart(*rapid.T) {
	i := rapid.IntRange(0, 1).Draw(m.r, "which")
	m.nodes[i] = m.node(m.nodes[i].db)
	m.fixture.Service = m.nodes[i].Service
}

// Whatever happens to a queue, and in whichever order, what must hold holds,
// and everything comes to an end.
func TestQueueUnderDisorder(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			dsn := dbtest.DSN(t, e)
			f := open(t, dsn)
			second := dbtest.Open(t, dsn, db.Options{Clock: func() time.Time { return time.UnixMicro(f.clock.Load()) }})
			set := func(name, value string) {
				if err := flag.Set(name, value); err != nil {
					t.Fatal(err)
				}
			}
			was := flag.Lookup("rapid.checks").Value.String()
			set("rapid.checks", "10")
			set("rapid.steps", strconv.Itoa(stepsACase))
			defer set("rapid.checks", was)
			defer set("rapid.steps", "30")
			taken := 0
			disorder := func(r *rapid.T) {
				m := &queueModel{model: &model{fixture: f.tenant(), r: r, final: map[string]task.Status{}},
					believe: map[string]task.Status{}, records: map[string]int64{}}
				m.repos = []string{m.account, "api-" + m.account, "ops-" + m.account}
				m.do(func(tx *db.Tx) error {
					for i, name := range []string{"api", "ops"} {
						if _, err := anotherRepo.Exec(tx, m.repos[i+1], m.account, name); err != nil {
							return err
						}
					}
					for _, b := range m.boxes {
						if _, err := setFleet.Exec(tx, b, 2, "online", "enrolled"); err != nil {
							return err
						}
					}
					return nil
				})
				m.nodes = [2]*node{m.node(f.DB), m.node(second)}
				count := func(do func(*rapid.T)) func(*rapid.T) {
					return func(r *rapid.T) { do(r); taken++ }
				}
				r.Repeat(map[string]func(*rapid.T){
					"file": count(m.file), "file more": count(m.file), "claim": count(m.claimOne), "claim both": count(m.claimBoth), "claim again": count(m.claimAgain),
					"speak": count(m.speak), "finish": count(m.finish), "finish more": count(m.finish), "lose": count(m.lose), "hello": count(m.hello),
					"wait": count(m.wait), "interfere": count(m.interfere), "answer": count(m.answer), "ship": count(m.ship), "relink": count(m.relink),
					"fleet": count(m.fleet), "enable": count(m.enable), "restart": count(m.restart), "": m.check,
				})
				m.drain()
				m.check(r)
			}
			for taken < *steps && !t.Failed() {
				rapid.Check(t, disorder)
			}
			t.Logf("%d steps", taken)
		})
	}
}
