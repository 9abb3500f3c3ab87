package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

type tasks = task.Service

// fixture is a queue with its tasks.
type fixture struct {
	*Service
	*tasks
	DB    *db.DB
	t     *testing.T
	http  http.Handler
	clock atomic.Int64 // microseconds
	seats int64
	box   string // that claims

	others others
	host   host
}

// each runs a test on both databases, with two accounts that have a
// repository each, and one box of the first.
func each(t *testing.T, fn func(f *fixture)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			f := &fixture{t: t, seats: 2, box: "box"}
			f.clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: func() time.Time { return time.UnixMicro(f.clock.Load()) }})
			f.DB, f.others.f = d, f
			hub := event.NewHub()
			f.Service = New(Needs{
				DB: d, Hub: hub, Most: task.Uncapped, DefaultTemplate: "default",
				Repos: &f.others, Templates: &f.others, Related: &f.others, Commits: &f.host,
			})
			f.tasks = task.New(task.Needs{Tracker: task.NoTracker{},
				DB: d, Hub: hub, DefaultTemplate: "default", Repos: &f.others, Templates: &f.others, Related: &f.others, Queue: f.Service,
			})
			task.QueueChanged.On(d, Count)
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
			f.http = rest.Handler(rest.Config{AccountHeader: "X-Account", Pipeline: &op.Pipeline{
				Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
					return policy.Actor{Credential: policy.PAT, CredentialID: "pat", UserID: "ann", AccountID: p.Account,
						Scopes: policy.Scopes(policy.ReadTasks, policy.WriteTasks)}, nil
				},
				Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
			}}, slices.Concat(f.tasks.Ops(), f.Service.Ops()))
			fn(f)
		})
	}
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

// claim has the box claim the next task and answers its id.
func (f *fixture) claim() (id string) {
	if id = f.claimOnce(); id == "" {
		id = f.claimOnce() // the first has woken what is due
	}
	return id
}

func (f *fixture) claimOnce() (id string) {
	f.t.Helper()
	f.write("", func(tx *db.Tx) error {
		t, err := f.Claimable(tx, f.box)
		if err != nil || t == nil {
			return err
		}
		id = t.ID
		return f.MarkClaimed(tx, t, "run", f.box)
	})
	return id
}

func (f *fixture) pass(d time.Duration) { f.clock.Add(d.Microseconds()) }

func reasons(shown object) (out []string) {
	for _, h := range shown["holds"].([]any) {
		out = append(out, h.(object)["reason"].(string))
	}
	return out
}

func TestClaimOrderAndSeats(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.seats = 1
		low, high := f.create(object{"priority": 1}), f.create(object{"priority": 90})
		if got := f.claim(); got != high {
			f.t.Fatalf("claimed %s, want the one of higher priority", got)
		}
		if got := f.claim(); got != "" {
			f.t.Fatal("claimed beyond the seats")
		}
		if got := reasons(f.get(low)); len(got) != 1 || got[0] != task.HoldSeats {
			f.t.Errorf("holds %v", got)
		}
		if got := f.get(high); got["status"] != "claimed" || got["run_id"] != nil || got["box_id"] != "box" {
			f.t.Errorf("claimed task %v", got)
		}
		f.change(high, f.MarkRunning)
		if got := f.get(high); got["run_id"] != "run" {
			f.t.Errorf("running task %v", got)
		}
		f.change(high, f.Complete)
		if got := f.claim(); got != low {
			f.t.Errorf("claimed %q, want the other", got)
		}
	})
}

func TestBackoffHolds(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		f.claim()
		f.change(id, func(tx *db.Tx, t *task.Row) error { return f.AttemptFailed(tx, t, task.AgentError, "it broke") })
		if got := reasons(f.get(id)); len(got) != 1 || got[0] != task.HoldBackoff || f.claim() != "" {
			f.t.Fatalf("holds %v", got)
		}
		f.pass(30 * time.Second)
		if got := f.get(id); len(reasons(got)) != 0 || got["failure_kind"] != task.AgentError || got["attempt"] != 1.0 {
			f.t.Fatalf("after the wait: %v", got)
		}
		if f.claim() != id {
			f.t.Error("not claimable after the wait")
		}
	})
}
