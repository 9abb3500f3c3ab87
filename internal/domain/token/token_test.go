package token

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	stored  = db.Q[string](`SELECT id || name || prefix || hash || scopes FROM tokens WHERE account_id = $1`)
	audited = db.Q[string](`SELECT kind || data FROM audit WHERE account_id = $1 ORDER BY at, id`)
)

// roster has the tokens of the accounts acme and rival. A caller holds the scopes
// that it names.
type roster struct {
	*Service
	t       *testing.T
	http    http.Handler
	dropped []string
}

func onBoth(t *testing.T, fn func(*testing.T, *roster)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		r := &roster{t: t}
		r.Service = New(Needs{DB: d})
		event.CredentialDropped.On(d, func(tx *db.Tx, hash string) error {
			tx.AfterCommit(func() { r.dropped = append(r.dropped, hash) })
			return nil
		})
		r.write("", func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Account{ID: "acme"})
			failed := seed.Add(tx, seed.Account{ID: "rival"})
			return errors.Join(err, failed)
		})
		r.http = rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
			Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
				scopes, unknown := policy.ParseScopes(strings.Fields(p.Bearer))
				if unknown != nil {
					t.Errorf("unknown scopes %v", unknown)
				}
				return policy.Actor{Credential: policy.PAT, CredentialID: "t", AccountID: p.Account, Scopes: scopes}, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, r.Ops())
		fn(t, r)
	})
}

func (r *roster) write(account string, fn func(*db.Tx) error) {
	r.t.Helper()
	if err := r.DB.Write(db.WithAccount(context.Background(), account), fn); err != nil {
		r.t.Fatal(err)
	}
}

func (r *roster) call(account, scopes string, status int, method, path, body string, into any) {
	r.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Caller", account)
	req.Header.Set("Authorization", "Bearer "+scopes)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	r.http.ServeHTTP(rec, req)
	if rec.Code != status {
		r.t.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, rec.Code, status, rec.Body)
	}
	if into != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
			r.t.Fatalf("%v: %s", err, rec.Body)
		}
	}
}

// TestMintCeilings holds that a token has no scope that its minter lacks, and none
// that only operator tokens may have.
func TestMintCeilings(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *roster) {
		const admin = "read:account write:account read:tasks admin:read:platform admin:grants"
		for body, want := range map[string]string{
			``:                                       "read:account write:account read:tasks admin:read:platform",
			`{}`:                                     "read:account write:account read:tasks",
			`{"name": "ci", "expires_in_days": 365}`: "read:account write:account read:tasks",
			`{"scopes": ["admin:read:platform"], "expires_in_days": 90}`:   "admin:read:platform",
			`{"scopes": ["admin:read:platform"], "expires_in_days": 91}`:   "",
			`{"scopes": ["read:tasks", "admin:read:platform"]}`:            "",
			`{"scopes": ["admin:read:platform"], "expires_in_days": null}`: "",
			`{"scopes": ["read:tasks"]}`:                                   "read:tasks",
			`{"scopes": ["write:tasks"]}`:                                  "",
			`{"scopes": ["admin:grants"]}`:                                 "",
			`{"scopes": ["read:tasks", "write:billing"]}`:                  "",
			`{"scopes": ["read:everything"]}`:                              "",
			`{"scopes": []}`:                                               "",
			`{"expires_in_days": 366}`:                                     "",
			`{"expires_in_days": 0}`:                                       "",
		} {
			if want == "" {
				var p struct{ Errors map[string][]string }
				r.call("acme", admin, 400, "POST", "/v1/tokens", body, &p)
				if strings.Contains(body, "admin:read:platform") && p.Errors["expires_in_days"] == nil {
					t.Errorf("%s is refused for %v", body, p.Errors)
				}
				continue
			}
			var m MintedToken
			r.call("acme", admin, 201, "POST", "/v1/tokens", body, &m)
			if lasts := m.ExpiresISO; strings.Contains(want, "admin:") && (lasts == nil || time.Until(*lasts) > 90*24*time.Hour ||
				body == "" && time.Until(*lasts) > 30*24*time.Hour) {
				t.Errorf("%s ends at %v", body, lasts)
			}
			if got := strings.Join(m.Scopes, " "); got != want || !id.Checked(id.PAT, m.Token) || !strings.HasPrefix(m.Token, m.Prefix) {
				t.Errorf("%s mints %+v, want %q", body, m, want)
			}
		}
		r.call("acme", "read:account read:tasks", 403, "POST", "/v1/tokens", `{"scopes": ["read:tasks"]}`, nil)
		var list Roster
		if r.call("acme", "read:account read:tasks", 200, "GET", "/v1/tokens", "", &list); len(list.MintableScopes) != 0 ||
			len(list.Data) != 5 {
			t.Errorf("who may not mint sees %+v", list)
		}
	})
}

