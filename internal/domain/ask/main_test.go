package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/box"
	waiting "yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/proof/standin"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	repoOf  = db.Q[Repo](`SELECT id, owner, name, enabled FROM repos WHERE account_id = $1 AND id = $2`)
	tasksOf = db.Q[made](`SELECT id, repo_id, kind, title, problem, status, branch, priority, waiting_deps, ask_id, files FROM tasks
		WHERE account_id = $1 ORDER BY id`)
	countTasks = db.Q[int64](`SELECT COUNT(*) FROM tasks`)
	countAsks  = db.Q[int64](`SELECT COUNT(*) FROM asks`)
	openOf     = db.Q[string](`SELECT category FROM escalations WHERE ask_id = $1 AND resolved_at IS NULL`)
	audited    = db.Q[string](`SELECT kind FROM audit WHERE object = $1 ORDER BY seq`)
	// dies is a node that ends with two asks in work.
	dies = db.S(`UPDATE due SET state = 'held', due_at = $1, set_at = $2, fence = 1, tries = tries + 1, holder = 'dead'
		WHERE queue = 'asks' AND key IN (SELECT key FROM due WHERE queue = 'asks' AND state = 'ready' ORDER BY key LIMIT 2)`)
)

// made is a task that was minted.
type made struct {
	ID, RepoID, Kind, Title, Problem, Status, Branch string
	Priority, WaitingDeps                            int64
	AskID                                            *string
	Files                                            db.JSON[[]string]
}

// script is a judge whose answers a test dictates. It gets the prompts that a
// model would get.
type script struct {
	mu     sync.Mutex
	begins int
	ends   []string
	heard  [][]string // the turns of each call
	system string
	refuse error // of Begin
	// say returns the n-th answer, from 0.
	say func(n int, turns []string) (string, error)
}

func (j *script) Begin(context.Context, Matter) (Talk, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begins++
	if j.refuse != nil {
		return nil, j.refuse
	}
	return talk{j}, nil
}

type talk struct{ j *script }

func (talk) ID() string { return "session" }

func (k talk) Say(_ context.Context, system string, turns []string) (string, error) {
	k.j.mu.Lock()
	n := len(k.j.heard)
	k.j.heard, k.j.system = append(k.j.heard, slices.Clone(turns)), system
	say := k.j.say
	k.j.mu.Unlock()
	return say(n, turns)
}

func (k talk) End(_ context.Context, outcome string) {
	k.j.mu.Lock()
	defer k.j.mu.Unlock()
	k.j.ends = append(k.j.ends, outcome)
}

func (j *script) calls() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.heard)
}

// always gives the same answer to every call.
func always(answer string) func(int, []string) (string, error) {
	return func(int, []string) (string, error) { return answer, nil }
}

// yard holds the asks of acme, whose people are ann (member) and olga (owner)
// and whose repositories are web, api, and attic, which is not enabled. rival
// has a web of its own.
type yard struct {
	*Service
	t      *testing.T
	dsn    string
	judge  *script
	tasks  *task.Service
	queued atomic.Pointer[waiting.Service] // the tasks that wait; whoever awaits room reads it, too
	clock  *atomic.Int64                   // microseconds
	seats  int64
	plans  plans
	told   sync.Mutex // of mints, follow and plans, which several nodes write
	mints  []NewTask  // what was minted
	issue  Issue      // the one that ForAsk finds
	follow []string   // what follows what
}

// ForAsk implements Issues.
func (y *yard) ForAsk(_ *db.Tx, issueID string) (Issue, error) {
	if issueID != anIssue {
		return Issue{}, fault.Missing("issue")
	}
	return y.issue, nil
}

// Follow implements Issues.
func (y *yard) Follow(_ *db.Tx, issueID, askID string) error {
	y.told.Lock()
	defer y.told.Unlock()
	y.follow = append(y.follow, issueID+" "+askID)
	return nil
}

// anIssue is the id of an issue of acme.
const anIssue = "0199d3a4-5b6c-7d8e-9f01-23456789abcd"

func onBoth(t *testing.T, fn func(y *yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { fn(open(t, e)) })
	}
}

