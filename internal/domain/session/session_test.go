package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	addSession = db.S(`INSERT INTO sessions (id, account_id, repo_id, trigger, kind, started_at) VALUES ($1, 'acme', $2, 'task', 'work', $3)`)
)

type fixture struct {
	*Service
	t       *testing.T
	http    http.Handler // the rows of this package and of billing
	session string

	mu      sync.Mutex
	now     time.Time
	attempt *Attempt // of the token "tok"; nil once revoked

	runs      runs
	candidate Candidate // what every policy file says
}

func onBoth(t *testing.T, fn func(*testing.T, *fixture)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		ring, err := seal.Parse(strings.Repeat("0f", 32))
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{t: t, session: id.New(), now: time.UnixMicro(0)}
		f.attempt = &Attempt{RunID: "run", SessionID: f.session, AccountID: "acme"}
		clock := func() time.Time {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.now
		}
		scenarios, err := scripted.ParseScenarios([]byte("scenarios:\n  - name: hello\n    steps:\n      - text: Good morning.\n"))
		if err != nil {
			t.Fatal(err)
		}
		logger, hub := slog.New(slog.DiscardHandler), event.NewHub()
		f.Service = New(Needs{DB: d, Hub: hub, Logger: logger, Clock: clock, Runs: &f.runs, Policies: f, Prices: llm.DefaultPrices(),
			Gateway: llm.Config{Scripted: scripted.New(scenarios)},
			Keys: modelkey.New(modelkey.Needs{DB: d, Ring: ring, Hub: hub, PlainHTTP: modelkey.PlainLoopback, Models: llm.Probe{}.Models,
				Templates: others{}}),
			Budget: budget.New(budget.Needs{DB: d, Logger: logger, Clock: clock, Node: "n", Work: others{}, Prices: others{}})})
		f.runs.f = f
		f.write(func(tx *db.Tx) error {
			err1 := seed.Add(tx, seed.Account{ID: "acme"})
			err2 := seed.Add(tx, seed.Account{ID: "rival"})
			err3 := seed.Add(tx, seed.Repo{ID: "repo", Account: "acme", Name: "app"})
			err4 := seed.Add(tx, seed.Repo{ID: "empty", Account: "acme", Name: "empty"})
			_, err5 := addSession.Exec(tx, f.session, "repo", 1_000_000)
			return errors.Join(err1, err2, err3, err4, err5)
		})
		f.http = rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
			Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
				return policy.Actor{Credential: policy.PAT, AccountID: p.Account,
					Scopes: policy.Scopes(policy.ReadSessions, policy.ReadBilling, policy.WriteBilling)}, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, append(f.Ops(), f.Keys.Ops()...))
		fn(t, f)
	})
}

