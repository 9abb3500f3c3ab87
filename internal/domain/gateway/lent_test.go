package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// lending is a fixture whose repository is public and takes gifts, beside the account rich,
// which gives.
type lending struct {
	*fixture
	http http.Handler // of all rows that it takes
}

func lendingOn(t *testing.T, fn func(*testing.T, *lending)) {
	onBoth(t, func(t *testing.T, f *fixture) {
		f.attempt.RepoID = "repo"
		f.write(func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Account{ID: "rich"}, seed.Account{ID: "other"})
			_, err1 := seed.SetPrivate.Exec(tx, "repo", false)
			_, err2 := seed.SetConsent.Exec(tx, "repo", true, false)
			return errors.Join(err, err1, err2)
		})
		gifts := donation.New(donation.Needs{
			DB: f.DB, Hub: f.Budget.Hub, Keys: f.Keys, Boxes: noBoxes{}, Prices: llm.DefaultPrices(), Donors: everybody{},
		})
		donation.Ended.On(f.DB, f.Budget.SessionEnded)
		rows := append(append(gifts.Ops(), f.Keys.Ops()...), f.Budget.Ops()...)
		fn(t, &lending{f, rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
			Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
				return policy.Actor{Credential: policy.PAT, AccountID: p.Account, UserID: "ann", Scopes: policy.Owner.Ceiling()}, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, rows)})
	})
}

// everybody has a subscription.
type everybody struct{}

func (everybody) Donor(*db.Tx, string) (bool, error) { return true, nil }

// noBoxes are the boxes of nobody.
type noBoxes struct{}

func (noBoxes) Lendable(*db.Tx, string) (string, bool, error) { return "", false, nil }
func (noBoxes) Moved(*db.Tx, string, string) error            { return nil }

// by sends a request of an account, once all calls are stored, and decodes the answer.
func (l *lending) by(account string, status int, method, path, body string, into any) {
	l.t.Helper()
	l.Close()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Caller", account)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	l.http.ServeHTTP(rec, req)
	if rec.Code != status {
		l.t.Fatalf("%s %s by %s: %d, want %d; %s", method, path, account, rec.Code, status, rec.Body)
	}
	if into != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
			l.t.Fatal(err)
		}
	}
}

// key adds a key to the pool of rich.
func (l *lending) key(body string) (k modelkey.BillingKey) {
	l.t.Helper()
	l.by("rich", 201, "POST", "/v1/billing/keys", body, &k)
	return k
}

// give has rich give something; more are members of the body.
func (l *lending) give(kind, keyID, more string) (d donation.Donation) {
	l.t.Helper()
	l.by("rich", 201, "POST", "/v1/donations",
		`{"kind":"`+kind+`","target":"project","repo":"acme/app","key_id":"`+keyID+`"`+more+`}`, &d)
	return d
}

// forget lets a second pass, after which no grant is used again.
func (l *lending) forget() {
	l.mu.Lock()
	l.now = l.now.Add(time.Minute)
	l.mu.Unlock()
}

// routes are those of a call now, by key.
func (l *lending) routes() (out []string) {
	l.t.Helper()
	l.forget()
	g, err := l.Authorize(l.t.Context(), "tok", llm.Chat, "m")
	if err != nil {
		if fault.From(err).Slug != "no_credential" {
			l.t.Fatal(err)
		}
		return nil
	}
	for _, r := range g.Routes {
		out = append(out, r.ID)
	}
	return out
}

const priced = `{"provider":"scripted","price":{"input_usd":1000,"output_usd":1000}}`