func open(t *testing.T, e db.Engine) *yard {
	y := &yard{t: t, judge: &script{say: always("")}, clock: new(atomic.Int64), seats: 2}
	y.clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
	y.dsn = dbtest.DSN(t, e)
	y.Service = y.node(y.dsn)
	y.write(func(tx *db.Tx) error {
		const policyText = "instructions: Be brief."
		rows := []seed.Row{seed.Repo{ID: "acme-api", Account: "acme", Name: "api", Policy: policyText},
			seed.Repo{ID: "acme-attic", Account: "acme", Name: "attic", Policy: policyText, Disabled: true}}
		for _, account := range []string{"rival", "acme"} {
			rows = append([]seed.Row{seed.Account{ID: account},
				seed.Repo{ID: account + "-web", Account: account, Name: "web", Policy: policyText},
				seed.Box{ID: account + "-box", Account: account, Slots: 1}}, rows...)
		}
		for name, role := range map[string]policy.Role{"ann": policy.Member, "olga": policy.Owner} {
			rows = append(rows, seed.User{ID: name}, seed.Member{Account: "acme", User: name, Role: string(role)})
		}
		return seed.Add(tx, rows...)
	})
	return y
}

// related answers what tasks ask of the account.
type related struct {
	standin.Tasks
	y *yard
}

func (r related) Seats(*db.Tx, string) (int64, error) { return r.y.seats, nil }

// node makes one server on the database.
func (y *yard) node(dsn string) *Service {
	d := dbtest.Open(y.t, dsn, db.Options{Clock: func() time.Time { return time.UnixMicro(y.clock.Load()) }})
	hub := event.NewHub()
	stand := related{standin.Tasks{}, y}
	tasks, queued := standin.Services(d, hub, standin.Repos(nil), stand)
	y.tasks = tasks
	y.queued.Store(queued)
	s := New(Needs{
		DB: d, Hub: hub, Due: duetest.New(d, hub), Logger: slog.New(slog.DiscardHandler), Judge: y.judge,
		Queue: queue{y}, Boxes: boxes{}, Plans: &y.plans, Budgets: budgets{}, Issues: y, Pages: y,
	})
	TurnChanged.On(d, s.FollowTurn)
	return s
}

// Near is one page, which tells what it was asked for.
func (y *yard) Near(_ *db.Tx, repoID, text string) ([]Page, error) {
	return []Page{{Slug: "near/" + repoID, Text: clip(text, 500)}}, nil
}

// queueCap sets how many pending tasks an account may have.
func (y *yard) queueCap(most int64) {
	tasks, queued := standin.Capped(y.tasks, y.queued.Load(), most)
	y.tasks = tasks
	y.queued.Store(queued)
}

// queue is a real queue of tasks.
type queue struct{ *yard }

func (q queue) Full(tx *db.Tx) (bool, error) { return q.queued.Load().Full(tx) }

// Task finds a task of tx.Account.
func (queue) Task(tx *db.Tx, taskID string) (TaskRef, bool, error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	return TaskRef{ID: t.ID, RepoID: t.RepoID, Status: string(t.Status), Title: t.Title}, ok, err
}

// Newest lists the newest tasks of tx.Account.
func (queue) Newest(tx *db.Tx, repoID string) ([]Sketch, error) {
	rows, err := task.Newest(tx, repoID)
	out := make([]Sketch, len(rows))
	for i, r := range rows {
		out[i] = Sketch{ID: r.ID, RepoID: r.RepoID, Repo: r.Repo, Kind: r.Kind, Status: string(r.Status), Title: r.Title,
			Problem: r.Problem, Files: r.Files.V}
	}
	return out, err
}

func (q queue) Mint(tx *db.Tx, n NewTask) (string, error) {
	q.told.Lock()
	q.mints = append(q.mints, n)
	q.told.Unlock()
	r, err := repoOf.One(tx, tx.Account, n.RepoID)
	if err != nil {
		return "", err
	}
	t, err := q.tasks.Create(tx, inTasks(r), task.Spec{Kind: n.Kind, Sink: task.SinkQueued, Title: n.Title, Problem: n.Problem,
		Template: "default",
		Priority: n.Priority, Confidence: 1, DependsOn: n.DependsOn, Files: n.Files, AskID: &n.AskID})
	return t.ID, err
}

// boxes reads the boxes of the database. There are no templates.
type boxes struct{}

func (boxes) Fleet(tx *db.Tx) (f Fleet, err error) {
	f.BoxesOnline, f.Agents, err = box.Serving(tx, tx.Account)
	return f, err
}

