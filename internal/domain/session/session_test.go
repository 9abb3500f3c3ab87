package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	addSession = db.S(`INSERT INTO sessions (id, account_id, repo_id, trigger, kind, started_at)
		VALUES ($1, 'acme', $2, 'task', 'work', $3)`)
)

type fixture struct {
	*Service
	t       *testing.T
	http    http.Handler // the rows of this package
	session string

	candidate Candidate // the content of every policy file
}

func onBoth(t *testing.T, fn func(*testing.T, *fixture)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		f := &fixture{t: t, session: id.New()}
		f.Service = New(Needs{DB: d, Hub: event.NewHub(), Runs: runs{}, Policies: f})
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
				return policy.Actor{Credential: policy.PAT, AccountID: p.Account, Scopes: policy.Scopes(policy.ReadSessions)}, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, f.Ops())
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

// TestCallsAddUp: a session sums its calls; calls without a price add no cost, and
// the first call names the provider and the model.
func TestCallsAddUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		for i, x := range []struct {
			cost *int64
			want *string
		}{
			{nil, nil},
			{new(int64(1_234_500)), new("1.2345")},
			{nil, new("1.2345")},
			{new(int64(1_234_500)), new("2.469")},
		} {
			f.write(func(tx *db.Tx) error {
				return AddCall(tx, Call{
					SessionID: f.session, Provider: "openai", Model: fmt.Sprint("model-", i),
					InputTokens: 3, OutputTokens: 5, CacheTokens: 7, CostMicros: x.cost,
				})
			})
			var s Session
			f.call(200, "acme", "GET", "/v1/sessions/"+f.session, "", &s)
			n := int64(i + 1)
			if (s.CostUSD == nil) != (x.want == nil) || s.CostUSD != nil && *s.CostUSD != *x.want {
				t.Errorf("call %d: the cost is %v, want %v", i, s.CostUSD, x.want)
			}
			if s.Calls != n || s.Tokens.Input != 3*n || s.Tokens.Output != 5*n || s.Tokens.Cache != 7*n ||
				*s.Provider != "openai" || *s.Model != "model-0" {
				t.Errorf("after call %d: %+v", i, s)
			}
		}
	})
}

// TestSomeCallsWithoutAPrice: filter=cost:unknown finds a session as soon as one of its calls
// had no price, and whatever the others cost.
func TestSomeCallsWithoutAPrice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		silent, priced, unpriced, both := f.session, id.New(), id.New(), id.New()
		for i, one := range []string{priced, unpriced, both} {
			f.write(func(tx *db.Tx) error {
				_, err := addSession.Exec(tx, one, "repo", 2_000_000+i)
				return err
			})
		}
		for _, c := range []Call{
			{SessionID: priced, CostMicros: new(int64(1))}, {SessionID: unpriced},
			{SessionID: both}, {SessionID: both, CostMicros: new(int64(1))},
		} {
			f.write(func(tx *db.Tx) error { return AddCall(tx, c) })
		}
		for _, path := range []string{"/v1/sessions", "/v1/repos/acme/app/sessions"} {
			var page struct{ Data []Session }
			f.call(200, "acme", "GET", path+"?filter=cost:unknown", "", &page)
			var got []string
			for _, s := range page.Data {
				got = append(got, s.ID)
			}
			if want := []string{both, unpriced}; !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v; silent is %s, priced %s", path, got, want, silent, priced)
			}
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
