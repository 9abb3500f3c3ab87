package task_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/proof/standin"
)

const repoColumns = `id, owner, name, enabled, default_branch, '' AS clone_url, '' AS template, '' AS isolation, 0 AS check_timeout, '' AS conflicts`

var (
	countAudit = db.Q[int64](`SELECT COUNT(*) FROM audit WHERE object = $1 AND kind = $2`)
	countEsc   = db.Q[int64](`SELECT COUNT(*) FROM escalations WHERE account_id = $1 AND id = $2`)

	getRepo     = db.Q[task.Repo](`SELECT ` + repoColumns + ` FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3`)
	getRepoByID = db.Q[task.Repo](`SELECT ` + repoColumns + ` FROM repos WHERE id = $1`)
)

// fixture is tasks with their queue.
type fixture struct {
	*task.Service
	queue *queue.Service
	t     *testing.T
	http  http.Handler
	clock atomic.Int64 // microseconds
	seats int64
	open  bool // all pull requests
	stops []string
}

// others answers for the domains that tasks and their queue ask.
type others struct {
	standin.Tasks
	f *fixture
}

func (o others) Seats(*db.Tx, string) (int64, error) { return o.f.seats, nil }

func (o others) PullOpen(*db.Tx, string) (bool, error) { return o.f.open, nil }

func (o others) Exists(_ *db.Tx, _, name string) (bool, error) { return name == "default", nil }

// repos are those of the database.
type repos struct{ standin.Repos }

func (repos) ByName(tx *db.Tx, owner, name string) (task.Repo, bool, error) {
	return getRepo.Maybe(tx, tx.Account, owner, name)
}

// each runs a test on both databases, with two accounts that have a
// repository each, and one box of the first.
func each(t *testing.T, fn func(f *fixture)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			f := &fixture{t: t, seats: 2}
			f.clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: func() time.Time { return time.UnixMicro(f.clock.Load()) }})
			known := repos{func(tx *db.Tx, id string) (task.Repo, error) { return getRepoByID.One(tx, id) }}
			f.Service, f.queue = standin.Services(d, event.NewHub(), known, others{standin.Tasks{Agent: "claude"}, f})
			f.serve()
			task.RunUnwanted.On(d, func(_ *db.Tx, u task.Unwanted) error {
				f.stops = append(f.stops, *u.Task.RunID+" "+u.Why)
				return nil
			})
			f.write("acme", func(tx *db.Tx) error {
				for _, a := range []string{"acme", "rival"} {
					if err := seed.Add(tx, seed.Account{ID: a}); err != nil {
						return err
					}
					if err := seed.Add(tx, seed.Repo{ID: a + "-web", Account: a, Owner: a, Name: "web"}); err != nil {
						return err
					}
				}
				err := seed.Add(tx, seed.Box{ID: "box", Account: "acme", Slots: 2})
				return err
			})
			fn(f)
		})
	}
}

// serve has the fixture call its tasks.
func (f *fixture) serve() {
	f.http = rest.Handler(rest.Config{AccountHeader: "X-Account", Pipeline: &op.Pipeline{
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			return policy.Actor{Credential: policy.PAT, CredentialID: "pat", UserID: "ann", AccountID: p.Account,
				Scopes: policy.Scopes(policy.ReadTasks, policy.WriteTasks)}, nil
		},
		Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
	}}, f.Ops())
}

// queueCap has an account take so many pending tasks.
func (f *fixture) queueCap(most int64) {
	f.Service, f.queue = standin.Capped(f.Service, f.queue, most)
	f.serve()
}

func (f *fixture) write(account string, fn func(tx *db.Tx) error) {
	f.t.Helper()
	if err := f.DB.Write(db.WithAccount(context.Background(), account), fn); err != nil {
		f.t.Fatal(err)
	}
}

type object = map[string]any

// call asks as an account and wants a status.
func (f *fixture) call(account, method, path string, body any, want int) object {
	f.t.Helper()
	var in bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&in).Encode(body); err != nil {
			f.t.Fatal(err)
		}
	}
	req := httptest.NewRequest(method, path, &in)
	req.Header.Set("X-Account", account)
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	f.http.ServeHTTP(w, req)
	out := object{}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		f.t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
	}
	if w.Code != want {
		f.t.Fatalf("%s %s: %d, want %d: %s", method, path, w.Code, want, w.Body)
	}
	return out
}

