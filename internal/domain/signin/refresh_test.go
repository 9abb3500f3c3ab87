package signin

import (
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func (d *server) token() (bearer string) {
	d.t.Helper()
	d.write(func(tx *db.Tx) error {
		tx.Account = "acme"
		made, err := token.Mint(tx, policy.PAT, "ada", nil, policy.Owner.Ceiling(), nil)
		bearer = made.Token
		return err
	})
	return bearer
}

// TestSteadyUseReadsNothing holds that requests with a credential in steady use do
// not read the database.
func TestSteadyUseReadsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		p, cookie := Presented{Bearer: d.token()}, Presented{Session: d.cookie(), Account: "second"}
		ask := func() {
			t.Helper()
			for _, p := range []Presented{p, cookie} {
				if _, err := d.who(p); err != nil {
					t.Fatal(err)
				}
			}
		}
		ask()
		for range 5 {
			d.pass(refreshEvery)
			ask()
			d.refresh(t.Context())
		}
		if err := d.DB.Close(); err != nil {
			t.Fatal(err)
		}
		d.pass(fresh - time.Millisecond)
		ask()
		d.pass(time.Millisecond)
		if _, err := d.who(p); err == nil {
			t.Error("trusted for longer than is fresh")
		}
	})
}

// TestDisuseEndsTheRefreshing holds that an unused credential is not resolved again.
func TestDisuseEndsTheRefreshing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		p := Presented{Bearer: d.token()}
		if _, err := d.who(p); err != nil {
			t.Fatal(err)
		}
		d.refresh(t.Context())
		d.pass(refreshEvery)
		d.refresh(t.Context())
		d.pass(refreshEvery)
		if err := d.DB.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.who(p); err == nil {
			t.Error("refreshed without use")
		}
	})
}

// TestRevokedOnEveryNode holds that a token revoked on one node stops within a second
// on another, at whatever moment the refresh runs.
func TestRevokedOnEveryNode(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t, db.Postgres)
	for _, before := range []time.Duration{0, refreshEvery - time.Millisecond, refreshEvery} {
		here := newServer(t, dsn, before == 0)
		other := here.Needs
		other.DB = dbtest.Open(t, dsn, db.Options{Clock: here.Clock})
		there := New(other)
		p := Presented{Bearer: here.token()}
		ask := func() error {
			_, err := there.Authenticate(t.Context(), p)
			return err
		}
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		here.pass(before)
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		there.refresh(t.Context())
		here.write(func(tx *db.Tx) error {
			_, err := seed.RevokeTokens.Exec(tx, tx.Micros())
			return err
		})
		for range 2 {
			_ = ask() // keeps the credential in use
			here.pass(refreshEvery)
			there.refresh(t.Context())
		}
		if err := ask(); !fault.IsKind(err, fault.Unauthenticated) {
			t.Errorf("a second after it was revoked: %v", err)
		}
	}
}
