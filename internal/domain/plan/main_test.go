package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/proof/standin"
)

var (
	getRepo    = db.Q[repoRow](`SELECT id, owner, name, enabled FROM repos WHERE owner = $1 AND name = $2`)
	getByID    = db.Q[repoRow](`SELECT id, owner, name, enabled FROM repos WHERE id = $1`)
	countAudit = db.Q[int64](`SELECT COUNT(*) FROM audit WHERE object = $1 AND kind = $2`)
)

type repoRow struct {
	ID, Owner, Name string
	Enabled         bool
}

func (r repoRow) repo() task.Repo {
	return task.Repo{
		ID: r.ID, Owner: r.Owner, Name: r.Name, HostRepo: hostRepo(r.Owner, r.Name), Enabled: r.Enabled, DefaultBranch: "main",
	}
}

func repoByID(tx *db.Tx, id string) (task.Repo, error) {
	r, err := getByID.One(tx, id)
	return r.repo(), err
}

// fixture is the plans of one account, with real tasks and a real code host.
type fixture struct {
	*Service
	t       testing.TB
	http    http.Handler
	clock   atomic.Int64 // microseconds
	seats   int64
	queue   *queue.Service    // of Tasks
	reports map[string]string // by task
	waits   string            // why the slices of scouts wait for a person
	openPRs map[string]bool
	asked   int // asks filed
	host    *builtin.Host
	root    string // of its repositories
}

// Survey implements Scouts.
func (f *fixture) Survey(_ *db.Tx, taskID string) (Survey, bool, error) {
	r, ok := f.reports[taskID]
	return Survey{Report: r, Summary: "s"}, ok, nil
}

// Waits implements Scouts.
func (f *fixture) Waits(*db.Tx, *task.Row, []string) (string, error) { return f.waits, nil }

// Wrote implements Repos.
func (f *fixture) Wrote(context.Context, codehost.Repo, string, string, string) error { return nil }

// IsOpen implements Pulls.
func (f *fixture) IsOpen(_ *db.Tx, prID string) (bool, error) { return f.openPRs[prID], nil }

// Shown implements Pulls.
func (f *fixture) Shown(tx *db.Tx, prIDs []string) (map[string]PR, error) {
	briefs, err := record.Briefs(tx, prIDs)
	out := map[string]PR{}
	for prID, b := range briefs {
		out[prID] = PR{ID: b.ID, Number: b.Number, Title: b.Title, URL: b.URL, State: measure.PullState(b.State)}
	}
	return out, err
}

// IdleTasks implements Pulls.
func (f *fixture) IdleTasks(tx *db.Tx, planID string) ([]string, error) {
	return pull.IdleOfPlan(tx, planID)
}

// File implements Asks.
func (f *fixture) File(*db.Tx, Filing) (string, error) {
	f.asked++
	return "the-ask", nil
}

// TasksOf implements Asks. No ask is scheduled.
func (f *fixture) LabelsOf(*db.Tx, string) (map[string]string, error) {
	return map[string]string{"team": "web"}, nil
}

func (f *fixture) TasksOf(*db.Tx, string) ([]string, bool, error) { return nil, false, nil }

// each runs a test on both databases.
func each(t *testing.T, fn func(f *fixture)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { fn(newFixture(t, e)) })
	}
}

// repos reads the repositories of the database.
type repos struct{ standin.Repos }

func (repos) ByName(tx *db.Tx, owner, name string) (task.Repo, bool, error) {
	r, ok, err := getRepo.Maybe(tx, owner, name)
	return r.repo(), ok, err
}

// related answers what tasks ask of their plans, and of the pull requests of a
// test.
type related struct {
	standin.Tasks
	f *fixture
}

func (r related) Seats(*db.Tx, string) (int64, error) { return r.f.seats, nil }

func (r related) PullOpen(_ *db.Tx, prID string) (bool, error) { return r.f.openPRs[prID], nil }

func (related) InPlan(tx *db.Tx, t *task.Row) (*task.Plan, error) { return InPlan(tx, t) }

// queueCap sets how many pending tasks an account may have.
func (f *fixture) queueCap(most int64) {
	f.Tasks, f.queue = standin.Capped(f.Tasks, f.queue, most)
}