// TestLentKey: calls for a public repository go over a key that another account has given, and
// are that account's to pay.
func TestLentKey(t *testing.T) {
	t.Parallel()
	lendingOn(t, func(t *testing.T, l *lending) {
		k := l.key(priced)
		if got := l.routes(); got != nil {
			t.Fatalf("before it is given: %v", got)
		}
		gift := l.give("llm", k.ID, "")
		l.forget()
		l.want(chat, 200, "", "completion_tokens")
		if s := l.get(l.session); s.Calls != 1 || s.CostUSD == nil || *s.CostUSD != "0.00" || s.Tokens.Output == 0 {
			t.Errorf("the session of the recipient is %+v", s)
		}
		var given op.Page[donation.Donation]
		l.by("rich", 200, "GET", "/v1/donations", "", &given)
		if d := given.Data[0]; d.ID != gift.ID || d.Calls != 1 || d.UsedUSD == "0.00" {
			t.Errorf("the gift is %+v", d)
		}
		var rich, acme budget.SpendCap
		if err := l.Budget.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.by("rich", 200, "GET", "/v1/billing/spend-cap", "", &rich)
		l.by("acme", 200, "GET", "/v1/billing/spend-cap", "", &acme)
		if rich.Spent != given.Data[0].UsedUSD || acme.Spent != "0.00" {
			t.Errorf("rich has spent %s and acme %s; the gift has used %s", rich.Spent, acme.Spent, given.Data[0].UsedUSD)
		}
		var used budget.BillingUsage
		l.by("acme", 200, "GET", "/v1/billing/usage", "", &used)
		if len(used.Keys) != 1 || len(used.Models) != 1 || len(used.Repos) != 1 || used.Given == nil {
			t.Fatalf("the recipient's usage is %+v", used)
		}
		if k := used.Keys[0]; used.Spent != "0.00" || *used.Given != rich.Spent || *used.Calls != 1 || k.Given != rich.Spent ||
			k.Spent != "0.00" || *k.Name != "given by others" || used.Models[0].Given != rich.Spent || used.Days[0].Given != rich.Spent {
			t.Errorf("the recipient's usage is %+v", used)
		}
		var keys op.Page[modelkey.BillingKey]
		l.by("rich", 200, "GET", "/v1/billing/keys", "", &keys)
		if keys.Data[0].Status != modelkey.OK {
			t.Errorf("the key is %s after a call that worked", keys.Data[0].Status)
		}

		own := l.addKey(`{"provider":"scripted"}`)
		if got := l.routes(); len(got) != 2 || got[0] != own.ID || got[1] != k.ID {
			t.Errorf("with a key of its own the repository has the routes %v; want its own first", got)
		}
	})
}

// TestLentKeyServesNothingElse: a key that was given serves no private repository, no repository
// that takes no gifts, none of another account, no work without a repository, and no longer its
// own account, however it is asked for.
func TestLentKeyServesNothingElse(t *testing.T) {
	t.Parallel()
	lendingOn(t, func(t *testing.T, l *lending) {
		l.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Repo{ID: "theirs", Account: "other", Name: "app"},
				seed.Repo{ID: "second", Account: "acme", Name: "second"}, seed.Repo{ID: "home", Account: "rich", Name: "home"})
		})
		k := l.key(priced)
		gift := l.give("llm", k.ID, "")
		set := func(private, takes, enabled bool) {
			l.write(func(tx *db.Tx) error {
				_, err1 := seed.SetPrivate.Exec(tx, "repo", private)
				_, err2 := seed.SetConsent.Exec(tx, "repo", takes, true)
				_, err3 := seed.SetEnabled.Exec(tx, "repo", enabled)
				return errors.Join(err1, err2, err3)
			})
		}
		for _, x := range []struct{ private, takes, enabled, want bool }{
			{false, true, true, true}, {true, true, true, false}, {false, false, true, false}, {false, true, false, false},
			{false, true, true, true},
		} {
			set(x.private, x.takes, x.enabled)
			if got := l.routes(); (got != nil) != x.want {
				t.Errorf("private %t, takes gifts %t, enabled %t: routes %v", x.private, x.takes, x.enabled, got)
			}
		}
		for _, x := range []struct{ account, repo string }{
			{"acme", ""}, {"acme", "second"}, {"other", "repo"}, {"other", "theirs"}, {"rich", "repo"}, {"rich", "home"}, {"rich", ""},
		} {
			l.mu.Lock()
			l.attempt.AccountID, l.attempt.RepoID = x.account, x.repo
			l.mu.Unlock()
			if got := l.routes(); got != nil {
				t.Errorf("work of %q in %q has the routes %v", x.account, x.repo, got)
			}
		}
		l.by("rich", 200, "DELETE", "/v1/donations/"+gift.ID, "", nil)
		l.mu.Lock()
		l.attempt.AccountID, l.attempt.RepoID = "rich", "home"
		l.mu.Unlock()
		if got := l.routes(); len(got) != 1 || got[0] != k.ID {
			t.Errorf("after the gift was taken back its own account has the routes %v", got)
		}
	})
}

