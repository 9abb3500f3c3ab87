package app

import (
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// A session acts for the account it was pointed at from the next request on,
// and only a session can be pointed.
func TestActiveAccount(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	second := y.tenant("second")
	y.tenant("rival")
	y.in(second, func(tx *db.Tx) error {
		return seed.Member{Account: second, User: y.user, Role: string(policy.Viewer)}.Add(tx)
	})
	cookie := y.browser()
	acts := func() string {
		var me struct{ Account struct{ ID string } }
		decode(t, y.send("GET", "/v1/me", "", "", "Cookie", cookie).want(200), &me)
		return me.Account.ID
	}
	turn := func(account string) answer {
		return y.send("POST", "/v1/me/active-account", "", `{"account": "`+account+`"}`, "Cookie", cookie, "Origin", y.URL())
	}
	turn(y.acct).want(200)
	if acts() != y.acct {
		t.Fatal("the session is not where it was turned to")
	}
	var to struct{ ID, Role string }
	decode(t, turn("second").want(200), &to)
	if to.ID != second || to.Role != "viewer" || acts() != second {
		t.Errorf("turned to %+v, acts for %s", to, acts())
	}
	foreign, unknown := turn("rival").problem(403, "not-a-member"), turn("nobody").problem(403, "not-a-member")
	if foreign["detail"] != unknown["detail"] || acts() != second {
		t.Error("a foreign account is told from an unknown one")
	}
	y.send("POST", "/v1/me/active-account", y.owner, `{"account": "second"}`).problem(403, "session-required")
	turn(y.acct).want(200)
	if acts() != y.acct {
		t.Error("the session did not come back")
	}
}

// What was granted can be used, and no longer once it is taken back.
func TestGrantsAreCapacity(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.push("acme/web", map[string]string{"README": "hello\n"})
	y.in(y.acct, func(tx *db.Tx) error {
		_, err := setSeats.Exec(tx, y.acct, 0)
		return err
	})
	file := func() answer {
		return y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`)
	}
	operator := y.operator()
	file().problem(403, "no-capacity")
	for _, subject := range []string{`"account_id": "` + y.acct + `"`, `"user_id": "` + y.user + `"`} {
		var g struct{ ID string }
		decode(t, y.send("POST", "/v1/admin/grants", operator, `{`+subject+`, "ai_devs": 1, "reason": "a test"}`).want(201), &g)
		file().want(202)
		y.send("DELETE", "/v1/admin/grants/"+g.ID, operator, "").want(200)
		file().problem(403, "no-capacity")
	}
}

// Two owners demoted at once leave one.
func TestLastOwnerAtOnce(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			y := start(t, e)
			owners := []string{y.user, y.person("bob", y.acct, policy.Owner), y.person("cem", y.acct, policy.Owner)}
			operator := y.mint(y.acct, nil, policy.Scopes(policy.AdminAccounts), nil)
			status := make([]int, len(owners))
			var wg sync.WaitGroup
			for i, owner := range owners {
				wg.Go(func() {
					status[i] = y.send("PATCH", "/v1/admin/accounts/"+y.acct+"/members/"+owner, operator, `{"role": "viewer"}`).StatusCode
				})
			}
			wg.Wait()
			refused := 0
			for _, s := range status {
				if s == 409 {
					refused++
				} else if s != 200 {
					t.Errorf("status %d", s)
				}
			}
			if refused != 1 {
				t.Errorf("%d of three were refused: %v", refused, status)
			}
		})
	}
}

var letters = db.Q[int64](`SELECT COUNT(*) FROM mails WHERE recipient = $1 AND subject LIKE '%open-source%'`)

// One letter goes to the person who applied, with the approval.
func TestApprovalIsMailed(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	operator := y.operator()
	decide := func(body string) (n int64) {
		var v struct{ Application struct{ ID string } }
		decode(t, y.send("POST", "/v1/oss/verification", y.owner,
			`{"project_url": "https://example.com/acme", "statement": "MIT"}`).want(200), &v)
		y.send("POST", "/v1/admin/oss-verifications/"+v.Application.ID+"/decide", operator, body).want(200)
		y.in(y.acct, func(tx *db.Tx) (err error) {
			n, err = letters.One(tx, "ada@example.com")
			return err
		})
		return n
	}
	if n := decide(`{"decision": "reject", "note": "No.", "confirm": true}`); n != 0 {
		t.Errorf("%d letters of a rejection, which is read at the application", n)
	}
	if n := decide(`{"decision": "approve", "confirm": true}`); n != 1 {
		t.Errorf("%d letters of an approval", n)
	}
}
