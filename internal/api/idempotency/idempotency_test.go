package idempotency

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
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) { dbtest.Declared(t) }

func ledger(d *db.DB) *Ledger {
	return &Ledger{DB: d, Hub: event.NewHub(), Logger: slog.New(slog.DiscardHandler)}
}

var (
	effect  = db.S(`INSERT INTO meta (key, value) VALUES ($1, $2)`)
	effects = db.Q[struct {
		N int `db:"n"`
	}](`SELECT COUNT(*) AS n FROM meta WHERE key LIKE 'effect%'`)
)

type in struct {
	Name string `json:"name"`
}

type out struct {
	N int `json:"n"`
}

// node is one server; how often its handlers ran is counted over all nodes.
type node struct {
	http.Handler
	ledger *Ledger
}

type counter struct {
	mu sync.Mutex
	n  int
	// committed is closed by the handler of a request named "killed".
	committed chan struct{}
}

func (c *counter) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

// serve makes a node. X-As is "account/credential".
func serve(d *db.DB, runs *counter) node {
	l := ledger(d)
	do := func(ctx context.Context, in in) (o out, err error) {
		o.N = runs.next()
		switch in.Name {
		case "refuse":
			return o, fault.Reason("task_terminal", "No.")
		case "full":
			return o, fault.New(fault.RateLimited, "queue-full", "Full.").After(3 * time.Second)
		case "fail":
			return o, errors.New("down")
		case "panic":
			panic("on purpose")
		}
		return o, d.Write(ctx, func(tx *db.Tx) error {
			_, err := effect.Exec(tx, "effect "+in.Name, "")
			return err
		})
	}
	row := func(id, method, path string) op.Row {
		return op.Row{ID: id, Method: method, Path: path, Rule: policy.PerRequest(), Group: "Items", Status: 201}
	}
	kept := func(ctx context.Context, in in) (o out, err error) {
		err = d.Write(op.Answers(ctx, &o), func(tx *db.Tx) error {
			o.N = runs.next()
			_, err := effect.Exec(tx, "effect "+in.Name, "")
			return err
		})
		switch in.Name {
		case "killed": // from here on nothing of this node runs
			close(runs.committed)
			<-ctx.Done()
		case "late failure":
			return o, errors.New("down")
		case "changed":
			o.N = -1
		}
		return o, err
	}
	secret := row("item.secret", "POST", "/v1/secrets")
	secret.NoStore = true
	h := rest.Handler(rest.Config{AccountHeader: "X-As", Pipeline: &op.Pipeline{
		BaseURL: "http://yard", Ledger: l,
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			account, credential, _ := strings.Cut(p.Account, "/")
			return policy.Actor{Credential: policy.PAT, CredentialID: credential, AccountID: account}, nil
		},
	}}, []op.Op{
		op.New(row("item.make", "POST", "/v1/items"), do),
		op.New(row("item.kept", "POST", "/v1/kept"), kept),
		op.New(row("item.put", "PUT", "/v1/items"), do),
		op.New(row("item.other", "POST", "/v1/others"), do),
		op.New(secret, do),
	})
	return node{h, l}
}

type answer struct {
	*http.Response
	body map[string]any
}

func (n node) send(t *testing.T, method, path, as, key, body string) answer {
	t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-As", as)
	if key != "" {
		req.Header.Set("Idempotency-Key", strings.TrimPrefix(key, "="))
	}
	w := httptest.NewRecorder()
	n.ServeHTTP(w, req)
	a := answer{Response: w.Result()}
	if err := json.Unmarshal(w.Body.Bytes(), &a.body); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return a
}

func (a answer) slug() string {
	kind, _ := a.body["type"].(string)
	return strings.TrimPrefix(kind, "http://yard/problems/")
}

func (a answer) replayed() bool { return a.Header.Get("X-Idempotent-Replayed") == "true" }