// refused asks and wants a problem with the slug.
func (f *fixture) refused(method, path string, body any, status int, slug string) object {
	f.t.Helper()
	p := f.call("acme", method, path, body, status)
	if got, _ := p["type"].(string); !strings.HasSuffix(got, "/problems/"+slug) {
		f.t.Fatalf("%s %s: problem %v, want %s", method, path, p, slug)
	}
	return p
}

func job(more object) object {
	b := object{"repo": "acme/web", "title": "Fix the login", "problem": "It fails after a reload."}
	for k, v := range more {
		b[k] = v
	}
	return b
}

func (f *fixture) create(more object) string {
	f.pass(time.Millisecond) // who is older is no accident
	f.t.Helper()
	return f.call("acme", "POST", "/v1/tasks", job(more), 202)["task_id"].(string)
}

func (f *fixture) get(id string) object {
	f.t.Helper()
	return f.call("acme", "GET", "/v1/tasks/"+id, nil, 200)
}

func (f *fixture) status(id, want string) {
	f.t.Helper()
	if got := f.get(id)["status"]; got != want {
		f.t.Fatalf("task is %v, want %s", got, want)
	}
}

// change applies moves to a task.
func (f *fixture) change(id string, fn func(tx *db.Tx, t *task.Row) error) {
	f.t.Helper()
	f.write("acme", func(tx *db.Tx) error {
		t, ok, err := task.Lock(tx, "acme", id)
		if err != nil || !ok {
			return fmt.Errorf("lock %s: %v, %w", id, ok, err)
		}
		return fn(tx, &t)
	})
}

// claim has the box claim the next task and returns its id.
func (f *fixture) claim() (id string) {
	f.t.Helper()
	if id = f.claimOnce(); id == "" {
		id = f.claimOnce() // the first has woken what is due
	}
	return id
}

func (f *fixture) claimOnce() (id string) {
	f.t.Helper()
	f.write("", func(tx *db.Tx) error {
		t, err := f.queue.Claimable(tx, "box")
		if err != nil || t == nil {
			return err
		}
		id = t.ID
		return f.MarkClaimed(tx, t, "run", "box")
	})
	return id
}

func (f *fixture) pass(d time.Duration) { f.clock.Add(d.Microseconds()) }

func reasons(task object) (out []string) {
	for _, h := range task["holds"].([]any) {
		out = append(out, h.(object)["reason"].(string))
	}
	return out
}

