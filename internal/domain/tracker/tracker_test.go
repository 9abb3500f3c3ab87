package tracker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/linear"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

const goodKey = "lin_api_good-and-long-enough"

var audited = db.Q[string](`SELECT kind FROM audit WHERE object = $1 ORDER BY seq`)

// peer is a Linear that speaks its wire format: it knows one key and one team, takes an id
// once, and can lose its answers.
type peer struct {
	mu     sync.Mutex
	issues map[string]map[string]string // by id: the input
	key    string
	lose   int // answers to creations that are lost
	fails  string
	calls  int
}

type graphQL struct {
	Query     string `json:"query"`
	Variables struct {
		ID    string            `json:"id"`
		Input map[string]string `json:"input"`
	} `json:"variables"`
}

// ServeHTTP implements http.Handler.
func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	fail := func(status int, code, message string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{
			"message": message, "extensions": map[string]any{"code": code},
		}}})
	}
	answer := func(data any) { _ = json.NewEncoder(w).Encode(map[string]any{"data": data}) }
	shown := func(id string) map[string]string {
		return map[string]string{"id": id, "identifier": "ENG-7", "url": "https://linear.app/acme/issue/ENG-7"}
	}
	var in graphQL
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Method != http.MethodPost {
		fail(400, "INVALID_INPUT", "no call")
		return
	}
	switch {
	case r.Header.Get("Authorization") != p.key:
		fail(401, "AUTHENTICATION_ERROR", "Authentication required, not authenticated")
	case p.fails != "":
		fail(400, p.fails, p.fails)
	case strings.Contains(in.Query, "viewer"):
		answer(map[string]any{
			"viewer": map[string]string{"id": "u1", "name": "Yard Bot"},
			"teams":  map[string]any{"nodes": []any{map[string]string{"id": "t1", "key": "ENG", "name": "Engineering"}}},
		})
	case strings.Contains(in.Query, "issueCreate"):
		id := in.Variables.Input["id"]
		if p.issues[id] != nil || in.Variables.Input["teamId"] != "t1" {
			fail(400, "INVALID_INPUT", "Argument Validation Error")
			return
		}
		p.issues[id] = in.Variables.Input
		if p.lose > 0 {
			p.lose--
			w.WriteHeader(502)
			return
		}
		answer(map[string]any{"issueCreate": map[string]any{"success": true, "issue": shown(id)}})
	default:
		nodes := []any{}
		if p.issues[in.Variables.ID] != nil {
			nodes = append(nodes, shown(in.Variables.ID))
		}
		answer(map[string]any{"issues": map[string]any{"nodes": nodes}})
	}
}

// yard is two nodes on one database, and a Linear.
type yard struct {
	t     *testing.T
	db    *db.DB
	nodes [2]*Service
	peer  *peer
	up    []Failure // told to others

	mu sync.Mutex
	at time.Time
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.at
}

func (y *yard) wait(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.at = y.at.Add(d)
}

func onBoth(t *testing.T, fn func(*yard)) {
	t.Helper()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := &yard{t: t, at: time.Unix(1_800_000_000, 0), peer: &peer{issues: map[string]map[string]string{}, key: goodKey}}
			srv := httptest.NewServer(y.peer)
			t.Cleanup(srv.Close)
			y.db = dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.clock})
			ring := seal.New()
			for i := range y.nodes {
				y.nodes[i] = New(Needs{
					DB: y.db, Hub: event.NewHub(), Due: duetest.New(y.db, event.NewHub()), Ring: ring, Linear: linear.New(srv.URL, nil),
					Logger: slog.New(slog.DiscardHandler),
				})
			}
			err := y.db.Write(t.Context(), func(tx *db.Tx) error {
				return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"},
					seed.Repo{ID: "r1", Account: "acme", Owner: "acme", Name: "web"})
			})
			if err != nil {
				t.Fatal(err)
			}
			GivenUp.On(y.db, func(tx *db.Tx, f Failure) error {
				tx.AfterCommit(func() { y.up = append(y.up, f) })
				return nil
			})
			fn(y)
		})
	}
}

func (y *yard) as(account string) context.Context {
	ctx := policy.With(y.t.Context(), policy.Actor{Credential: policy.PAT, CredentialID: "x", UserID: "ada"})
	return db.WithAccount(ctx, account)
}

func (y *yard) connect() {
	y.t.Helper()
	got, err := y.nodes[0].set(y.as("acme"), setIn{APIKey: goodKey, Team: "eng"})
	if err != nil || !got.Connected || *got.Team != "ENG" || *got.Viewer != "Yard Bot" {
		y.t.Fatalf("%+v, %v", got, err)
	}
}

