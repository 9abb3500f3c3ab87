package inquiry

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// script is a model whose answers a test dictates.
type script struct {
	mu     sync.Mutex
	refuse error // of Begin
	system string
	heard  [][]string // the turns of each call
	matter []Matter
	ends   []string
	// say is the answer to turns.
	say func(system string, turns []string) (string, error)
}

func (m *script) Begin(_ context.Context, about Matter) (Talk, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		return nil, m.refuse
	}
	m.matter = append(m.matter, about)
	return m, nil
}

func (m *script) ID() string { return "0199d3a4-5b6c-7d8e-9f01-23456789abcd" }

func (m *script) Say(_ context.Context, system string, turns []string) (string, error) {
	m.mu.Lock()
	m.system, m.heard = system, append(m.heard, turns)
	m.mu.Unlock()
	return m.say(system, turns)
}

func (m *script) End(_ context.Context, outcome string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends = append(m.ends, outcome)
}

// always answers the same.
func always(reply string) func(string, []string) (string, error) {
	return func(string, []string) (string, error) { return reply, nil }
}

// near are pages of a knowledge base.
type near []Page

func (n near) Near(*db.Tx, string, string) ([]Page, error) { return n, nil }

// rate lets so many questions through.
type rate struct {
	mu   sync.Mutex
	left int
}

func (r *rate) Take(string) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left--
	return time.Minute, r.left >= 0
}

// yard is a server with the repositories web (with files), bare (without a commit), off (not
// enabled) and closed (private, not covered) of acme, and shop of rival.
type yard struct {
	t     *testing.T
	model *script
	send  func(caller, path, body string) *httptest.ResponseRecorder
	serve func(*http.Request) *httptest.ResponseRecorder
	head  string // the commit of acme/web
	host  *builtin.Host
	// folder is that of acme/web.
	folder string
	svc    *Service
}

// newYard makes a yard whose repository web has the files.
func newYard(t *testing.T, d *db.DB, files map[string]string, pages near) *yard {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for _, row := range []seed.Row{
			seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.Repo{ID: "web", Account: "acme"},
			seed.Repo{ID: "bare", Account: "acme"}, seed.Repo{ID: "off", Account: "acme", Disabled: true},
			seed.Repo{ID: "shop", Account: "rival"},
		} {
			if err := seed.Add(tx, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	host, err := builtin.New(builtin.Config{Root: root, BaseURL: "http://127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{t: t, host: host, folder: filepath.Join(root, "acme", "web.git"), model: &script{}}
	y.model.say = always(`{"claims":[]}`)
	content := map[string][]byte{}
	for path, text := range files {
		content[path] = []byte(text)
	}
	for _, name := range []string{"web", "bare"} {
		r := codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: name}
		if err := host.Create(t.Context(), r, codehost.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if name == "bare" {
			continue
		}
		y.head, err = host.FirstCommit(t.Context(), r, codehost.FirstOptions{
			Branch: "main", Files: content, Title: "Begin", Author: codehost.Person{Name: "a", Email: "a@example.com"},
			Committer: codehost.Person{Name: "a", Email: "a@example.com"}, At: time.Unix(1_700_000_000, 0),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	y.svc = New(Needs{
		DB: d, Logger: slog.New(slog.DiscardHandler), Model: y.model, Pages: pages, Rate: &rate{left: 1000},
		Hosts: codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: host, Forge: builtin.Forge{}}}),
	})
	h := rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			account, person, _ := strings.Cut(p.Account, " ")
			return policy.Actor{
				Credential: policy.PAT, CredentialID: "t", AccountID: account, UserID: person, Scopes: policy.Scopes(policy.ReadRepos),
			}, nil
		},
		Enter: func(ctx context.Context, a policy.Actor) context.Context {
			return policy.With(db.WithAccount(ctx, a.AccountID), a)
		},
	}}, y.svc.Ops())
	y.serve = func(req *http.Request) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		return rec
	}
	y.send = func(caller, path, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("POST", path, strings.NewReader(body))
		req.Header.Set("X-Caller", caller)
		req.Header.Set("Content-Type", "application/json")
		return y.serve(req)
	}
	return y
}

// ask asks a question of ada's about acme/web.
func (y *yard) ask(question string) (a Answer) {
	y.t.Helper()
	body, _ := json.Marshal(map[string]string{"question": question})
	rec := y.send("acme ada", "/v1/repos/acme/web/ask", string(body))
	if rec.Code != 200 {
		y.t.Fatalf("%q: %d %s", question, rec.Code, rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
		y.t.Fatal(err)
	}
	a.hold(y.t)
	return a
}

// hold holds an answer against what is true of each.
func (a *Answer) hold(t *testing.T) {
	t.Helper()
	if a.Refused != (a.Reason != nil) || a.Refused != (a.Code != nil) || a.Refused != (a.Answer == nil) ||
		a.Refused != (len(a.Claims) == 0) || a.Refused != (len(a.Citations) == 0) {
		t.Fatalf("half an answer: %+v", *a)
	}
	for _, c := range a.Claims {
		if len(c.Citations) == 0 {
			t.Fatalf("an uncited claim: %+v", c)
		}
		for _, n := range c.Citations {
			if n < 1 || n > len(a.Citations) || a.Citations[n-1].N != n || a.Citations[n-1].Text == "" {
				t.Fatalf("the citation %d of %+v", n, a.Citations)
			}
		}
	}
}