// TestCeiling: whatever model is asked for, in whatever spelling, the provider is asked for one
// of the ceiling, or not at all.
func TestCeiling(t *testing.T) {
	t.Parallel()
	lendingOn(t, func(t *testing.T, l *lending) {
		k := l.key(`{"provider":"anthropic","key":"sk-ant-0123456789abcdef"}`)
		gift := l.give("llm", k.ID, `,"models":[{"provider":"anthropic","model":"haiku"},{"provider":"anthropic","model":"sonnet"}]`)
		model := func(template string) string {
			l.mu.Lock()
			l.attempt.Model = template
			l.mu.Unlock()
			l.forget()
			g, err := l.Authorize(t.Context(), "tok", llm.Messages, "opus")
			if err != nil {
				return ""
			}
			return g.Routes[0].Model
		}
		same := func(picked string) {
			t.Helper()
			for _, x := range []struct{ asked, want string }{
				{"", "haiku"}, {"haiku", "haiku"}, {"sonnet", "sonnet"}, {"opus", ""}, {"Haiku", ""}, {"haiku-20250929", ""},
				{"haiku@latest", ""}, {"models/haiku", ""}, {" haiku", ""}, {"haiku\x00", ""}, {"*", ""},
			} {
				if picked != "" {
					x.want = picked
				}
				if got := model(x.asked); got != x.want {
					t.Errorf("the template names %q and %q is picked: the provider is asked for %q, want %q", x.asked, picked, got, x.want)
				}
			}
		}
		same("")
		at := "/v1/donations/" + gift.ID + "/model"
		l.by("acme", 200, "PATCH", at, `{"model":{"provider":"anthropic","model":"sonnet"}}`, nil)
		same("sonnet")
		l.by("acme", 400, "PATCH", at, `{"model":{"provider":"openai","model":"sonnet"}}`, nil)
		l.by("other", 404, "PATCH", at, `{"model":null}`, nil)
		l.by("rich", 404, "PATCH", at, `{"model":null}`, nil)
		l.by("acme", 200, "PATCH", at, `{"model":null}`, nil)
		same("")
	})
}

