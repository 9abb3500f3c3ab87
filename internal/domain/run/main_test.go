package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/proof/standin"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

var (
	allRuns = db.Q[Row](`SELECT ` + columns + ` FROM runs WHERE account_id = $1 ORDER BY id`)
	getRepo = db.Q[task.Repo](`SELECT id, owner, name, enabled, default_branch, 'http://host/' || id AS clone_url, '' AS template,
		'' AS isolation, 0 AS check_timeout, '' AS conflicts FROM repos WHERE id = $1`)
)

// fixture is one account with a repository and two boxes.
type fixture struct {
	*Service
	t       testing.TB
	clock   *atomic.Int64 // microseconds
	account string
	boxes   [2]string

	commands *outbox
	faulty   map[string][]string // faults of BoxBlamed, by box

	keys   *sync.Map // of the boxes' present processes, by box
	others *others
}

// outbox keeps the commands for boxes.
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
	f := &fixture{t: t, clock: clock, keys: &sync.Map{}, others: &others{}, commands: &outbox{all: map[string][]protocol.Command{}},
		faulty: map[string][]string{}}
	f.others.f = f
	f.serve(d)
	return f.tenant()
}

// serve starts the fixture's node on a database.
func (f *fixture) serve(d *db.DB) {
	hub := event.NewHub()
	stand := related{standin.Tasks{Agent: "claude", Places: 100}}
	repos := standin.Repos(func(tx *db.Tx, id string) (task.Repo, error) { return getRepo.One(tx, id) })
	tasks, queue := standin.Services(d, hub, repos, stand)
	task.RunUnwanted.On(d, func(tx *db.Tx, u task.Unwanted) error { return f.Stop(tx, u) })
	CommandQueued.On(d, func(tx *db.Tx, c Command) error {
		tx.AfterCommit(func() { f.commands.put(c.BoxID, c.Command) })
		return nil
	})
	BoxBlamed.On(d, func(tx *db.Tx, b Blame) error {
		if f.others.deaf {
			return errors.New("out of order")
		}
		tx.AfterCommit(func() { f.faulty[b.BoxID] = append(f.faulty[b.BoxID], b.Why) })
		return nil
	})
	f.Service = New(Needs{DB: d, Hub: hub, Tasks: tasks, Queue: queue, Bus: f.others, Logger: slog.New(slog.DiscardHandler),
		GatewayURL: "http://gateway",
		CommitName: "Yardmaster", CommitEmail: "agent@example.com",
		Setup: f.others, Boxes: f.others, Vault: f.others, Branches: f.others, Settler: f.others, Asks: f.others, Artifacts: f.others})
}

// tenant returns the fixture with a new account.
func (f *fixture) tenant() *fixture {
	f.t.Helper()
	g := *f
	g.account = id.New()
	g.boxes = [2]string{"a-" + g.account, "b-" + g.account}
	g.write(func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Account{ID: g.account, Seats: 100}); err != nil {
			return err
		}
		if err := seed.Add(tx, seed.Repo{ID: g.account, Account: g.account, Name: "web"}); err != nil {
			return err
		}
		for _, b := range g.boxes {
			if err := seed.Add(tx, seed.Box{ID: b, Account: g.account, Slots: 100}); err != nil {
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

// scan is one pass of Loop.
func (f *fixture) scan() {
	f.t.Helper()
	if err := f.Scan(f.ctx()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) pass(d time.Duration) { f.clock.Add(d.Microseconds()) }

func (f *fixture) create(kind string) (taskID string) {
	f.t.Helper()
	f.write(func(tx *db.Tx) error {
		t, err := f.Tasks.Create(tx, task.Repo{ID: f.account}, task.Spec{Kind: kind, Sink: task.SinkQueued, Title: "Fix it",
			Problem:  "It is broken.",
			Template: "default", Command: []string{"make", "check"}, Checkout: "c0ffee"})
		taskID = t.ID
		return err
	})
	return taskID
}

// claim makes a box claim without waiting; nil if there is no run.
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

// errNotTaken says that the answer does not cover all events.
var errNotTaken = errors.New("the events are not stored")

// say sends events whose first has the number seq.
func (f *fixture) say(box string, st *protocol.Start, seq int64, events ...protocol.Event) error {
	for i := range events {
		events[i].Seq = seq + int64(i)
	}
	out, err := f.Append(context.Background(), box,
		protocol.Envelope{V: protocol.Version, Run: st.Run, Attempt: st.Attempt, Events: events})
	if err == nil && !out.Closed && out.Seq < seq+int64(len(events))-1 {
		err = fmt.Errorf("%w: %+v", errNotTaken, out)
	}
	return err
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

// started returns the first events of a run.
func started() []protocol.Event {
	return []protocol.Event{ev(protocol.EventAccepted, nil), ev(protocol.EventPreparing, nil),
		ev(protocol.EventPrepared, protocol.Prepared{Base: "base"}),
		ev(protocol.EventStarted, protocol.Started{Agent: "claude", Version: "2", Session: "s", Isolation: "landlock",
			Holds: []string{"files", "network\x00"}})}
}

func finished(f protocol.Finished) protocol.Event { return ev(protocol.EventFinished, f) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// sealKey returns the key of a box's present process.
func (f *fixture) sealKey(boxID string) string {
	key, _ := f.keys.Load(boxID)
	text, _ := key.(string)
	return text
}

func (f *fixture) setSealKey(boxID, key string) { f.keys.Store(boxID, key) }

// newSealKey gives a box's process a new key.
func (f *fixture) newSealKey(boxID string) seal.Recipient {
	f.t.Helper()
	key := newRecipient(f.t)
	f.setSealKey(boxID, key.Public())
	return key
}

func newRecipient(t testing.TB) seal.Recipient {
	t.Helper()
	key, err := seal.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	return key
}