func (*fixture) PlanCap(*db.Tx, string) (*int64, error) { return new(int64(2_500_000)), nil }

func newFixture(t testing.TB, e db.Engine) *fixture {
	f := &fixture{t: t, seats: 2, reports: map[string]string{}, openPRs: map[string]bool{}}
	f.clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
	d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: func() time.Time { return time.UnixMicro(f.clock.Load()) }})
	f.root = t.TempDir()
	host, err := builtin.New(builtin.Config{Root: f.root})
	if err != nil {
		t.Fatal(err)
	}
	f.host = host
	hosts := codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: host, Forge: builtin.Forge{}}})
	stand := related{standin.Tasks{Agent: "builtin"}, f}
	tasks, queued := standin.Services(d, event.NewHub(), repos{standin.Repos(repoByID)}, stand)
	f.queue = queued
	f.Service = New(Needs{DB: d, Tasks: tasks, Hosts: hosts, CommitName: "Yard", CommitEmail: "yard@example.com",
		Logger: slog.New(slog.DiscardHandler),
		Scouts: f, Repos: f, Asks: f, Pulls: f, Boxes: queued, Budgets: f})
	task.Moved.On(d, f.TaskMoved)
	task.StuckChanged.On(d, f.TaskStuck)
	f.write(func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
			return err
		}
		for _, r := range []string{"web", "api"} {
			if err := seed.Add(tx, seed.Repo{ID: "repo-" + r, Account: "acme", Name: r}); err != nil {
				return err
			}
		}
		return nil
	})
	f.http = rest.Handler(rest.Config{Pipeline: &op.Pipeline{
		Authenticate: func(context.Context, op.Presented) (policy.Actor, error) {
			return policy.Actor{Credential: policy.PAT, CredentialID: "pat", UserID: "ann", AccountID: "acme",
				Scopes: policy.Scopes(policy.Vocabulary()...)}, nil
		},
		Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
	}}, f.Ops())
	return f
}

func (f *fixture) write(fn func(tx *db.Tx) error) {
	f.t.Helper()
	if err := f.DB.Write(db.WithAccount(context.Background(), "acme"), fn); err != nil {
		f.t.Fatal(err)
	}
}

// change moves a task by fn.
func (f *fixture) change(id string, fn func(tx *db.Tx, t *task.Row) error) {
	f.t.Helper()
	f.clock.Add(1e6)
	f.write(func(tx *db.Tx) error {
		t, ok, err := task.Lock(tx, "acme", id)
		if err != nil || !ok {
			return fmt.Errorf("task %s: %v %w", id, ok, err)
		}
		return fn(tx, &t)
	})
}

func (f *fixture) run(id string) {
	f.t.Helper()
	f.change(id, func(tx *db.Tx, t *task.Row) error {
		if err := f.Tasks.MarkClaimed(tx, t, "run", "box"); err != nil {
			return err
		}
		return f.Tasks.MarkRunning(tx, t)
	})
}

// merge takes a task that can start to its end.
func (f *fixture) merge(id string) {
	f.t.Helper()
	f.run(id)
	f.change(id, f.Tasks.Complete)
}

func (f *fixture) fail(id string) {
	f.t.Helper()
	f.change(id, func(tx *db.Tx, t *task.Row) error { return f.Tasks.Fail(tx, t, task.RunTimeout, "By a test.") })
}

func (f *fixture) task(id string) (t task.Row) {
	f.t.Helper()
	f.write(func(tx *db.Tx) (err error) {
		t, _, err = task.Get(tx, "acme", id)
		return err
	})
	return t
}

func (f *fixture) audits(object, kind string) (n int64) {
	f.t.Helper()
	f.write(func(tx *db.Tx) (err error) {
		n, err = countAudit.One(tx, object, kind)
		return err
	})
	return n
}

// newTask makes a task outside of plans.
func (f *fixture) newTask(dependsOn ...string) (id string) {
	f.t.Helper()
	f.write(func(tx *db.Tx) error {
		r, err := repoByID(tx, "repo-web")
		if err != nil {
			return err
		}
		t, err := f.Tasks.Create(tx, r, task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: "Another", Problem: "p",
			Template: "default", DependsOn: dependsOn})
		id = t.ID
		return err
	})
	return id
}