func TestReplay(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		var runs counter
		n := serve(d, &runs)
		first := n.send(t, "POST", "/v1/items", "acme/a", "k", `{"name": "x"}`)
		if first.StatusCode != 201 || first.replayed() || first.body["n"] != 1.0 {
			t.Fatalf("first: %d %v", first.StatusCode, first.body)
		}
		second := n.send(t, "POST", "/v1/items", "acme/a", "k", `{"name": "x"}`)
		if second.StatusCode != 201 || !second.replayed() || second.body["n"] != 1.0 ||
			second.Header.Get("Content-Type") != "application/json" ||
			second.Header.Get("X-Request-Id") == first.Header.Get("X-Request-Id") {
			t.Errorf("second: %d %v %v", second.StatusCode, second.Header, second.body)
		}
		for what, c := range map[string][4]string{
			"body":       {"POST", "/v1/items", "acme/a", `{"name": "y"}`},
			"spelling":   {"POST", "/v1/items", "acme/a", `{"name":"x"}`},
			"method":     {"PUT", "/v1/items", "acme/a", `{"name": "x"}`},
			"path":       {"POST", "/v1/others", "acme/a", `{"name": "x"}`},
			"credential": {"POST", "/v1/items", "acme/b", `{"name": "x"}`},
		} {
			if a := n.send(t, c[0], c[1], c[2], "k", c[3]); a.StatusCode != 409 || a.slug() != "idempotency-conflict" ||
				a.body["reason"] != "idempotency-conflict" || a.replayed() {
				t.Errorf("another %s: %d %v", what, a.StatusCode, a.body)
			}
		}
		if runs.n != 1 {
			t.Errorf("%d runs", runs.n)
		}
		for _, c := range [][3]string{{"/v1/items", "rival/a", "k"}, {"/v1/items", "acme/a", "K"}, {"/v1/items", "acme/a", ""},
			{"/v1/items", "acme/a", ""}, {"/v1/secrets", "acme/a", "k"}, {"/v1/secrets", "acme/a", "k"}} {
			before := runs.n
			if a := n.send(t, "POST", c[0], c[1], c[2], `{"name": "`+strings.Repeat("z", before)+`"}`); a.StatusCode != 201 ||
				a.replayed() ||
				runs.n != before+1 {
				t.Errorf("%v: %d, %d runs", c, a.StatusCode, runs.n-before)
			}
		}
	})
}

func TestKeys(t *testing.T) {
	var runs counter
	n := serve(dbtest.SQLite(t), &runs)
	for _, key := range []string{"=", strings.Repeat("k", 256), "ä", "a\tb"} {
		a := n.send(t, "POST", "/v1/items", "acme/a", key, `{"name": "x"}`)
		if errs, _ := a.body["errors"].(map[string]any); a.StatusCode != 400 || errs["Idempotency-Key"] == nil {
			t.Errorf("key %q: %d %v", key, a.StatusCode, a.body)
		}
	}
	for i, key := range []string{"~ !", strings.Repeat("k", 255)} {
		if a := n.send(t, "POST", "/v1/items", "acme/a", key, `{"name": "`+strings.Repeat("x", i)+`"}`); a.StatusCode != 201 {
			t.Errorf("key %q: %d %v", key, a.StatusCode, a.body)
		}
	}
}

func TestFailures(t *testing.T) {
	var runs counter
	n := serve(dbtest.SQLite(t), &runs)
	for body, want := range map[string]struct {
		status, runs int // of two calls
		slug, after  string
	}{
		`{"name": "refuse"}`: {409, 1, "task_terminal", ""},
		`{"name": "full"}`:   {429, 1, "queue-full", "3"},
		`{"name": 1}`:        {400, 0, "invalid", ""},
		`{"name": "fail"}`:   {500, 2, "internal", ""},
		`{"name": "panic"}`:  {500, 2, "internal", ""},
	} {
		runs.n = 0
		for i := range 2 {
			a := n.send(t, "POST", "/v1/items", "acme/a", strings.NewReplacer(`"`, "", "{", "", "}", "").Replace(body), body)
			if a.StatusCode != want.status || a.slug() != want.slug || a.replayed() != (i == 1 && want.status < 500) ||
				a.Header.Get("Retry-After") != want.after {
				t.Errorf("%s, call %d: %d %v %v", body, i, a.StatusCode, a.Header, a.body)
			}
			if a.body["request_id"] != a.Header.Get("X-Request-Id") {
				t.Errorf("%s, call %d: the problem is of another request", body, i)
			}
		}
		if runs.n != want.runs {
			t.Errorf("%s: %d runs, want %d", body, runs.n, want.runs)
		}
	}
}

func TestTwinsOnTwoNodes(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			dsn := dbtest.DSN(t, e)
			var runs counter
			first := serve(dbtest.Open(t, dsn, db.Options{}), &runs)
			nodes := []node{first, first}
			if e == db.Postgres { // a SQLite file has one server
				nodes[1] = serve(dbtest.Open(t, dsn, db.Options{}), &runs)
			}
			answers := make([]answer, 50)
			var wg sync.WaitGroup
			for i := range answers {
				wg.Go(func() { answers[i] = nodes[i%2].send(t, "POST", "/v1/items", "acme/a", "k", `{"name": "x"}`) })
			}
			wg.Wait()
			ran := 0
			for _, a := range answers {
				if a.StatusCode != 201 || a.body["n"] != 1.0 {
					t.Fatalf("%d %v", a.StatusCode, a.body)
				}
				if !a.replayed() {
					ran++
				}
			}
			if ran != 1 || runs.n != 1 || count(t, first.ledger.DB) != 1 {
				t.Errorf("%d answers are first ones, of %d runs with %d effects", ran, runs.n, count(t, first.ledger.DB))
			}
		})
	}
}

func count(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		r, err := effects.One(tx)
		n = r.N
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