func (f *fixture) write(fn func(*db.Tx) error) {
	f.t.Helper()
	if err := f.DB.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// call sends a request as an account; into may be nil.
func (f *fixture) call(status int, account, method, path, body string, into any) {
	f.t.Helper()
	f.Close() // what calls have consumed is stored
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Caller", account)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	f.http.ServeHTTP(rec, req)
	if rec.Code != status {
		f.t.Fatalf("%s %s: %d, want %d; %s", method, path, rec.Code, status, rec.Body)
	}
	if into != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) addKey(body string) (k modelkey.BillingKey) {
	f.t.Helper()
	f.call(201, "acme", "POST", "/v1/billing/keys", body, &k)
	return k
}

// ask makes one model call and answers the status, the body and the fault.
func (f *fixture) ask(token, path string) (int, string, string) {
	f.t.Helper()
	req := httptest.NewRequest("POST", path, strings.NewReader(`{"model":"small","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	f.calls.Gateway.ServeHTTP(rec, req)
	return rec.Code, rec.Body.String(), rec.Header().Get(llm.FaultHeader)
}

func (f *fixture) get() (s Session) {
	f.t.Helper()
	f.call(200, "acme", "GET", "/v1/sessions/"+f.session, "", &s)
	return s
}

const chat = "/v1/chat/completions"

func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.addKey(`{"provider":"scripted"}`)
		if s := f.get(); s.Calls != 0 || s.CostUSD != nil || s.Provider != nil || *s.Repo != "acme/app" {
			t.Errorf("before: %+v", s)
		}
		if status, body, _ := f.ask("tok", chat); status != 200 || !strings.Contains(body, "completion_tokens") {
			t.Fatalf("%d %s", status, body)
		}
		once := f.get()
		if once.Calls != 1 || once.Tokens.Input == 0 || once.Tokens.Output == 0 || *once.Provider != "scripted" || *once.Model != "small" {
			t.Errorf("after one call: %+v", once)
		}
		var many sync.WaitGroup
		for range 9 {
			many.Go(func() { f.ask("tok", chat) })
		}
		many.Wait()
		if s := f.get(); s.Calls != 10 || s.Tokens.Input != 10*once.Tokens.Input || s.Tokens.Output != 10*once.Tokens.Output {
			t.Errorf("after ten calls: %+v, after one %+v", s, once)
		}
	})
}

func TestTemplateDecidesTheModel(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.addKey(`{"provider":"scripted"}`)
		f.attempt.Model = "large"
		f.ask("tok", chat)
		if s := f.get(); *s.Model != "large" {
			t.Errorf("model %s", *s.Model)
		}
	})
}

func TestCost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		g := llm.Grant{Route: llm.Route{Provider: llm.OpenAI}, Session: handle{f.session, "acme", "key"}}
		cost := int64(1_234_500)
		for _, x := range []struct {
			cost *int64
			want string
		}{{nil, "null"}, {&cost, "1.2345"}, {nil, "1.2345"}, {&cost, "2.469"}} {
			f.Record(t.Context(), g, llm.Usage{CostMicros: x.cost, Status: 200})
			got := "null"
			if s := f.get(); s.CostUSD != nil {
				got = *s.CostUSD
			}
			if got != x.want {
				t.Errorf("cost %s, want %s", got, x.want)
			}
		}
	})
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		refuse := func(token, path string, status int, slug, word string) {
			t.Helper()
			got, body, fault := f.ask(token, path)
			if got != status || fault != slug || !strings.Contains(body, word) {
				t.Errorf("%d %s %s, want %d %s with %q", got, fault, body, status, slug, word)
			}
		}
		refuse("tok", chat, 403, "no_credential", "key add")
		refuse("other", chat, 401, "unauthenticated", "live attempt")
		key := f.addKey(`{"provider":"openai","key":"sk-0123456789abcdef"}`)
		refuse("tok", "/v1/messages", 403, "no_credential", "messages")
		f.attempt.Provider = "anthropic"
		refuse("tok", chat, 403, "no_credential", "anthropic")
		f.attempt.Provider = ""
		if g, err := f.Authorize(t.Context(), "tok", llm.Chat, "m"); err != nil || g.Route.Key != "sk-0123456789abcdef" {
			t.Errorf("granted %v, %v", g.Route, err)
		}

		// What was granted is remembered for a second, and no longer.
		f.call(200, "acme", "DELETE", "/v1/billing/keys/"+key.ID, "", nil)
		if _, err := f.Authorize(t.Context(), "tok", llm.Chat, "m"); err != nil {
			t.Errorf("at once: %v", err)
		}
		f.mu.Lock()
		f.now, f.attempt = f.now.Add(time.Second), nil
		f.mu.Unlock()
		if _, err := f.Authorize(t.Context(), "tok", llm.Chat, "m"); !fault.IsKind(err, fault.Unauthenticated) {
			t.Errorf("after a second: %v", err)
		}
	})
}

// TestProviderRefusesTheKey has a real upstream that does not take the key.
func TestProviderRefusesTheKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		const secret = "local-0123456789abcdef"
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"bad key %s","type":"auth"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		}))
		defer far.Close()
		f.addKey(`{"provider":"compatible","base_url":"` + far.URL + `","model":"m","key":"` + secret + `"}`)
		f.attempt.Provider, f.attempt.BaseURL = "compatible", far.URL
		if status, body, slug := f.ask("tok", chat); status != 403 || slug != llm.SlugAuth || strings.Contains(body, secret) {
			t.Errorf("%d %s %s", status, slug, body)
		}
		var keys op.Page[modelkey.BillingKey]
		f.call(200, "acme", "GET", "/v1/billing/keys", "", &keys)
		if keys.Data[0].Status != modelkey.Failing {
			t.Errorf("the key is %s", keys.Data[0].Status)
		}
		if s := f.get(); s.Calls != 1 || s.CostUSD != nil {
			t.Errorf("session %+v", s)
		}
	})
}

func TestLists(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		ids := []string{f.session}
		for i := range 3 {
			ids = append(ids, id.New())
			f.write(func(tx *db.Tx) error {
				var repo any = "repo"
				if i == 1 {
					repo = nil
				}
				_, err := addSession.Exec(tx, ids[i+1], repo, 2_000_000+i)
				return err
			})
		}
		slices.Reverse(ids)
		names := func(rows []Session) (out []string) {
			for _, s := range rows {
				out = append(out, s.ID)
			}
			return out
		}
		var b op.Bounded[Session]
		f.call(200, "acme", "GET", "/v1/sessions?limit=3", "", &b)
		if !slices.Equal(names(b.Data), ids[:3]) || !b.HasMore || b.NextCursor != nil {
			t.Errorf("three of four: %+v", b)
		}
		f.call(200, "acme", "GET", "/v1/sessions", "", &b)
		if !slices.Equal(names(b.Data), ids) || b.HasMore {
			t.Errorf("all: %+v", b)
		}
		f.call(400, "acme", "GET", "/v1/sessions?limit=201", "", nil)
		f.call(400, "acme", "GET", "/v1/sessions?cursor=x", "", nil)

		var p op.Page[Session]
		f.call(200, "acme", "GET", "/v1/repos/acme/app/sessions?per_page=2", "", &p)
		if !slices.Equal(names(p.Data), []string{ids[0], ids[2]}) || p.NextCursor == nil {
			t.Fatalf("first page: %+v", p)
		}
		f.call(200, "acme", "GET", "/v1/repos/acme/app/sessions?per_page=2&cursor="+*p.NextCursor, "", &p)
		if !slices.Equal(names(p.Data), ids[3:]) || p.NextCursor != nil {
			t.Errorf("second page: %+v", p)
		}
		f.call(200, "acme", "GET", "/v1/repos/acme/empty/sessions", "", &p)
		if len(p.Data) != 0 {
			t.Errorf("an empty repository has %+v", p)
		}
		f.call(400, "acme", "GET", "/v1/repos/acme/app/sessions?limit=2", "", nil)

		f.call(404, "rival", "GET", "/v1/repos/acme/app/sessions", "", nil)
		f.call(404, "rival", "GET", "/v1/sessions/"+f.session, "", nil)
		f.call(404, "acme", "GET", "/v1/sessions/"+id.New(), "", nil)
		f.call(404, "acme", "GET", "/v1/sessions/nonsense", "", nil)
		f.call(200, "rival", "GET", "/v1/sessions", "", &b)
		if len(b.Data) != 0 {
			t.Errorf("the rival sees %+v", b)
		}
	})
}

// TestStreamIsCounted: a stream that was read to its end has been handed over
// to be stored.
func TestStreamIsCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.addKey(`{"provider":"scripted"}`)
		near := httptest.NewServer(f.calls.Gateway)
		defer near.Close()
		req, err := http.NewRequestWithContext(t.Context(), "POST", near.URL+"/v1/messages",
			strings.NewReader(`{"model":"small","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hello"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "tok")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(text), "message_stop") {
			t.Fatalf("%v, %s", err, text)
		}
		if s := f.get(); s.Calls != 1 || s.Tokens.Output == 0 {
			t.Errorf("session %+v", s)
		}
	})
}