// TestMoneyIsHeld: calls over a gift of money stop where it is used up, and where the budget of
// the giver's account is, which the recipient is not told of; prices that the recipient sets
// change nothing.
func TestMoneyIsHeld(t *testing.T) {
	t.Parallel()
	lendingOn(t, func(t *testing.T, l *lending) {
		k := l.key(priced)
		gift := l.give("money", k.ID, `,"usd":0.5`)
		l.by("acme", 200, "PUT", "/v1/billing/prices", `{"provider":"scripted","model":"small","input_usd":0,"output_usd":0}`, nil)
		calls := 0
		for ; calls < 100; calls++ {
			l.forget()
			status, body, slug := l.ask("tok", chat)
			l.Close()
			if status == 200 {
				continue
			}
			if slug != llm.SlugQuota && slug != "no_credential" || strings.Contains(body, "rich") {
				t.Errorf("refused with %d %s %s", status, slug, body)
			}
			break
		}
		if calls == 0 || calls == 100 {
			t.Fatalf("%d calls were paid", calls)
		}
		var given op.Page[donation.Donation]
		l.by("rich", 200, "GET", "/v1/donations", "", &given)
		if d := given.Data[0]; d.ID != gift.ID || d.UsedUSD > "0.50" || d.Calls != int64(calls) || *d.USD != "0.50" {
			t.Errorf("after %d calls the gift is %+v", calls, d)
		}

		l.by("rich", 200, "DELETE", "/v1/donations/"+gift.ID, "", nil)
		l.give("money", k.ID, `,"usd":1000`)
		l.forget()
		l.want(chat, 200, "", "completion_tokens")
		l.Close()
		if err := l.Budget.Close(t.Context()); err != nil { // what is set aside was within the limit of before
			t.Fatal(err)
		}
		l.by("rich", 200, "PUT", "/v1/billing/spend-cap", `{"usd":0.01}`, nil)
		l.forget()
		if status, body, slug := l.ask("tok", chat); status != 402 || slug != llm.SlugQuota || strings.Contains(body, "budget") {
			t.Errorf("over the budget of the giver: %d %s %s", status, slug, body)
		}
	})
}

// TestCancelDuringCall: a call that is under way when the gift is taken back ends and is paid
// for; the next one is refused.
func TestCancelDuringCall(t *testing.T) {
	t.Parallel()
	lendingOn(t, func(t *testing.T, l *lending) {
		k := l.key(priced)
		gift := l.give("llm", k.ID, "")
		l.forget()
		g, err := l.Authorize(t.Context(), "tok", llm.Chat, "m")
		if err != nil {
			t.Fatal(err)
		}
		q := llm.Quote{Priced: true, Most: 1000, Least: 1000, Model: "small"}
		set, err := l.Reserve(t.Context(), g, g.Routes[0], q)
		if err != nil {
			t.Fatal(err)
		}
		l.by("rich", 200, "DELETE", "/v1/donations/"+gift.ID, "", nil)
		if _, err := l.Reserve(t.Context(), g, g.Routes[0], q); fault.From(err).Slug != llm.SlugQuota {
			t.Errorf("a call that begins with the grant of before: %v", err)
		}
		cost := int64(600)
		l.Record(t.Context(), g, g.Routes[0], llm.Usage{Model: "small", Status: 200, Reserved: set, CostMicros: &cost})
		l.Close()
		if err := l.Budget.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var rich budget.SpendCap
		l.by("rich", 200, "GET", "/v1/billing/spend-cap", "", &rich)
		var given op.Page[donation.Donation]
		l.by("rich", 200, "GET", "/v1/donations", "", &given)
		if rich.Reserved != "0.00" || given.Data[0].Calls != 1 || given.Data[0].State != donation.Parked {
			t.Errorf("%+v, and the gift %+v", rich, given.Data[0])
		}
		if got := l.routes(); got != nil {
			t.Errorf("after it the routes are %v", got)
		}
	})
}

// TestKeyIsGivenOnce: of two gifts of one key at the same time one is made, and an account gives
// only what is its own.
func TestKeyIsGivenOnce(t *testing.T) {
	t.Parallel()
	lendingOn(t, func(t *testing.T, l *lending) {
		k := l.key(priced)
		l.give("llm", k.ID, "")
		body := `{"kind":"llm","target":"pool","key_id":"` + k.ID + `"}`
		l.by("rich", 409, "POST", "/v1/donations", body, nil)
		l.by("acme", 404, "POST", "/v1/donations", body, nil) // what it was given is not its own
		l.by("other", 404, "POST", "/v1/donations", body, nil)
		l.by("acme", 404, "DELETE", "/v1/billing/keys/"+k.ID, "", nil)
		var own modelkey.BillingKey
		l.by("rich", 201, "POST", "/v1/me/keys", `{"provider":"scripted"}`, &own)
		l.by("rich", 404, "POST", "/v1/donations", `{"kind":"llm","target":"pool","key_id":"`+own.ID+`"}`, nil)
	})
}