// plans counts the plans that are made.
type plans struct{ authored atomic.Int64 }

func (p *plans) Author(*db.Tx, NewPlan) (Authored, error) {
	p.authored.Add(1)
	return Authored{PlanID: "plan", TaskIDs: []string{"task"}}, nil
}

// budgets has no limits.
type budgets struct{}

func (budgets) Stops(*db.Tx, []string) ([]Stop, error) { return nil, nil }

// inTasks converts a repository to that of package task.
func inTasks(r Repo) task.Repo {
	return task.Repo{ID: r.ID, Owner: r.Owner, Name: r.Name, Enabled: r.Enabled, DefaultBranch: "main"}
}

func (y *yard) ctx() context.Context { return db.WithAccount(context.Background(), "acme") }

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(y.ctx(), fn); err != nil {
		y.t.Fatal(err)
	}
}

var filer = policy.Scopes(policy.ReadTasks, policy.WriteTasks, policy.WriteKB)

// file files an ask of ann's for acme/web, which edit may change.
func (y *yard) file(edit func(*Filing)) string {
	y.t.Helper()
	f := Filing{RepoIDs: []string{"acme-web"}, Title: "Greet people", Body: "Nobody is greeted.", Scopes: filer, By: "user:ann",
		UserID: "ann"}
	if edit != nil {
		edit(&f)
	}
	var askID string
	y.write(func(tx *db.Tx) error {
		a, _, err := y.File(tx, f)
		askID = a.ID
		return err
	})
	return askID
}

// pass judges the due asks, as a node does.
func (y *yard) pass() {
	y.t.Helper()
	duetest.Pass(context.Background(), y.t, y.Due)
}

// entry is what is known of an ask in the queue.
func (y *yard) entry(askID string) (st due.State) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) { st, _, err = y.Service.queue.State(tx, askID); return err })
	return st
}

func (y *yard) later(d time.Duration) { y.clock.Add(d.Microseconds()) }

func (y *yard) ask(askID string) (a Ask) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		r, err := find(tx, askID, false)
		a = r.wire()
		return err
	})
	return a
}

func (y *yard) want(askID string, state State, reason string) Ask {
	y.t.Helper()
	a := y.ask(askID)
	if a.State != state || deref(a.EscalationReason) != reason {
		y.t.Fatalf("the ask is %s (%s), want %s (%s); verdict %+v", a.State, deref(a.EscalationReason), state, reason, a.Verdict)
	}
	return a
}

func (y *yard) minted(account string) (rows []made) {
	y.t.Helper()
	if err := y.DB.Read(db.WithAccount(context.Background(), account), func(tx *db.Tx) (err error) {
		rows, err = tasksOf.All(tx, account)
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	return rows
}

// one reads one value.
func one[T any](y *yard, q db.Query[T], args ...any) (v T) {
	y.t.Helper()
	if err := y.DB.Read(y.ctx(), func(tx *db.Tx) (err error) {
		v, err = q.One(tx, args...)
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	return v
}

func all[T any](y *yard, q db.Query[T], args ...any) (v []T) {
	y.t.Helper()
	if err := y.DB.Read(y.ctx(), func(tx *db.Tx) (err error) {
		v, err = q.All(tx, args...)
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	return v
}

type object = map[string]any

// says encodes a verdict as a judge writes it.
func says(v object) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// mint encodes a verdict of one task in a repository.
func mint(repo string, more object) string {
	t := object{"repo": repo, "title": "Say hello", "problem": "Nobody is greeted."}
	for k, v := range more {
		t[k] = v
	}
	return says(object{"kind": "mint", "reason": "It is work.", "tasks": []any{t}})
}

// existing queues a task of acme outside of asks.
func (y *yard) existing(repoID, title string) string {
	y.t.Helper()
	account, _, _ := strings.Cut(repoID, "-")
	var taskID string
	if err := y.DB.Write(db.WithAccount(context.Background(), account), func(tx *db.Tx) error {
		r, err := repoOf.One(tx, account, repoID)
		if err != nil {
			return err
		}
		t, err := y.tasks.Create(tx, inTasks(r),
			task.Spec{Kind: "work", Sink: "queued", Title: title, Problem: fmt.Sprintf("About %s.", title),
				Template: "default", Priority: 50, Confidence: 1})
		taskID = t.ID
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	return taskID
}