// want has an issue opened, and answers its id.
func (y *yard) want() (issueID string, ok bool) {
	y.t.Helper()
	err := y.db.Write(y.as("acme"), func(tx *db.Tx) error {
		r, _, err := repo.ByID(tx, "r1")
		if err != nil {
			return err
		}
		issueID, ok, err = y.nodes[0].Want(tx, r, "Footer", "It shows last year. token=hunter2hunter2", []string{"team: web"})
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return issueID, ok
}

func (y *yard) pass() {
	y.t.Helper()
	duetest.Pass(y.t.Context(), y.t, y.nodes[0].Due, y.nodes[1].Due)
}

// issuesOf50 asks for a page of issues.
var issuesOf50 = issuesIn{PageIn: op.PageIn{PerPage: 50}}

func (y *yard) issue() Issue {
	y.t.Helper()
	page, err := y.nodes[0].issues(y.as("acme"), issuesOf50)
	if err != nil || len(page.Data) != 1 {
		y.t.Fatalf("%+v, %v", page, err)
	}
	return page.Data[0]
}

func (y *yard) events(issueID string) (all []string) {
	y.t.Helper()
	err := y.db.Read(y.as("acme"), func(tx *db.Tx) (err error) {
		all, err = audited.All(tx, issueID)
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return all
}

// An issue is opened once, without what looks like a secret, and known for ours.
func TestOpened(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		if _, ok := y.want(); ok {
			t.Error("without a key an issue is to be opened")
		}
		y.connect()
		issueID, ok := y.want()
		if i := y.issue(); !ok || i.State != Wanted || *i.Repo != "acme/web" {
			t.Errorf("%+v", i)
		}
		y.pass()
		y.pass()
		i := y.issue()
		if i.State != Opened || *i.Identifier != "ENG-7" || i.ID != issueID || i.Error != nil || i.EndedAt == nil {
			t.Errorf("%+v", i)
		}
		said := y.peer.issues[issueID]
		if len(y.peer.issues) != 1 || said["title"] != "Footer" || strings.Contains(said["description"], "hunter2") ||
			!strings.HasSuffix(said["description"], "Labels: team: web\n\nFor acme/web.") {
			t.Errorf("%+v", y.peer.issues)
		}
		if got := strings.Join(y.events(issueID), " "); got != "integration.linear_requested integration.linear_opened" {
			t.Error(got)
		}
		for account, want := range map[string]bool{"acme": true, "rival": false} {
			err := y.db.Read(y.as(account), func(tx *db.Tx) error {
				made, err := Made(tx, issueID)
				if made != want {
					t.Errorf("%s: %v", account, made)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if page, err := y.nodes[0].issues(y.as("rival"), issuesOf50); err != nil || len(page.Data) != 0 {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

// An answer that was lost makes no second issue.
func TestLost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.connect()
		y.peer.lose = 1
		y.want()
		y.pass()
		if i := y.issue(); i.State != Wanted || i.Error == nil {
			t.Errorf("%+v", i)
		}
		y.wait(longest)
		y.pass()
		if i := y.issue(); i.State != Opened || len(y.peer.issues) != 1 {
			t.Errorf("%+v, %d", i, len(y.peer.issues))
		}
	})
}

// Linear is asked again while it may answer, for a day; a refusal is final.
func TestFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails string
		tries int // 0: many
	}{"refused": {"INVALID_INPUT", 1}, "limited": {"RATELIMITED", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(y *yard) {
				y.connect()
				y.peer.fails = c.fails
				issueID, _ := y.want()
				tries := 0
				for ; y.issue().State == Wanted && tries < 300; tries++ {
					y.pass()
					y.wait(longest)
				}
				if i := y.issue(); i.State != Failed || i.Error == nil || c.tries > 0 && tries != c.tries || c.tries == 0 && tries < 90 {
					t.Errorf("%+v after %d tries", i, tries)
				}
				if got := strings.Join(y.events(issueID), " "); got != "integration.linear_requested integration.linear_failed" {
					t.Error(got)
				}
				if len(y.up) != 1 || y.up[0].RepoID != "r1" || y.up[0].Title != "Footer" || y.up[0].Why == "" {
					t.Errorf("told %+v", y.up)
				}
			})
		})
	}
}

// A key that Linear takes no more is told, and another one lets what waits go on at once.
func TestKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.connect()
		y.peer.key = "lin_api_another-long-one"
		y.want()
		y.pass()
		got, err := y.nodes[0].get(y.as("acme"), struct{}{})
		if err != nil || got.Error == nil || strings.Contains(*got.Error, goodKey) || y.issue().State != Wanted {
			t.Errorf("%+v, %v", got, err)
		}
		for key, want := range map[string]string{goodKey: "linear-refused", "a key with spaces": ""} {
			_, err := y.nodes[0].set(y.as("acme"), setIn{APIKey: key, Team: "ENG"})
			if f, ok := errors.AsType[*fault.Error](err); !ok || want != "" && f.Slug != want {
				t.Errorf("%v", err)
			}
		}
		if _, err := y.nodes[0].set(y.as("acme"), setIn{APIKey: y.peer.key, Team: "OPS"}); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("a team that is none: %v", err)
		}
		if _, err := y.nodes[0].set(y.as("acme"), setIn{APIKey: y.peer.key, Team: "t1"}); err != nil {
			t.Fatal(err)
		}
		y.pass()
		if got, err = y.nodes[0].get(y.as("acme"), struct{}{}); err != nil || got.Error != nil || y.issue().State != Opened {
			t.Errorf("%+v, %v, %+v", got, err, y.issue())
		}
	})
}

// What is to be opened when the key is forgotten fails.
func TestDeleted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.connect()
		y.want()
		for _, want := range []bool{true, false} {
			if got, err := y.nodes[0].delete(y.as("acme"), struct{}{}); err != nil || got.Deleted != want {
				t.Errorf("%+v, %v", got, err)
			}
		}
		y.pass()
		if i := y.issue(); i.State != Failed || len(y.peer.issues) != 0 {
			t.Errorf("%+v", i)
		}
	})
}

// Two nodes that take what is due open each issue once.
func TestNodesAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.connect()
		for range 20 {
			y.want()
		}
		y.pass()
		if len(y.peer.issues) != 20 || y.peer.calls != 21 {
			t.Errorf("%d issues, %d calls", len(y.peer.issues), y.peer.calls)
		}
	})
}

// A clock that was set back does not put an issue off.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.connect()
		y.peer.fails = "RATELIMITED"
		y.want()
		y.pass()
		y.peer.fails = ""
		y.wait(-48 * time.Hour)
		y.pass()
		if i := y.issue(); i.State != Wanted {
			t.Fatal("it was not put off")
		}
		y.wait(time.Hour)
		y.pass()
		if i := y.issue(); i.State != Opened {
			t.Errorf("%+v", i)
		}
	})
}
