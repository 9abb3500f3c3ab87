package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"yardmaster/internal/dial"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a gateway with the keys, budgets and sessions of the account acme, and
// one attempt.
type fixture struct {
	*Service
	t       *testing.T
	http    http.Handler // the rows of session, modelkey and budget
	session string       // of the attempt

	dsn    string
	parked chan time.Time // until when runs were parked
	detour detour

	runLimit *int64 // of the policy file, in micro-dollars

	mu      sync.Mutex
	now     time.Time
	attempt *Attempt // of the token "tok"; nil once revoked
}

func onBoth(t *testing.T, fn func(*testing.T, *fixture)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { fn(t, newFixture(t, e)) })
	}
}

// clock is the time of the gateway and of its database.
func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// later moves the clock.
func (f *fixture) later(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

func newFixture(t *testing.T, e db.Engine) *fixture {
	f := &fixture{t: t, session: id.New(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f.attempt = &Attempt{SessionID: f.session, AccountID: "acme", RunID: "run"}
	f.detour.RoundTripper = llm.NewTransport(nil)
	f.dsn, f.parked = dbtest.DSN(t, e), make(chan time.Time, 100)
	f.Service = f.node()
	f.write(func(tx *db.Tx) error {
		err1 := seed.Add(tx, seed.Account{ID: "acme"})
		err2 := seed.Add(tx, seed.Repo{ID: "repo", Account: "acme", Name: "app"})
		err3 := seed.Add(tx, seed.Session{ID: f.session, Account: "acme", Repo: "repo"})
		return errors.Join(err1, err2, err3)
	})
	rows := append(f.Sessions.Ops(), append(f.Keys.Ops(), f.Budget.Ops()...)...)
	f.http = rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			return policy.Actor{
				Credential: policy.PAT, AccountID: p.Account, UserID: "ann",
				Scopes: policy.Scopes(policy.ReadSessions, policy.WriteTasks, policy.ReadBilling, policy.WriteBilling, policy.SelfKeys),
			}, nil
		},
		Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
	}}, rows)
	return f
}

// node is one more gateway on the database.
func (f *fixture) node() *Service {
	t, d, clock := f.t, dbtest.Open(f.t, f.dsn, db.Options{Clock: f.clock}), f.clock
	ring, err := seal.Parse(strings.Repeat("0f", 32))
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := scripted.ParseScenarios([]byte("scenarios:\n  - name: hello\n    steps:\n      - text: Good morning.\n"))
	if err != nil {
		t.Fatal(err)
	}
	logger, hub := slog.New(slog.DiscardHandler), event.NewHub()
	s := New(Needs{
		DB: d, Logger: logger, Clock: clock, Attempts: f, Prices: llm.DefaultPrices(),
		HTTP: llm.Config{Scripted: scripted.New(scenarios), Transport: &f.detour},
		Keys: modelkey.New(modelkey.Needs{
			DB: d, Ring: ring, Hub: hub, Guard: dial.NewGuard(nil).WithLoopback(), Templates: others{},
		}),
		Budget:   budget.New(budget.Needs{DB: d, Hub: hub, Logger: logger, Clock: clock, Node: "n", Work: work{f: f}, Prices: others{}}),
		Sessions: session.New(session.Needs{DB: d, Hub: hub, Runs: others{}, Policies: others{}}),
		Parking:  f,
	})
	t.Cleanup(s.Close)
	return s
}

