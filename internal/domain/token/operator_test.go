package token

import (
	"context"
	"errors"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// TestOperatorTokens holds that only a session with a fresh sign-in gets an operator
// token, and that the token lives an hour.
func TestOperatorTokens(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return now }}, func(t *testing.T, d *db.DB) {
		s := New(Needs{DB: d})
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Account{ID: "acme"})
			other := seed.Add(tx, seed.User{ID: "ada", Operator: true})
			return errors.Join(err, other)
		})
		if err != nil {
			t.Fatal(err)
		}
		issue := func(c policy.Credential, ago time.Duration, scopes ...string) (MintedToken, error) {
			a := policy.Actor{
				Credential:   c,
				CredentialID: "x",
				UserID:       "ada",
				AccountID:    "acme",
				Role:         policy.Owner,
				Scopes:       policy.PlatformRead,
				SignedInAt:   now.Add(-ago),
			}
			return s.issue(db.WithAccount(policy.With(context.Background(), a), "acme"), operatorIn{Name: "fix", Scopes: scopes})
		}
		for name, c := range map[string]struct {
			credential policy.Credential
			ago        time.Duration
			scope      string
			slug       string
		}{
			"fresh":              {policy.Session, time.Hour, "admin:users", ""},
			"stale":              {policy.Session, time.Hour + time.Second, "admin:users", "reauth-required"},
			"a token":            {policy.PAT, 0, "admin:users", "reauth-required"},
			"an operator token":  {policy.Operator, 0, "admin:users", "reauth-required"},
			"bugs":               {policy.Session, 0, "admin:bugs", ""},
			"an operator's read": {policy.Session, 0, "admin:read:users", "invalid"},
			"a member's write":   {policy.Session, 0, "write:tasks", "invalid"},
			"no scope":           {policy.Session, 0, "admin:everything", "invalid"},
		} {
			m, err := issue(c.credential, c.ago, c.scope)
			var f *fault.Error
			if slug := ""; errors.As(err, &f) || err == nil {
				if f != nil {
					slug = f.Slug
				}
				if slug != c.slug {
					t.Errorf("%s: %q, want %q", name, slug, c.slug)
				}
			} else {
				t.Errorf("%s: %v", name, err)
			}
			if c.slug != "" {
				continue
			}
			if m.ExpiresISO == nil || !m.ExpiresISO.Equal(now.Add(time.Hour)) || len(m.Scopes) != 1 || m.Scopes[0] != c.scope {
				t.Errorf("%s: %+v", name, m)
			}
			for after, live := range map[time.Duration]bool{time.Hour - time.Second: true, time.Hour: false} {
				err := d.Read(t.Context(), func(tx *db.Tx) error {
					tx.Now = now.Add(after)
					cred, ok, err := Resolve(tx, seal.Hash(m.Token))
					if ok != live || ok && cred.Kind != string(policy.Operator) {
						t.Errorf("%s: after %s: %+v, %v", name, after, cred, ok)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := issue(policy.Session, 0); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("without a scope: %v", err)
		}
	})
}

// TestOperatorTokensAreTheirOwners holds that the account to which an operator token is
// bound neither sees the token, nor renames or revokes it, nor reads of it in its record.
func TestOperatorTokensAreTheirOwners(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *roster) {
		as := func(user string) context.Context {
			a := policy.Actor{Credential: policy.Session, UserID: user, AccountID: "acme", Role: policy.Owner,
				Scopes: policy.Owner.Ceiling()}
			return db.WithAccount(policy.With(context.Background(), a), "acme")
		}
		var m MintedToken
		err := r.DB.Write(as("root"), func(tx *db.Tx) error {
			err := seed.Add(tx, seed.User{ID: "root", Operator: true}, seed.User{ID: "ada"})
			end := tx.Now.Add(time.Hour)
			var failed error
			m, failed = Mint(tx, policy.Operator, "root", nil, policy.OperatorOnly, &end)
			return errors.Join(err, failed)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, user := range []string{"ada", ""} {
			list, err := r.list(as(user), listIn{op.PageIn{PerPage: 9}})
			if err != nil || len(list.Data) != 0 {
				t.Errorf("%q sees %+v, %v", user, list.Data, err)
			}
			if _, err := r.rename(as(user), renameIn{ID: m.ID}); !fault.IsKind(err, fault.NotFound) {
				t.Errorf("%q renames it: %v", user, err)
			}
			if _, err := r.revoke(as(user), revokeIn{ID: m.ID}); !fault.IsKind(err, fault.NotFound) || len(r.dropped) != 0 {
				t.Errorf("%q revokes it: %v, %v", user, err, r.dropped)
			}
		}
		if list, err := r.list(as("root"), listIn{op.PageIn{PerPage: 9}}); err != nil || len(list.Data) != 1 {
			t.Errorf("its owner sees %+v, %v", list.Data, err)
		}
		_, renamed := r.rename(as("root"), renameIn{ID: m.ID})
		out, revoked := r.revoke(as("root"), revokeIn{ID: m.ID})
		if err := errors.Join(renamed, revoked); err != nil || !out.Revoked {
			t.Errorf("its owner revokes it: %+v, %v", out, err)
		}
		r.write("acme", func(tx *db.Tx) error {
			trail, err := audited.All(tx, "acme")
			if len(trail) != 0 {
				t.Errorf("the account reads %q", trail)
			}
			return err
		})
	})
}
