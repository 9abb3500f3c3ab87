package template

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	countAudit = db.Q[int64](`SELECT COUNT(*) FROM audit WHERE object = $1 AND kind = $2`)
)

// caller sends a request as an account and answers status and body.
type caller func(account, method, path, body string) (int, string)

func onBoth(t *testing.T, fn func(*testing.T, *db.DB, caller)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
				return err
			}
			err := seed.Add(tx, seed.Account{ID: "rival"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		h := rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
			Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
				return policy.Actor{Credential: policy.PAT, AccountID: p.Account,
					Scopes: policy.Scopes(policy.ReadRunners, policy.WriteRunners)}, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, New(Needs{DB: d, Hub: event.NewHub()}).Ops())
		fn(t, d, func(account, method, path, body string) (int, string) {
			req := httptest.NewRequest(method, path, strings.NewReader(body))
			req.Header.Set("X-Caller", account)
			if body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			return rec.Code, rec.Body.String()
		})
	})
}

func (c caller) want(t *testing.T, status int, account, method, path, body string, into any) {
	t.Helper()
	got, text := c(account, method, path, body)
	if got != status {
		t.Fatalf("%s %s %s: %d, want %d; %s", method, path, body, got, status, text)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *db.DB, c caller) {
		names := func(account string) (out []string) {
			var p op.Page[Template]
			c.want(t, 200, account, "GET", "/v1/templates", "", &p)
			for _, x := range p.Data {
				out = append(out, x.Name)
			}
			return out
		}
		if got := names("acme"); !slices.Equal(got, []string{Default}) {
			t.Errorf("a fresh account has %v", got)
		}
		var got Template
		c.want(t, 200, "acme", "GET", "/v1/templates/default", "", &got)
		if got.Agent != Builtin || got.Seconds != 3600 || got.API != "chat" || got.CreatedAt != nil {
			t.Errorf("default is %+v", got)
		}

		c.want(t, 200, "acme", "PUT", "/v1/templates/fast",
			`{"agent":"claude","model":"m","options":{"effort":"low"},"timeout":60,"isolation":"landlock"}`, &got)
		if got.Agent != "claude" || got.Options["effort"] != "low" || got.Seconds != 60 || got.API != "" || got.Isolation != "landlock" ||
			got.CreatedAt == nil {
			t.Errorf("set answers %+v", got)
		}
		got = Template{}
		c.want(t, 200, "acme", "PUT", "/v1/templates/fast", `{"model":"n"}`, &got)
		if got.Agent != Builtin || got.Model != "n" || len(got.Options) != 0 || got.Seconds != 3600 || got.Isolation != "best" {
			t.Errorf("a replaced template keeps something of before: %+v", got)
		}
		c.want(t, 200, "acme", "PUT", "/v1/templates/default", `{"agent":"command","command":["make","fmt"]}`, &got)
		if got := names("acme"); !slices.Equal(got, []string{Default, "fast"}) {
			t.Errorf("listed %v", got)
		}
		if got := names("rival"); !slices.Equal(got, []string{Default}) {
			t.Errorf("the rival sees %v", got)
		}
		c.want(t, 404, "rival", "GET", "/v1/templates/fast", "", nil)
		c.want(t, 404, "acme", "GET", "/v1/templates/slow", "", nil)

		var gone DeletedTemplate
		c.want(t, 200, "rival", "DELETE", "/v1/templates/fast", "", &gone)
		if gone.Deleted {
			t.Error("the rival deleted it")
		}
		for _, want := range []bool{true, false} {
			c.want(t, 200, "acme", "DELETE", "/v1/templates/fast", "", &gone)
			if gone.Deleted != want {
				t.Errorf("deleted %v, want %v", gone.Deleted, want)
			}
		}
		c.want(t, 404, "acme", "GET", "/v1/templates/fast", "", nil)
		c.want(t, 200, "acme", "DELETE", "/v1/templates/default", "", nil)
		err := d.Read(t.Context(), func(tx *db.Tx) error {
			tpl, ok, err := ByName(tx, "acme", Default)
			if !ok || tpl.Agent != Builtin {
				t.Errorf("after its deletion default is %+v, %v", tpl, ok)
			}
			n, err2 := countAudit.One(tx, "fast", "template.deleted")
			if n != 1 {
				t.Errorf("%d audit rows for one deletion", n)
			}
			return errors.Join(err, err2)
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *db.DB, c caller) {
		for _, x := range []struct{ path, body, field string }{
			{"a", `{"provider":"compatible"}`, "base_url"},
			{"a", `{"provider":"compatible","base_url":"ftp://h/"}`, "base_url"},
			{"a", `{"provider":"compatible","base_url":"http://u:p@h/"}`, "base_url"},
			{"a", `{"provider":"openai","base_url":"https://h/"}`, "base_url"},
			{"a", `{"provider":"acme"}`, "provider"},
			{"a", `{"agent":"command"}`, "command"},
			{"a", `{"agent":"command","command":[""]}`, "command"},
			{"a", `{"agent":"claude","command":["x"]}`, "command"},
			{"a", `{"agent":"claude","api":"chat"}`, "api"},
			{"a", `{"agent":"other"}`, "agent"},
			{"a", `{"timeout":9}`, "timeout"},
			{"a", `{"timeout":86401}`, "timeout"},
			{"a", `{"colour":"red"}`, "colour"},
			{"A", `{}`, "name"},
		} {
			status, text := c("acme", "PUT", "/v1/templates/"+x.path, x.body)
			var p op.Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil || status != 400 || p.Errors[x.field] == nil {
				t.Errorf("%s %s: %d %s, want 400 about %s", x.path, x.body, status, text, x.field)
			}
		}
		c.want(t, 200, "acme", "PUT", "/v1/templates/a", `{"provider":"compatible","base_url":"http://127.0.0.1:11434/v1/"}`, nil)
	})
}