// TestPlatformScopesEnd holds that a token with scopes over the platform mints none that
// outlives it, and that the owner of one from before, without an end, is told.
func TestPlatformScopesEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *roster) {
		scopes := policy.Scopes(policy.ReadAccount, policy.WriteAccount, policy.AdminReadUsers)
		var ends *time.Time
		by := func(c policy.Credential, days int, body mintIn) error {
			a := policy.Actor{Credential: c, AccountID: "acme", Scopes: scopes, ExpiresAt: time.Now().Add(time.Duration(days) * day)}
			out, err := r.mint(db.WithAccount(policy.With(context.Background(), a), "acme"), body)
			ends = out.ExpiresISO
			return err
		}
		ninety, ten := 90, 10
		want := scopes.Names()
		if err := by(policy.PAT, 11, mintIn{Scopes: want, ExpiresInDays: &ten}); err != nil {
			t.Errorf("one that ends before: %v", err)
		}
		if err := by(policy.PAT, 11, mintIn{Scopes: want, ExpiresInDays: &ninety}); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("one that outlives its minter: %v", err)
		}
		if err := by(policy.PAT, 11, mintIn{Bodied: op.Bodied{NoBody: true}}); err != nil {
			t.Errorf("one without a body: %v", err)
		}
		if ends == nil || time.Until(*ends) > 11*day {
			t.Errorf("one without a body outlives its minter: %v", ends)
		}
		if err := by(policy.Session, 11, mintIn{Bodied: op.Bodied{NoBody: true}}); err != nil || ends == nil || time.Until(*ends) < 29*day {
			t.Errorf("a session's without a body ends at %v, %v", ends, err)
		}
		if err := by(policy.Session, 11, mintIn{Scopes: want, ExpiresInDays: &ninety}); err != nil {
			t.Errorf("a session's: %v", err)
		}
		r.write("acme", func(tx *db.Tx) error {
			_, err := insert.Exec(tx, insertArgs{ID: id.New(), AccountID: "acme", Kind: string(policy.PAT), Hash: "h",
				Scopes: db.JSON[[]string]{V: want}, CreatedAt: tx.Micros() + 1})
			return err
		})
		var list Roster
		r.call("acme", "read:account", 200, "GET", "/v1/tokens", "", &list)
		for i, row := range list.Data {
			if (row.Advice != nil) != (i == 0) {
				t.Errorf("the advice about %+v", row)
			}
		}
	})
}

func TestPlaintextIsShownOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *roster) {
		var m MintedToken
		r.call("acme", "write:account", 201, "POST", "/v1/tokens", `{"name": "ci", "expires_in_days": 1}`, &m)
		r.write("acme", func(tx *db.Tx) error {
			rows, err := stored.All(tx, "acme")
			trail, failed := audited.All(tx, "acme")
			for _, text := range append(rows, trail...) {
				if strings.Contains(text, m.Token[len(m.Prefix):]) {
					t.Errorf("the plaintext is stored: %s", text)
				}
			}
			if c, ok, err := Resolve(tx, seal.Hash(m.Token)); err != nil || !ok || c.ID != m.ID || c.AccountID != "acme" {
				t.Errorf("it resolves to %+v, %v, %v", c, ok, err)
			}
			return errors.Join(err, failed)
		})
	})
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *roster) {
		var m MintedToken
		r.call("acme", "write:account", 201, "POST", "/v1/tokens", `{}`, &m)
		for _, known := range []string{m.ID, id.New(), "x"} { // foreign and unknown alike
			r.call("rival", "write:account", 404, "DELETE", "/v1/tokens/"+known, "", nil)
			r.call("rival", "write:account", 404, "PATCH", "/v1/tokens/"+known, `{"name": "mine"}`, nil)
		}
		if len(r.dropped) != 0 {
			t.Errorf("a stranger's attempt dropped %v", r.dropped)
		}
		for range 2 { // again is no error
			var row Token
			if r.call("acme", "write:account", 200, "DELETE", "/v1/tokens/"+m.ID, "", &row); !row.Revoked {
				t.Errorf("revoked: %+v", row)
			}
		}
		if !slices.Contains(r.dropped, seal.Hash(m.Token)) {
			t.Error("no cache was told")
		}
		r.write("acme", func(tx *db.Tx) error {
			_, ok, err := Resolve(tx, seal.Hash(m.Token))
			if ok {
				t.Error("a revoked token resolves")
			}
			trail, failed := audited.All(tx, "acme")
			n := 0
			for _, row := range trail {
				if strings.HasPrefix(row, "token.revoked") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%d audit rows of one revocation", n)
			}
			return errors.Join(err, failed)
		})
		var row Token
		r.call("acme", "write:account", 200, "PATCH", "/v1/tokens/"+m.ID, `{"name": null}`, &row)
		if row.Name != nil || !row.Revoked {
			t.Errorf("renamed: %+v", row)
		}
	})
}