func TestCreate(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		out := f.call("acme", "POST", "/v1/tasks", job(object{"labels": object{"area": "auth"}, "budget_usd": 1.5}), 202)
		if out["queue_position"] != 1.0 || out["queue_depth"] != 1.0 || out["queue_depth_cap"] != -1.0 || out["sink"] != "queued" {
			f.t.Errorf("answer %v", out)
		}
		id := out["task_id"].(string)
		got := f.get(id)
		if got["branch"] != "svc/fix-the-login--"+id[:8] || got["repo"] != "acme/web" || got["status"] != "pending" ||
			got["run_id"] != nil ||
			got["budget"].(object)["usd"] != "1.50" || got["created_by"] != "user:ann" || len(reasons(got)) != 0 {
			f.t.Errorf("task %v", got)
		}
		f.call("rival", "GET", "/v1/tasks/"+id, nil, 404)
		f.call("acme", "GET", "/v1/tasks/nonsense", nil, 404)

		direct := f.call("acme", "POST", "/v1/tasks", job(object{"sink": "direct"}), 202)
		if direct["queue_position"] != 1.0 {
			f.t.Errorf("direct work is not at the head: %v", direct)
		}
		esc := f.call("acme", "POST", "/v1/tasks", job(object{"confidence": 0.4}), 202)
		if esc["kind"] != "escalated" || esc["task_id"] != nil {
			f.t.Errorf("low confidence: %v", esc)
		}
		f.write("acme", func(tx *db.Tx) error {
			n, err := countEsc.One(tx, "acme", esc["escalation_id"])
			if n != 1 {
				f.t.Errorf("%d escalations", n)
			}
			return err
		})
		if n := len(f.call("acme", "GET", "/v1/tasks", nil, 200)["data"].([]any)); n != 2 {
			f.t.Errorf("%d tasks, want 2: an escalation makes none", n)
		}
	})
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		for name, c := range map[string]struct {
			body   object
			status int
			slug   string
			field  string
		}{
			"link only":        {object{"problem": "https://github.com/acme/web/issues/1"}, 422, "problem-is-only-link", ""},
			"gh":               {object{"sink": "gh"}, 422, "sink-not-configured", ""},
			"linear":           {object{"sink": "linear"}, 422, "sink-not-configured", ""},
			"foreign repo":     {object{"repo": "rival/web"}, 404, "not-found", ""},
			"unknown template": {object{"template": "nope"}, 400, "invalid", "template"},
			"unknown upstream": {object{"depends_on": []string{"11111111-1111-4111-8111-111111111111"}}, 400, "invalid", "depends_on.0"},
			"long title":       {object{"title": strings.Repeat("x", 201)}, 400, "invalid", "title"},
			"long problem":     {object{"problem": strings.Repeat("x", 20001)}, 400, "invalid", "problem"},
			"blank title":      {object{"title": "  "}, 400, "invalid", "title"},
			"platform's kind":  {object{"kind": "ci"}, 400, "invalid", "kind"},
			"escaping path":    {object{"files": []string{"a", "../b"}}, 400, "invalid", "files.1"},
			"priority":         {object{"priority": 101}, 400, "invalid", "priority"},
			"unknown ask":      {object{"ask_id": "x"}, 400, "invalid", "ask_id"},
			"schema":           {object{"result_schema": []int{1}}, 400, "invalid", "result_schema"},
		} {
			p := f.refused("POST", "/v1/tasks", job(c.body), c.status, c.slug)
			if c.field != "" && p["errors"].(object)[c.field] == nil {
				f.t.Errorf("%s: no error for %s in %v", name, c.field, p)
			}
		}
		f.queueCap(0)
		if p := f.refused("POST", "/v1/tasks", job(nil), 429, "queue-full"); p["retry_after"] == nil {
			f.t.Errorf("no retry_after: %v", p)
		}
		f.seats = 0
		f.refused("POST", "/v1/tasks", job(nil), 403, "no-capacity")
		f.seats = 1
		f.write("acme", func(tx *db.Tx) error { _, err := seed.SetEnabled.Exec(tx, "acme-web", false); return err })
		if p := f.refused("POST", "/v1/tasks", job(nil), 409, "repo_disabled"); p["reason"] != "repo_disabled" {
			f.t.Errorf("no reason: %v", p)
		}
	})
}

func TestListWalks(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		var made []string
		for range 5 {
			made = append(made, f.create(nil))
			f.pass(time.Second)
		}
		var seen []string
		path := "/v1/tasks?per_page=2"
		for path != "" {
			page := f.call("acme", "GET", path, nil, 200)
			for _, row := range page["data"].([]any) {
				seen = append(seen, row.(object)["id"].(string))
			}
			path = ""
			if next, ok := page["next_cursor"].(string); ok {
				path = "/v1/tasks?per_page=2&cursor=" + next
			}
		}
		if len(seen) != 5 || seen[0] != made[4] || seen[4] != made[0] {
			f.t.Errorf("walked %v of %v", seen, made)
		}
		if n := len(f.call("acme", "GET", "/v1/tasks?filter=status:running", nil, 200)["data"].([]any)); n != 0 {
			f.t.Errorf("%d running", n)
		}
		if n := len(f.call("acme", "GET", "/v1/tasks?filter=repo:acme/web&q=LOGIN", nil, 200)["data"].([]any)); n != 5 {
			f.t.Errorf("%d in the repository", n)
		}
		if n := len(f.call("rival", "GET", "/v1/tasks", nil, 200)["data"].([]any)); n != 0 {
			f.t.Errorf("a rival sees %d", n)
		}
	})
}
