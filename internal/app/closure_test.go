package app

import (
	"net/http"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/till"
)

// A deletion that has begun is not taken back. What keeps it from going on is shown to the account, and
// once that is mended the account is gone, and the neighbour is not. An admin has no account deleted.
func TestDeletionThatHasBegun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		far := till.Open(t)
		y := start(t, e, append(flags, "--stripe-url", far.URL, "--stripe-secret-key", till.Key, "--stripe-webhook-secret", till.Secret,
			"--stripe-seat-price", "price_seat", "--deletion-wait", "0")...)
		neighbour := y.tenant("rival")
		spy := y.mint(neighbour, nil, policy.Scopes(policy.ReadAccount), nil)
		y.push("acme/web", map[string]string{"README": "hello\n"})
		y.send("POST", "/v1/billing/checkout", y.owner, `{"kind": "seats", "quantity": 3}`).want(201)
		far.Fail(http.StatusInternalServerError)
		cookie := y.browser()
		y.in(y.acct, func(tx *db.Tx) error { return role(tx, y.acct, "admin") })
		y.send("PUT", "/v1/account/deletion", "", `{"login": "acme"}`, "Cookie", cookie, "Origin", y.URL()).problem(403, "owner-required")
		y.in(y.acct, func(tx *db.Tx) error { return role(tx, y.acct, "owner") })
		cookie = y.browser()
		y.send("PUT", "/v1/account/deletion", "", `{"login": "acme"}`, "Cookie", cookie, "Origin", y.URL()).want(200)
		var me struct {
			Account struct{ Deletion *struct{ Failure *string } }
		}
		patience.Until(t, "it is said what keeps it from going on", func() bool {
			decode(t, y.send("GET", "/v1/me", y.owner, "").want(200), &me)
			return me.Account.Deletion != nil && me.Account.Deletion.Failure != nil
		})
		if said := *me.Account.Deletion.Failure; said != "Its subscriptions could not be ended at the provider of payments." {
			t.Errorf("it says %q", said)
		}
		y.send("DELETE", "/v1/account/deletion", "", "", "Cookie", cookie, "Origin", y.URL()).problem(409, "deletion-begun")
		far.Fail(0)
		patience.Until(t, "the account is gone", func() bool { return y.send("GET", "/v1/me", y.owner, "").StatusCode == 401 })
		y.send("GET", "/v1/me", spy, "").want(200)
	})
}

// role gives the only member of an account another role.
func role(tx *db.Tx, account, role string) error {
	_, err := db.Select[string](tx, db.Build(`UPDATE memberships SET role = `, role).SQL(` WHERE account_id = `, account).SQL(
		` RETURNING user_id`))
	return err
}
