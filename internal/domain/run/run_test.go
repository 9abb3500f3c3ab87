package run

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

func TestMain(m *testing.M) {
	// A database behind every step: fewer cases unless -rapid.checks says otherwise.
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	dbtest.Main(m)
}

var (
	addAccount = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, created_at) VALUES ($1, $1, 'org', 'self_hosted', 100, 0)`)
	addRepo    = db.S(`INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled, created_at)
		VALUES ($1, $1, $1, 'web', 'builtin', 'main', FALSE, TRUE, 0)`)
	addBox = db.S(`INSERT INTO boxes (id, account_id, name, owner_target, owner_id, state, nkey, token_hash, token_expires_at, slots, agents, isolation, presence, created_at)
		VALUES ($1, $2, $1, 'org', $2, 'enrolled', '', $1, 0, 100, '[{"name":"claude"}]', '["landlock"]', 'online', 0)`)
	getRepo = db.Q[task.Repo](`SELECT id, owner, name, enabled, default_branch, 'http://host/' || id AS clone_url FROM repos WHERE id = $1`)
)

// patience bounds every wait of a test.
const patience = 20 * time.Second

// fixture is one account with a repository and two boxes.
type fixture struct {
	*Service
	t       testing.TB
	clock   *atomic.Int64 // microseconds
	account string
	boxes   [2]string

	commands *outbox
}

// outbox keeps the commands owed to boxes.
type outbox struct {
	mu  sync.Mutex
	all map[string][]protocol.Command
}

func (o *outbox) put(box string, c protocol.Command) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[box] = append(o.all[box], c)
}

func (o *outbox) of(box string) []protocol.Command {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all[box])
}

func each(t *testing.T, fn func(t *testing.T, f *fixture)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { fn(t, open(t, dbtest.DSN(t, e))) })
	}
}

func open(t testing.TB, dsn string) *fixture {
	clock := &atomic.Int64{}
	clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
	d := dbtest.Open(t, dsn, db.Options{Clock: func() time.Time { return time.UnixMicro(clock.Load()) }})
	hub := event.NewHub(nil)
	f := &fixture{t: t, clock: clock, commands: &outbox{all: map[string][]protocol.Command{}}}
	tasks := &task.Service{DB: d, Hub: hub, QueueCap: task.Uncapped, DefaultTemplate: "default",
		RepoByName: func(tx *db.Tx, owner, _ string) (task.Repo, bool, error) { return getRepo.Maybe(tx, owner) },
		RepoByID:   func(tx *db.Tx, id string) (task.Repo, error) { return getRepo.One(tx, id) },
		Template: func(_ *db.Tx, _, name string) (task.Need, bool, error) {
			return task.Need{Agent: "claude"}, name == "default", nil
		},
		Seats: func(*db.Tx, string) (int64, error) { return 100, nil },
	}
	s := &Service{DB: d, Hub: hub, Tasks: tasks, GatewayURL: "http://gateway", CommitName: "Yardmaster", CommitEmail: "agent@example.com",
		Template: func(*db.Tx, string, string) (Template, bool, error) {
			return Template{Agent: "claude", Model: "m", Timeout: time.Hour, Isolation: "landlock"}, true, nil
		},
		SendCommand: func(tx *db.Tx, boxID string, c protocol.Command) error {
			tx.AfterCommit(func() { f.commands.put(boxID, c) })
			return nil
		},
	}
	tasks.StopRun, tasks.Endings, tasks.Pulse = s.Stop, s.Endings, s.Pulse
	f.Service = s
	return f.tenant()
}

// tenant is the fixture with a new account.
func (f *fixture) tenant() *fixture {
	f.t.Helper()
	g := *f
	g.account = id.New()
	g.boxes = [2]string{"a-" + g.account, "b-" + g.account}
	g.write(func(tx *db.Tx) error {
		if _, err := addAccount.Exec(tx, g.account); err != nil {
			return err
		}
		if _, err := addRepo.Exec(tx, g.account); err != nil {
			return err
		}
		for _, b := range g.boxes {
			if _, err := addBox.Exec(tx, b, g.account); err != nil {
				return err
			}
		}
		return nil
	})
	return &g
}

func (f *fixture) ctx() context.Context { return db.WithAccount(context.Background(), f.account) }

func (f *fixture) write(fn func(tx *db.Tx) error) {
	f.t.Helper()
	if err := f.DB.Write(f.ctx(), fn); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) pass(d time.Duration) { f.clock.Add(d.Microseconds()) }

func (f *fixture) create(kind string) (taskID string) {
	f.t.Helper()
	f.write(func(tx *db.Tx) error {
		t, err := f.Tasks.Create(tx, task.Repo{ID: f.account}, task.Spec{Kind: kind, Sink: task.SinkQueued, Title: "Fix it", Problem: "It is broken.",
			Template: "default", Command: []string{"make", "check"}, Checkout: "c0ffee"})
		taskID = t.ID
		return err
	})
	return taskID
}

// claim has a box claim, without waiting; nil if there is nothing.
func (f *fixture) claim(box string) *protocol.Start {
	f.t.Helper()
	reply, err := f.Claim(context.Background(), box, protocol.Claim{ID: id.New(), Free: 1})
	if err != nil {
		f.t.Fatal(err)
	}
	return reply.Run
}

func (f *fixture) task(taskID string) (t task.Row) {
	f.t.Helper()
	f.write(func(tx *db.Tx) (err error) {
		t, _, err = task.Get(tx, f.account, taskID)
		return err
	})
	return t
}

func (f *fixture) wantStatus(taskID string, want task.Status) task.Row {
	f.t.Helper()
	t := f.task(taskID)
	if t.Status != want {
		f.t.Fatalf("task is %s (%v), want %s", t.Status, t.FailureKind, want)
	}
	return t
}

func (f *fixture) run(box, runID string) (r Row) {
	f.t.Helper()
	f.write(func(tx *db.Tx) (err error) {
		r, err = selectOfBox.One(tx, box, runID)
		return err
	})
	return r
}

func (f *fixture) live(token, kind string) bool {
	f.t.Helper()
	_, ok, err := f.ResolveToken(context.Background(), token, kind)
	if err != nil {
		f.t.Fatal(err)
	}
	return ok
}

// say ingests events that begin with seq.
func (f *fixture) say(box string, st *protocol.Start, seq int64, events ...protocol.Event) error {
	for i := range events {
		events[i].Seq = seq + int64(i)
	}
	return f.Ingest(context.Background(), box, protocol.Envelope{V: 1, Run: st.Run, Attempt: st.Attempt, Events: events})
}

func (f *fixture) mustSay(box string, st *protocol.Start, seq int64, events ...protocol.Event) {
	f.t.Helper()
	if err := f.say(box, st, seq, events...); err != nil {
		f.t.Fatal(err)
	}
}

func ev(kind string, data any) protocol.Event {
	e := protocol.Event{Kind: kind, T: 1_800_000_000_000}
	if data != nil {
		b, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		e.Data = b
	}
	return e
}

// started is what a box says first.
func started() []protocol.Event {
	return []protocol.Event{ev(protocol.EventAccepted, nil), ev(protocol.EventPreparing, nil), ev(protocol.EventPrepared, protocol.Prepared{Base: "base"}),
		ev(protocol.EventStarted, protocol.Started{Agent: "claude", Version: "2", Session: "s", Isolation: "landlock"})}
}

func finished(f protocol.Finished) protocol.Event { return ev(protocol.EventFinished, f) }

func TestClaimTellsAll(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		if st == nil || st.Task != taskID || st.Attempt != 1 || st.Kind != "work" || st.Agent != "claude" || st.Model != "m" ||
			st.TimeoutMS != time.Hour.Milliseconds() || st.Isolation != "landlock" || st.CloneURL != "http://host/"+f.account || st.DefaultRef != "main" ||
			st.Branch != "svc/fix-it--"+taskID[:8] || st.LeaseMS != 60_000 || st.GatewayURL != "http://gateway" || st.Checkout != "c0ffee" {
			t.Fatalf("start %+v", st)
		}
		for _, want := range []string{"# Fix it", "It is broken.", "YARDMASTER_REPORT", "Do not push"} {
			if !strings.Contains(st.Prompt, want) {
				t.Errorf("brief lacks %q:\n%s", want, st.Prompt)
			}
		}
		a, ok, err := f.ResolveToken(context.Background(), st.GitToken, TokenGit)
		if err != nil || !ok || a.Branch != st.Branch || a.TaskID != taskID || a.SessionID == "" || a.RunID != st.Run {
			t.Errorf("git token: %+v %v %v", a, ok, err)
		}
		if f.live(st.GitToken, TokenModel) || !f.live(st.ModelToken, TokenModel) {
			t.Error("tokens answer for the wrong kind")
		}
		f.wantStatus(taskID, task.Claimed)
	})
}

func TestClaimOfChecks(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindCI)
		st := f.claim(f.boxes[0])
		if st.Agent != "command" || st.Checkout != "c0ffee" || st.Branch != "" || len(st.Command) != 2 || st.Prompt != "" {
			t.Errorf("start %+v", st)
		}
	})
}

func TestClaimIsIdempotent(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindWork)
		f.create(task.KindWork)
		c := protocol.Claim{ID: "same", Free: 1}
		first, err := f.Claim(context.Background(), f.boxes[0], c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := f.Claim(context.Background(), f.boxes[0], c)
		if err != nil || again.Run == nil || again.Run.Run != first.Run.Run {
			t.Fatalf("again: %+v %v", again, err)
		}
		if f.live(first.Run.GitToken, TokenGit) || !f.live(again.Run.GitToken, TokenGit) {
			t.Error("the answer that was repeated has the live tokens")
		}
		other, err := f.Claim(context.Background(), f.boxes[1], c)
		if err != nil || other.Run == nil || other.Run.Run == first.Run.Run {
			t.Errorf("another box's claim id is its own: %+v %v", other, err)
		}
		f.mustSay(f.boxes[0], again.Run, 1, finished(protocol.Finished{State: protocol.Failed}))
		spent, err := f.Claim(context.Background(), f.boxes[0], c)
		if err != nil || spent.Run != nil || len(spent.Reasons) != 1 || spent.Reasons[0] != "claim_spent" {
			t.Errorf("spent: %+v %v", spent, err)
		}
	})
}

// However many claim at once, every task is given away once.
func TestNoTaskGoesToTwoBoxes(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		const tasks, claims = 12, 20
		for range tasks {
			f.create(task.KindWork)
		}
		type got struct {
			task string
			err  error
		}
		out := make(chan got, claims)
		for i := range claims {
			go func() {
				r, err := f.Claim(context.Background(), f.boxes[i%2], protocol.Claim{ID: id.New(), Free: 1})
				g := got{err: err}
				if r.Run != nil {
					g.task = r.Run.Task
				}
				out <- g
			}()
		}
		seen := map[string]int{}
		for range claims {
			g := <-out
			if g.err != nil {
				t.Fatal(g.err)
			}
			seen[g.task]++
		}
		if len(seen) != tasks+1 || seen[""] != claims-tasks {
			t.Errorf("given away: %v", seen)
		}
	})
}

func TestClaimWaits(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		reply, err := f.Claim(context.Background(), f.boxes[0], protocol.Claim{ID: "now", Free: 1})
		if err != nil || reply.Run != nil || fmt.Sprint(reply.Reasons) != "[queue_empty]" {
			t.Fatalf("empty queue: %+v %v", reply, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		got := make(chan *protocol.Start, 1)
		go func() {
			r, err := f.Claim(ctx, f.boxes[0], protocol.Claim{ID: "later", Free: 1, WaitMS: 25_000})
			if err != nil {
				t.Error(err)
			}
			got <- r.Run
		}()
		taskID := f.create(task.KindWork)
		if st := <-got; st == nil || st.Task != taskID {
			t.Errorf("waiting claim got %+v", st)
		}
	})
}

func TestWorkWithoutCommitsCompletes(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindScout)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		row := f.wantStatus(taskID, task.Running)
		if *row.BaseSHA != "base" {
			t.Errorf("base %v", row.BaseSHA)
		}
		f.mustSay(f.boxes[0], st, 5, finished(protocol.Finished{State: protocol.Succeeded, Report: "All is in main.go:12.", ReportBy: "report_md"}))
		f.wantStatus(taskID, task.Completed)
		r := f.run(f.boxes[0], st.Run)
		if *r.Outcome != Succeeded || r.State != Ended || *r.AgentVersion != "2" || *r.Isolation != "landlock" || f.live(st.ModelToken, TokenModel) {
			t.Errorf("run %+v", r)
		}
		f.mustSay(f.boxes[0], st, 6, ev("agent.update", nil))
		if got := f.run(f.boxes[0], st.Run).CommittedSeq; got != 5 {
			t.Errorf("an ended run took events: %d", got)
		}
	})
}

func TestEndings(t *testing.T) {
	for name, c := range map[string]struct {
		f       protocol.Finished
		status  task.Status
		kind    string
		charged int64
	}{
		"nothing delivered": {protocol.Finished{State: protocol.Succeeded}, task.Pending, task.ReportMissing, 1},
		"agent failed":      {protocol.Finished{State: protocol.Failed, Kind: task.AgentError, Error: "boom"}, task.Pending, task.AgentError, 1},
		"provider's limit":  {protocol.Finished{State: protocol.Failed, Kind: task.AgentError, Error: "HTTP 429 Too Many Requests"}, task.Pending, task.ProviderRateLimit, 0},
		"unknown kind":      {protocol.Finished{State: protocol.Failed, Kind: "gremlins"}, task.Pending, task.AgentError, 1},
		"blocked":           {protocol.Finished{State: protocol.Failed, Kind: task.Blocked}, task.Held, task.Blocked, 0},
		"given back":        {protocol.Finished{State: protocol.Halted, WIP: true, Tip: "wip", Paths: []string{"a"}}, task.Pending, task.BoxDrained, 0},
		"lost by the box":   {protocol.Finished{State: protocol.Lost}, task.Pending, task.BoxLost, 0},
		"text from hell":    {protocol.Finished{State: protocol.Failed, Error: "a\x00b" + strings.Repeat("é", 5000)}, task.Pending, task.AgentError, 1},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, f *fixture) {
				taskID := f.create(task.KindWork)
				st := f.claim(f.boxes[0])
				f.mustSay(f.boxes[0], st, 1, append(started(), finished(c.f))...)
				got := f.wantStatus(taskID, c.status)
				if *got.FailureKind != c.kind || got.Charged != c.charged || got.RunID != nil && got.Status == task.Pending {
					t.Errorf("task %+v", got)
				}
				if c.f.WIP && (got.WIPSHA == nil || *got.WIPSHA != "wip") {
					t.Errorf("saved work %v", got.WIPSHA)
				}
			})
		})
	}
}

func TestOnFinishedSettles(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.OnFinished = func(tx *db.Tx, t *task.Row, r *Row, fin protocol.Finished) (bool, error) {
			if fin.Tip == "" || *r.Outcome != Succeeded {
				return false, nil
			}
			return true, f.Tasks.ToAwaitingCI(tx, t, "pr-1")
		}
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, finished(protocol.Finished{State: protocol.Succeeded, Tip: "tip"}))
		if row := f.wantStatus(taskID, task.AwaitingCI); *row.PRID != "pr-1" {
			t.Errorf("task %+v", row)
		}
	})
}

func TestGapsComeAgain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		if err := f.say(f.boxes[0], st, 6, ev("agent.update", nil)); err == nil {
			t.Error("a gap was stored")
		}
		f.mustSay(f.boxes[0], st, 3, ev("x", nil), ev("y", nil), ev("agent.update", nil), ev("agent.update", nil))
		if got := f.run(f.boxes[0], st.Run).CommittedSeq; got != 6 {
			t.Errorf("committed %d, want 6", got)
		}
		f.mustSay(f.boxes[1], st, 7, finished(protocol.Finished{State: protocol.Failed}))
		old := *st
		old.Attempt++
		f.mustSay(f.boxes[0], &old, 7, finished(protocol.Finished{State: protocol.Failed}))
		if r := f.run(f.boxes[0], st.Run); r.CommittedSeq != 6 || r.EndedAt != nil {
			t.Errorf("a foreign box or another attempt changed the run: %+v", r)
		}
	})
}

func TestLeases(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		if got, err := f.Accept(ctx, f.boxes[0], protocol.Accept{Run: st.Run, Attempt: 1}); err != nil || !got.OK || got.LeaseMS != 60_000 {
			t.Fatalf("accept: %+v %v", got, err)
		}
		f.mustSay(f.boxes[0], st, 1, started()...)
		f.pass(70 * time.Second)
		if got, err := f.Renew(ctx, f.boxes[0], protocol.Renew{Run: st.Run, Attempt: 1}); err != nil || !got.OK || got.CommittedSeq != 4 {
			t.Fatalf("renew: %+v %v", got, err)
		}
		f.pass(70 * time.Second)
		if err := f.Scan(ctx); err != nil {
			t.Fatal(err)
		}
		f.wantStatus(taskID, task.Running)
		fresh, err := f.GitToken(ctx, f.boxes[0], protocol.GitTokenAsk{Run: st.Run, Attempt: 1})
		if err != nil || f.live(st.GitToken, TokenGit) || !f.live(fresh.Token, TokenGit) {
			t.Errorf("git token: %v", err)
		}
		f.pass(6 * time.Second)
		if err := f.Scan(ctx); err != nil {
			t.Fatal(err)
		}
		row := f.wantStatus(taskID, task.Pending)
		if *row.FailureKind != task.LeaseExpired || row.Charged != 0 {
			t.Errorf("task %+v", row)
		}
		if f.live(fresh.Token, TokenGit) || f.live(st.ModelToken, TokenModel) {
			t.Error("tokens outlive the lease")
		}
		if got, err := f.Renew(ctx, f.boxes[0], protocol.Renew{Run: st.Run, Attempt: 1}); err != nil || got.OK {
			t.Errorf("a lost lease was renewed: %+v %v", got, err)
		}
		if _, err := f.GitToken(ctx, f.boxes[0], protocol.GitTokenAsk{Run: st.Run, Attempt: 1}); err == nil {
			t.Error("a lost attempt got a push token")
		}
		if next := f.claim(f.boxes[1]); next == nil || next.Attempt != 2 {
			t.Errorf("next try: %+v", next)
		}
	})
}

func TestStuck(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		for range 16 {
			f.pass(time.Minute)
			if _, err := f.Renew(ctx, f.boxes[0], protocol.Renew{Run: st.Run, Attempt: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Scan(ctx); err != nil {
			t.Fatal(err)
		}
		if !f.task(taskID).Stuck {
			t.Error("16 silent minutes are not stuck")
		}
		f.mustSay(f.boxes[0], st, 5, ev("agent.update", nil))
		if err := f.Scan(ctx); err != nil {
			t.Fatal(err)
		}
		if f.task(taskID).Stuck {
			t.Error("still stuck after news")
		}
	})
}

func TestHello(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		kept, forgotten := f.create(task.KindWork), f.create(task.KindWork)
		a, b := f.claim(f.boxes[0]), f.claim(f.boxes[0])
		if a.Task != kept {
			a, b = b, a
		}
		f.mustSay(f.boxes[0], a, 1, started()...)
		refs := []protocol.RunRef{{Run: a.Run, Attempt: 1, Seq: 9}, {Run: "gone", Attempt: 3}}
		v, err := f.Verdicts(context.Background(), f.boxes[0], refs)
		if err != nil || len(v) != 2 || v[0].Do != protocol.DoContinue || v[0].FromSeq != 5 || v[0].LeaseMS != 60_000 || v[1].Do != protocol.DoKill {
			t.Fatalf("verdicts %+v %v", v, err)
		}
		f.wantStatus(forgotten, task.Claimed) // its claim's answer may be under way
		f.pass(6 * time.Second)
		if _, err := f.Verdicts(context.Background(), f.boxes[0], refs); err != nil {
			t.Fatal(err)
		}
		f.wantStatus(kept, task.Running)
		if row := f.wantStatus(forgotten, task.Pending); *row.FailureKind != task.BoxLost || f.live(b.ModelToken, TokenModel) {
			t.Errorf("forgotten run: %+v", row)
		}
	})
}

func TestCancelHaltsTheBox(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		f.write(func(tx *db.Tx) error {
			row, _, err := task.Lock(tx, f.account, taskID)
			if err != nil {
				return err
			}
			return f.Tasks.Cancel(tx, &row)
		})
		f.wantStatus(taskID, task.Cancelled)
		if r := f.run(f.boxes[0], st.Run); *r.Outcome != Interrupted || f.live(st.GitToken, TokenGit) {
			t.Errorf("run %+v", r)
		}
		owed := f.commands.of(f.boxes[0])
		if len(owed) != 1 || owed[0].Kind != protocol.CommandHalt || owed[0].Run != st.Run || owed[0].Mode != protocol.HaltNow {
			t.Errorf("commands owed: %+v", owed)
		}
	})
}