func (f *fixture) write(fn func(*db.Tx) error) {
	f.t.Helper()
	if err := f.DB.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// api sends a request of the account acme, once all calls are stored, and decodes
// the answer into into, which may be nil.
func (f *fixture) api(status int, method, path, body string, into any) string {
	f.t.Helper()
	f.Close()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Caller", "acme")
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
	return rec.Body.String()
}

func (f *fixture) addKey(body string) (k modelkey.BillingKey) {
	f.t.Helper()
	f.api(201, "POST", "/v1/billing/keys", body, &k)
	return k
}

// ask makes one model call and returns the status, the body and the fault.
func (f *fixture) ask(token, path string) (int, string, string) { return f.Service.ask(token, path) }

func (s *Service) ask(token, path string) (int, string, string) {
	return s.askFor(context.Background(), token, path)
}

// askFor makes one model call, which the caller may give up.
func (s *Service) askFor(ctx context.Context, token, path string) (int, string, string) {
	body := `{"model":"small","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
	req := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	s.caller.Gateway.ServeHTTP(rec, req)
	return rec.Code, rec.Body.String(), rec.Header().Get(llm.FaultHeader)
}

// want makes one model call with the token "tok" and compares the answer.
func (f *fixture) want(path string, status int, slug, word string) {
	f.t.Helper()
	got, body, fault := f.ask("tok", path)
	if got != status || fault != slug || !strings.Contains(body, word) {
		f.t.Errorf("%d %q %s, want %d %q with %q", got, fault, body, status, slug, word)
	}
}

func (f *fixture) get(sessionID string) (s session.Session) {
	f.t.Helper()
	f.api(200, "GET", "/v1/sessions/"+sessionID, "", &s)
	return s
}

const chat = "/v1/chat/completions"

func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.addKey(`{"provider":"scripted"}`)
		if s := f.get(f.session); s.Calls != 0 || s.CostUSD != nil || s.Provider != nil {
			t.Errorf("before: %+v", s)
		}
		f.want(chat, 200, "", "completion_tokens")
		once := f.get(f.session)
		if once.Calls != 1 || once.Tokens.Input == 0 || once.Tokens.Output == 0 || *once.Provider != "scripted" || *once.Model != "small" {
			t.Errorf("after one call: %+v", once)
		}
		var many sync.WaitGroup
		for range 9 {
			many.Go(func() { f.ask("tok", chat) })
		}
		many.Wait()
		s := f.get(f.session)
		if s.Calls != 10 || s.Tokens.Input != 10*once.Tokens.Input || s.Tokens.Output != 10*once.Tokens.Output {
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
		if s := f.get(f.session); *s.Model != "large" {
			t.Errorf("model %s", *s.Model)
		}
	})
}

// TestGrantHasEveryRoute: a grant lists the keys that fit the call, the best first, each
// with its own price and with the model of the template.
func TestGrantHasEveryRoute(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		last := f.addKey(`{"provider":"openrouter","key":"sk-0123456789abcdef","priority":200}`)
		f.addKey(`{"provider":"anthropic","key":"sk-0123456789abcdef","priority":1}`) // speaks no chat completions
		first := f.addKey(`{"provider":"openai","key":"sk-0123456789abcdef","price":{"input_usd":1,"output_usd":2}}`)
		f.attempt.Model = "m"
		g, err := f.Authorize(t.Context(), "tok", llm.Chat, "other")
		if err != nil || len(g.Routes) != 2 {
			t.Fatalf("granted %v, %v", g.Routes, err)
		}
		for i, want := range []modelkey.BillingKey{first, last} {
			got := g.Routes[i]
			if got.ID != want.ID || got.Provider != want.Provider || got.Model != "m" {
				t.Errorf("route %d is %v over the key %s; want that of %s", i, got, got.ID, want.Provider)
			}
			if priced := got.Prices.Knows(got.Provider, "m"); priced != (want.Price != nil) {
				t.Errorf("route %d has a price: %v", i, priced)
			}
		}
	})
}

// TestOwnKeyOfWhoAsked: calls for work that a person asked for go over their own key first,
// calls for anybody else's never do.
func TestOwnKeyOfWhoAsked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		shared := f.addKey(`{"provider":"scripted"}`)
		var own modelkey.BillingKey
		f.api(201, "POST", "/v1/me/keys", `{"provider":"scripted"}`, &own)
		status := func() string {
			var keys op.Page[modelkey.BillingKey]
			f.api(200, "GET", "/v1/me/keys", "", &keys)
			return string(keys.Data[0].Status)
		}
		for _, x := range []struct {
			person, first, own string
		}{{"", shared.ID, modelkey.Unverified}, {"bob", shared.ID, modelkey.Unverified}, {"ann", own.ID, modelkey.OK}} {
			f.mu.Lock()
			f.attempt.Person = x.person
			f.now = f.now.Add(time.Minute) // forget the grant
			f.mu.Unlock()
			g, err := f.Authorize(t.Context(), "tok", llm.Chat, "m")
			if err != nil || g.Routes[0].ID != x.first {
				t.Errorf("for %q: %v, %v", x.person, g.Routes, err)
			}
			f.want(chat, 200, "", "completion_tokens")
			if got := status(); got != x.own {
				t.Errorf("after a call for %q the own key is %s", x.person, got)
			}

			c, err := f.Open(t.Context(), Opening{AccountID: "acme", Trigger: "ask", Kind: "triage", Model: "small", RequestedBy: x.person})
			if err != nil {
				t.Fatal(err)
			}
			if g, err := f.Authorize(t.Context(), c.token, llm.Chat, "m"); err != nil || g.Routes[0].ID != x.first {
				t.Errorf("for a conversation of %q: %v, %v", x.person, g.Routes, err)
			}
		}
	})
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.want(chat, 403, "no_credential", "key add")
		if status, body, slug := f.ask("other", chat); status != 401 || slug != "unauthenticated" ||
			!strings.Contains(body, "live attempt") {
			t.Errorf("an unknown token: %d %s %s", status, slug, body)
		}
		key := f.addKey(`{"provider":"openai","key":"sk-0123456789abcdef"}`)
		f.want("/v1/messages", 403, "no_credential", "messages")
		f.attempt.Provider = "anthropic"
		f.want(chat, 403, "no_credential", "anthropic")
		f.attempt.Provider = ""
		g, err := f.Authorize(t.Context(), "tok", llm.Chat, "m")
		if err != nil || len(g.Routes) != 1 || g.Routes[0].Key != "sk-0123456789abcdef" {
			t.Errorf("granted %v, %v", g.Routes, err)
		}

		// A grant is used again for a second, and no longer.
		f.api(200, "DELETE", "/v1/billing/keys/"+key.ID, "", nil)
		if _, err := f.Authorize(t.Context(), "tok", llm.Chat, "m"); err != nil {
			t.Errorf("at once: %v", err)
		}
		f.mu.Lock()
		f.now = f.now.Add(time.Second)
		f.mu.Unlock()
		if _, err := f.Authorize(t.Context(), "tok", llm.Chat, "m"); fault.From(err).Slug != "no_credential" {
			t.Errorf("a second after the key was deleted: %v", err)
		}
		f.mu.Lock()
		f.attempt = nil
		f.mu.Unlock()
		if _, err := f.Authorize(t.Context(), "tok", llm.Chat, "m"); !fault.IsKind(err, fault.Unauthenticated) {
			t.Errorf("after the attempt has ended: %v", err)
		}
	})
}

// refusing is a Counts that has no room.
type refusing struct{}

// Hold implements Counts.
func (refusing) Hold(context.Context, string, string) error { return op.TooMuchOpen("full") }

// TestRefusedIsLookedUpOnce: a call that is refused for its number does not look its token up
// again before the grant is old.
func TestRefusedIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.addKey(`{"provider":"scripted"}`)
		f.Counts = refusing{}
		for range 2 {
			if _, err := f.Authorize(t.Context(), "tok", llm.Chat, "m"); fault.From(err).Slug != op.SlugOpen {
				t.Errorf("refused with %v", err)
			}
			f.mu.Lock()
			f.attempt = nil // which a look-up would find
			f.mu.Unlock()
		}
	})
}

// TestProviderRefusesTheKey has a real upstream that does not accept the key.
func TestProviderRefusesTheKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		const secret = "local-0123456789abcdef"
		refuses := true
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if !refuses {
				io.WriteString(w, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"bad key %s","type":"auth"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		}))
		defer far.Close()
		f.addKey(`{"provider":"compatible","base_url":"` + far.URL + `","model":"m","key":"` + secret + `"}`)
		f.attempt.Provider, f.attempt.BaseURL = "compatible", far.URL
		status := func() string {
			var keys op.Page[modelkey.BillingKey]
			f.api(200, "GET", "/v1/billing/keys", "", &keys)
			return string(keys.Data[0].Status)
		}
		if status, body, slug := f.ask("tok", chat); status != 403 || slug != llm.SlugAuth || strings.Contains(body, secret) {
			t.Errorf("%d %s %s", status, slug, body)
		}
		if got := status(); got != modelkey.Failing {
			t.Errorf("the key is %s", got)
		}
		if s := f.get(f.session); s.Calls != 1 || s.CostUSD != nil {
			t.Errorf("session %+v", s)
		}
		refuses = false
		f.want(chat, 429, llm.SlugAuth, "refuses the key") // it rests, and is not asked
		f.later(30 * time.Minute)
		f.want(chat, 200, "", "usage")
		if got := status(); got != modelkey.OK {
			t.Errorf("the key is %s after a call that worked", got)
		}
	})
}

// TestBudget: a call needs a price where a budget applies, and what it costs at
// most must be left; its cost is spent on the budget and counted in the session.
func TestBudget(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.addKey(`{"provider":"scripted"}`)
		limit := func(usd string) {
			t.Helper()
			f.api(200, "PUT", "/v1/billing/spend-cap", `{"usd":`+usd+`}`, nil)
			f.mu.Lock()
			f.now = f.now.Add(time.Hour) // forget the grant and the checked limits
			f.mu.Unlock()
		}
		f.want(chat, 200, "", "completion_tokens")
		limit("10")
		f.want(chat, 402, budget.SlugUnpriced, "small")
		f.api(200, "PUT", "/v1/billing/prices", `{"provider":"scripted","model":"small","input_usd":1000,"output_usd":1000}`, nil)
		limit("0.01")
		f.want(chat, 402, budget.SlugExhausted, "no room")
		limit("10")
		f.want(chat, 200, "", "completion_tokens")
		s := f.get(f.session)
		if s.Calls != 2 || s.CostUSD == nil {
			t.Fatalf("session %+v", s)
		}
		if err := f.Budget.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var month budget.SpendCap
		f.api(200, "GET", "/v1/billing/spend-cap", "", &month)
		if month.Spent != *s.CostUSD || month.Reserved != "0.00" {
			t.Errorf("spent %s and reserved %s for a session that cost %s", month.Spent, month.Reserved, *s.CostUSD)
		}
	})
}

// TestStreamIsCounted: a caller that has read a stream to its end finds the call in
// its session.
func TestStreamIsCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.addKey(`{"provider":"scripted"}`)
		near := httptest.NewServer(f.caller.Gateway)
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
		if s := f.get(f.session); s.Calls != 1 || s.Tokens.Output == 0 {
			t.Errorf("session %+v", s)
		}
	})
}