// hostRepo names a repository of the host.
func hostRepo(owner, name string) codehost.Repo {
	return codehost.Repo{Host: codehost.BuiltIn, Owner: owner, Name: name}
}

// commit commits files to a repository of the host, which it makes if there is
// none.
func (f *fixture) commit(repo string, files map[string]string) {
	f.t.Helper()
	r := hostRepo("acme", repo)
	ctx := context.Background()
	head, err := f.host.Head(ctx, r, "main")
	if err != nil {
		f.seed(r)
		if head, err = f.host.Head(ctx, r, "main"); err != nil {
			f.t.Fatal(err)
		}
	}
	content := map[string][]byte{}
	for name, text := range files {
		content[name] = []byte(text)
	}
	by := codehost.Person{Name: "Ann", Email: "ann@example.com"}
	if _, err := f.host.WriteFiles(ctx, r, codehost.WriteOptions{Branch: "main", Parent: head, Files: content, Title: "t", Author: by,
		Committer: by}); err != nil {
		f.t.Fatal(err)
	}
}

// seed makes a repository with one empty commit.
func (f *fixture) seed(r codehost.Repo) {
	f.t.Helper()
	if err := f.host.Create(context.Background(), r, codehost.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	script := `tree=$(git mktree </dev/null) && git update-ref refs/heads/main $(git commit-tree -m first $tree)`
	c := exec.Command("sh", "-c", script)
	c.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(f.root, r.Owner, r.Name+".git"),
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com")
	if out, err := c.CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
}

type object = map[string]any

// call sends a request and holds the status of its answer. It may be called
// from any goroutine.
func (f *fixture) call(method, path string, body any, want int) object {
	f.t.Helper()
	var in bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&in).Encode(body); err != nil {
			f.t.Error(err)
		}
	}
	req := httptest.NewRequest(method, path, &in)
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	f.http.ServeHTTP(w, req)
	out := object{}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		f.t.Errorf("%s %s: %v in %s", method, path, err, w.Body)
	}
	if w.Code != want {
		f.t.Errorf("%s %s: %d, want %d: %s", method, path, w.Code, want, w.Body)
	}
	return out
}

func (f *fixture) refused(method, path string, body any, status int, slug string) object {
	f.t.Helper()
	p := f.call(method, path, body, status)
	if got, _ := p["type"].(string); !strings.HasSuffix(got, "/problems/"+slug) {
		f.t.Errorf("%s %s: problem %v, want %s", method, path, p, slug)
	}
	return p
}

func (f *fixture) plan(id string) (p Detail) {
	f.t.Helper()
	b, err := json.Marshal(f.call("GET", "/v1/plans/"+id, nil, 200))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// texts returns the strings of a JSON array.
func texts(v any) (out []string) {
	list, _ := v.([]any)
	for _, x := range list {
		out = append(out, x.(string))
	}
	return out
}

// draw makes a plan of groups; up names the groups that each waits for, by
// place.
func (f *fixture) draw(hold bool, up ...[]int) (planID string) {
	f.t.Helper()
	f.write(func(tx *db.Tx) error {
		r, err := repoByID(tx, "repo-web")
		if err != nil {
			return err
		}
		d := Draft{Repo: r, Source: SourceTriage, Hold: hold}
		for i, list := range up {
			u := Unit{Slug: fmt.Sprintf("%02d-part", i), Repo: r, Title: fmt.Sprintf("Part %d", i), Problem: "p",
				DependsOn: map[string]string{}}
			for _, j := range list {
				kind := Code
				if (i+j)%2 == 0 {
					kind = OrderingOnly
				}
				u.DependsOn[fmt.Sprintf("%02d-part", j)] = kind
			}
			d.Units = append(d.Units, u)
		}
		planID, err = f.Author(tx, d)
		return err
	})
	return planID
}

// live brings a box online.
func (f *fixture) live() {
	f.t.Helper()
	f.write(func(tx *db.Tx) error {
		err := seed.Add(tx, seed.Box{ID: "box", Account: "acme", Agents: "[]"})
		return err
	})
}

// files lists a folder of acme/web.
func (f *fixture) files(folder string) []string {
	f.t.Helper()
	_, files, err := f.host.ReadDir(context.Background(), hostRepo("acme", "web"), "main", folder)
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(files))
}
