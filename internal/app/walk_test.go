package app

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/chance"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// steps is how many random steps TestWorkUnderDisorder takes on each database.
var steps = flag.Int("steps", 200, "random steps of the model of the work plane, on each database")

// stepsACase is how many of them one account lives through.
const stepsACase = 100

var (
	walkAccount = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, created_at)
		VALUES ($1, $1, 'organization', 'self_hosted', 3, 0)`)
	walkRepo = db.SWith[walkRepoArgs](`INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled,
		policy_yml, created_at)
		VALUES (:id, :account_id, :account_id, :name, 'builtin', 'main', FALSE, TRUE, :policy_yml, 0)`)
	walkBox = db.S(`INSERT INTO boxes (id, account_id, name, owner_target, owner_id, state, nkey, token_hash, token_expires_at, slots,
		agents, isolation, presence, created_at)
		VALUES ($1, $2, $1, 'org', $2, 'enrolled', '', $1, 0, 2, '[]', '["landlock"]', 'online', 0)`)
	unmet = db.Q[string](`SELECT u.id FROM task_deps d JOIN tasks u ON u.id = d.depends_on
		WHERE d.task_id = $1 AND u.status NOT IN ('completed', 'merged')`)
)

// walkRepoArgs are the parameters of walkRepo.
type walkRepoArgs struct {
	ID, AccountID, Name, PolicyYML string
}

// world is a database with two nodes on it, and the clock of both.
type world struct {
	t     *testing.T
	clock atomic.Int64 // microseconds
	cfg   *config.Config
	ring  *seal.Keyring
	host  *builtin.Host
	forge *forge
	dbs   [2]*db.DB
	nodes [2]*node
	walk  *walk          // whose account things happen to
	seen  map[string]int // what came to pass, for the log
	kinds map[string]int // audit rows
}

// node is the program as it is wired, with two far ends replaced: there is no
// bus, so boxes call it directly, and the code host is a forge, of which work
// that has not begun is told that it is mergeless.
type node struct {
	*App
	http  http.Handler
	calls []modelCall // under way: set aside, not settled
}

// modelCall is a call of an agent to a model that was let through.
type modelCall struct {
	of       *attempt
	grant    llm.Grant
	reserved int64
}

// mergeless foresees that any two works of one repository conflict, and that
// each commit changes a.go.
type mergeless struct{}

func (mergeless) Changes(context.Context, string, string) ([]string, error) {
	return []string{"a.go"}, nil
}
func (mergeless) Conflicts(_ context.Context, _, a, _ string) ([]string, error) {
	return []string{a}, nil
}

// quietBus is a bus that no box is on.
type quietBus struct{ box.Bus }

func (quietBus) Nudge(string, string)               {}
func (quietBus) Shut(context.Context, string) error { return nil }

func (w *world) now() time.Time { return time.UnixMicro(w.clock.Load()) }

func newWorld(t *testing.T, e db.Engine) *world {
	w := &world{t: t, forge: newForge(), seen: map[string]int{}, kinds: map[string]int{}}
	w.clock.Store(time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixMicro())
	none := func(string) (string, bool) { return "", false }
	var err error
	w.cfg, err = config.Load("test", []string{"--data", t.TempDir(), "--rate-limits", "off", "--setup-token", id.Secret(id.Setup)}, none,
		io.Discard)
	w.ring = seal.New()
	if err == nil {
		w.host, err = builtin.New(builtin.Config{Root: filepath.Join(w.cfg.Data, "git"), BaseURL: "http://127.0.0.1:1",
			Logger: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		t.Fatal(err)
	}
	dsn := dbtest.DSN(t, e)
	for i := range w.nodes {
		w.dbs[i] = dbtest.Open(t, dsn, db.Options{Clock: w.now})
		w.nodes[i] = w.boot(w.dbs[i])
	}
	return w
}

// boot starts a node on a database. It remembers nothing.
func (w *world) boot(d *db.DB) *node {
	a := &App{cfg: w.cfg, opts: Options{Version: "test"}, log: slog.New(complaints{w}), db: d, hub: event.NewHub(), ring: w.ring,
		clients: w.ring, host: w.host, prices: llm.DefaultPrices(), base: "http://127.0.0.1:1",
		clock: w.now, line: quietBus{}, hosts: w.forge.served(), repoFolders: w.forge, commits: mergeless{},
		backoff: []time.Duration{time.Second, time.Minute}}
	var err error
	if a.mail, err = mailbox(a); err == nil {
		a.blob, err = a.objects(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	a.parts = a.wire()
	task.Moved.On(d, func(tx *db.Tx, m task.Move) error { return w.moved(tx, m.Task, m.From) })
	return &node{App: a, http: a.handler()}
}

// complaints fails a walk on whose account a node has to log an error.
type complaints struct{ w *world }

func (c complaints) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (c complaints) WithAttrs([]slog.Attr) slog.Handler           { return c }
func (c complaints) WithGroup(string) slog.Handler                { return c }
func (c complaints) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	if c.w.walk != nil {
		c.w.walk.complain(fmt.Errorf("logged: %s", text))
	}
	return nil
}

// moved is told of each move of a task, in its transaction.
func (w *world) moved(tx *db.Tx, t *task.Row, from task.Status) error {
	m := w.walk
	if m == nil || t.AccountID != m.account {
		return nil
	}
	if t.Status == task.Claimed {
		if early, err := unmet.All(tx, t.ID); err != nil {
			return err
		} else if len(early) > 0 {
			tx.AfterCommit(func() { m.complain(fmt.Errorf("task %s was claimed before what it depends on: %s", t.ID, early)) })
		}
	}
	taskID, to := t.ID, t.Status
	tx.AfterCommit(func() { m.hear(taskID, from, to) })
	return nil
}

// walk is one account with three repositories and two boxes, on two nodes, all
// at odds with each other. What it believes is what it was told: by the moves
// of tasks that were committed, and by the answers of calls.
type walk struct {
	*world
	r        *rapid.T
	account  string
	user     string
	bearer   string
	operator string // its token
	repos    []string
	boxes    [2]string
	attempts []*attempt
	plans    []string
	last     string // what was done last
	turn     int    // draws so far
	fleets   int64  // changes of boxes and repositories
	asked    [3]int64
	waits    string // when waiting looked last

	mu      sync.Mutex
	tasks   []string // as they were made
	believe map[string]task.Status
	moves   map[string][]task.Status // since the last check
	heard   []move                   // that do not follow on what was heard before
	broken  error

	expected []string // audit rows that the calls since the last check owe: kind and object
	was      state    // at the last check
	newest   link     // the newest audit row by then
	stuck    map[string]bool
	adopted  map[string]int // blockers that a later run of a task took over
	unfit    map[string]any // what ails a box, by its id; nil: nothing
	seats    int            // that it pays for
	given    []time.Time    // until when it has one more
	pullBelief
	paid    int64 // micro-dollars of calls that were settled
	written int64 // micro-dollars that were given up with a node
}

// attempt is what a box believes of an attempt it was given.
type attempt struct {
	box     string
	claim   string
	start   *protocol.Start
	sent    []protocol.Event // what was accepted, by seq
	stored  int              // of them, held against the database
	stale   []string         // git tokens that were replaced
	proved  string           // its tokens were tried in this state
	allowed [2]time.Time     // when each node last let a call to a model through
}

func (m *walk) complain(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken == nil {
		m.broken = err
	}
}

// hear is told of a move after its commit: of two that follow each other at once,
// on a node each, maybe in the wrong order.
func (m *walk) hear(taskID string, from, to task.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = append(m.heard, move{taskID, from, to})
	for i := 0; i < len(m.heard); i++ {
		h := m.heard[i]
		was, known := m.believe[h.taskID]
		if known != (h.from != "") || was != h.from {
			continue // which is right only if another comes before it: see check
		}
		if h.from != "" && !task.Allowed(h.from, h.to) {
			m.broken = fmt.Errorf("task %s moved from %s to %s", h.taskID, h.from, h.to)
		}
		if !known {
			m.tasks = append(m.tasks, h.taskID)
		}
		m.believe[h.taskID] = h.to
		m.moves[h.taskID] = append(m.moves[h.taskID], h.to)
		m.heard = slices.Delete(m.heard, i, i+1)
		i = -1
	}
}

type move struct {
	taskID   string
	from, to task.Status
}

// policies are the policy files of the three repositories.
var policies = [3]string{
	"review: {mode: off}\nconflicts: hold\nbudget: {run_usd: 1, task_usd: 2}\nchecks: {command: ./check}\nmerge: {mode: ask}\n",
	"review: {mode: off}\nconflicts: ignore\nmerge: {mode: auto, method: squash}\n",
	"review: {mode: off}\nconflicts: stack\nbudget: {run_usd: 0.5}\nmerge: {mode: never, on_cancel: keep, delete_branch: false}\n",
}

func (w *world) begin(r *rapid.T) *walk {
	m := &walk{world: w, r: r, account: id.New(), user: id.New(), believe: map[string]task.Status{}, moves: map[string][]task.Status{},
		stuck: map[string]bool{}, adopted: map[string]int{}, unfit: map[string]any{}, was: state{}, seats: 3, pullBelief: newPullBelief()}
	for i, n := range w.nodes {
		if len(n.calls) > 0 { // of a walk that failed
			w.nodes[i] = w.boot(n.db)
		}
	}
	m.boxes = [2]string{id.New(), id.New()}
	w.walk = m
	w.forge.account = m.account
	m.do(func(tx *db.Tx) error {
		m.repos = nil
		if _, err := walkAccount.Exec(tx, m.account); err != nil {
			return err
		}
		if err := people.Placed.Send(tx, m.account); err != nil {
			return err
		}
		err := seed.Add(tx, seed.User{ID: m.user}, seed.Member{Account: m.account, User: m.user, Role: string(policy.Owner)})
		if err != nil {
			return err
		}
		for i, name := range repoNames {
			m.repos = append(m.repos, id.New())
			if _, err := walkRepo.Exec(tx, walkRepoArgs{
				ID: m.repos[i], AccountID: m.account, Name: name, PolicyYML: "version: 1\n" + policies[i],
			}); err != nil {
				return err
			}
		}
		for _, b := range m.boxes {
			if _, err := walkBox.Exec(tx, b, m.account); err != nil {
				return err
			}
		}
		minted, err := token.Mint(tx, policy.PAT, m.user, nil, policy.Owner.Ceiling(), nil)
		if err != nil {
			return err
		}
		m.bearer = minted.Token
		if _, err := makeAdmin.Exec(tx, m.user); err != nil {
			return err
		}
		minted, err = token.Mint(tx, policy.Operator, m.user, nil,
			policy.Scopes(policy.AdminAccounts, policy.AdminGrants, policy.AdminReadOrgs), nil)
		m.operator = minted.Token
		return err
	})
	for i := range repoNames {
		w.forge.install(m.hostRepo(m.repos[i]), "version: 1\n"+policies[i])
	}
	m.must(m.nodes[0], 201, "POST", "/v1/billing/keys", map[string]any{"provider": "scripted"})
	m.see(func(tx *db.Tx) (err error) {
		m.newest, _, err = newestLink.Maybe(tx, m.account)
		return err
	})
	return m
}

var repoNames = []string{"web", "api", "ops"}

func (m *walk) fail(format string, a ...any) {
	m.r.Fatalf("after %s: %s", m.last, fmt.Sprintf(format, a...))
}

// as is the context of what the account's owner does.
func (m *walk) as() context.Context {
	actor := policy.Actor{UserID: m.user, AccountID: m.account, Credential: policy.PAT, Scopes: policy.Owner.Ceiling()}
	return db.WithAccount(policy.With(context.Background(), actor), m.account)
}

func (m *walk) do(fn func(tx *db.Tx) error) {
	if err := m.dbs[0].Write(m.as(), fn); err != nil {
		m.fail("%v", err)
	}
}

// see is do without a commit.
func (m *walk) see(fn func(tx *db.Tx) error) {
	if err := m.dbs[0].Read(m.as(), fn); err != nil {
		m.fail("%v", err)
	}
}

// one draws one of a list, by its place: the trace of a walk stays readable, and
// the same whatever the ids are. Small numbers are drawn more often than large
// ones, so the list begins elsewhere each time.
func one[T any](m *walk, list []T, label string) T {
	m.turn++
	return list[(rapid.IntRange(0, len(list)-1).Draw(m.r, label)+m.turn)%len(list)]
}

// on is a node to talk to.
func (m *walk) on() *node { return one(m, m.nodes[:], "node") }

func (m *walk) elapse(d time.Duration) { m.clock.Add(d.Microseconds()) }

// call makes a request as the account's owner.
func (m *walk) call(n *node, method, path string, body any) (int, map[string]any) {
	return m.callAs(n, m.bearer, method, path, body)
}

func (m *walk) callAs(n *node, bearer, method, path string, body any) (int, map[string]any) {
	w := httptest.NewRecorder()
	var in []byte
	if body != nil {
		var err error
		if in, err = json.Marshal(body); err != nil {
			m.fail("%v", err)
		}
	}
	req := httptest.NewRequest(method, path, bytes.NewReader(in))
	req.Header.Set("Authorization", "Bearer "+bearer)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	n.http.ServeHTTP(w, req)
	out := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		m.complain(fmt.Errorf("%s %s: %s", method, path, w.Body))
	}
	if w.Code >= 500 || w.Code == 401 {
		m.complain(fmt.Errorf("%s %s: %d %s", method, path, w.Code, w.Body))
	}
	return w.Code, out
}

// must makes a request that has to succeed, or to fail as said.
func (m *walk) must(n *node, status int, method, path string, body any) map[string]any {
	got, out := m.call(n, method, path, body)
	if got != status {
		m.fail("%s %s answers %d, want %d: %v", method, path, got, status, out)
	}
	return out
}

// owe notes an audit row that a call has to leave.
func (m *walk) owe(kind, object string) { m.expected = append(m.expected, kind+" "+object) }

// idle is the panic of an action that finds nothing to do.
type idle struct{}

func does(action func()) (did bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(idle); !ok {
				panic(r)
			}
		}
	}()
	action()
	return true
}

// Whatever happens to an account's work, and in whichever order, what must hold
// holds, and everything comes to an end.
func TestWorkUnderDisorder(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} { // always: it is what finds what only one of them does
		t.Run(e.String(), func(t *testing.T) {
			set := func(name, value string) {
				if err := flag.Set(name, value); err != nil {
					t.Fatal(err)
				}
			}
			for name, value := range map[string]string{"rapid.checks": strconv.Itoa(min(10, max(1, *steps/stepsACase))),
				"rapid.steps": strconv.Itoa(stepsACase)} {
				was := flag.Lookup(name).Value.String()
				set(name, value)
				defer set(name, was)
			}
			was := flag.Lookup("rapid.seed").Value.String()
			defer set("rapid.seed", was)
			seed, err := strconv.ParseUint(was, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if seed == 0 { // -rapid.seed, which a failure names, was not given
				seed = chance.Seed(t) >> 1
			}
			t.Logf("-rapid.seed %d -steps %d", seed, *steps)
			w, began := newWorld(t, e), time.Now()
			taken := map[string]int{}
			total := 0
			for round := uint64(0); total < *steps && !t.Failed(); round++ {
				set("rapid.seed", strconv.FormatUint(seed+round, 10))
				rapid.Check(t, func(r *rapid.T) {
					m := w.begin(r)
					actions := m.actions()
					names := slices.Sorted(maps.Keys(actions))
					r.Repeat(map[string]func(*rapid.T){
						"step": func(*rapid.T) {
							for did := false; !did; {
								m.last = one(m, names, "action")
								did = does(actions[m.last])
							}
							taken[m.last]++
							total++
						},
						"": func(*rapid.T) { m.check() },
					})
					m.last = "the last step"
					m.drain()
				})
			}
			took := time.Since(began)
			t.Logf("-rapid.seed %d: %d steps in %s, %.0f a second: %v; audit rows: %v; and %v", seed, total, took.Round(time.Millisecond),
				float64(total)/took.Seconds(), taken, w.kinds, w.seen)
		})
	}
}
