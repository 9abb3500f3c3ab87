package token

import (
	"context"
	"errors"
	"testing"
	"time"

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
