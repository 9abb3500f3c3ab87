package app

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

// What somebody has set out in an account ends with their right to set it out: a token, what invites others
// or a machine in, or has notices sent to an address. Whoever was removed and is added again begins anew.
func TestWhatIsSetOutEndsWithTheRight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, flags...)
		for name, c := range map[string]struct {
			spoil                         func(y *yard, bob string)
			token, invites, joins, routes bool
		}{
			"nothing":       {func(*yard, string) {}, true, true, true, true},
			"another right": {func(y *yard, bob string) { y.gets(bob, policy.Owner) }, true, true, true, true},
			"the role":      {func(y *yard, bob string) { y.gets(bob, policy.Member) }, true, false, false, false},
			"removed":       {func(y *yard, bob string) { y.removes(bob) }, false, false, false, false},
			"removed, and added again": {func(y *yard, bob string) {
				y.removes(bob)
				y.in(y.acct, func(tx *db.Tx) error {
					return seed.Member{Account: y.acct, User: bob, Role: "admin", Since: db.Micros(tx.Now.Add(2 * people.Apart))}.Add(tx)
				})
			}, false, false, false, false},
		} {
			t.Run(name, func(t *testing.T) {
				y := &yard{App: y.App, t: t, setup: y.setup, owner: y.owner, user: y.user, acct: y.acct}
				word := strings.ReplaceAll(strings.ReplaceAll(name, ",", ""), " ", "-")
				bob := y.person("bob-"+word, y.acct, policy.Admin)
				token := y.mint(y.acct, &bob, policy.Admin.Ceiling(), nil)
				rival := y.tenant("rival-" + word)
				eve := y.person("eve-"+word, rival, policy.Owner)
				var invited struct {
					Invitation struct{ ID string }
					Link       string
				}
				guest := `{"role": "admin", "email": "eve-` + word + `@example.com"}`
				decode(t, y.send("POST", "/v1/org/members", token, guest).want(201), &invited)
				var enrollment struct{ Token string }
				decode(t, y.send("POST", "/v1/runners/enrollments", token, "{}").want(201), &enrollment)
				team := "team-" + word + "@example.com"
				y.send("POST", "/v1/email-routes", token, `{"address": "`+team+`", "kinds": ["escalation"]}`).want(201)
				c.spoil(y, bob)

				routes := string(y.send("GET", "/v1/email-routes", y.owner, "").want(200).body)
				if listed := strings.Contains(routes, team); listed != c.routes {
					t.Errorf("that notices are to go to an address which has not confirmed it: %t", listed)
				}

				if c.token {
					y.send("GET", "/v1/tasks", token, "").want(200)
				} else {
					patience.Until(t, "the token is none", func() bool { return y.send("GET", "/v1/tasks", token, "").StatusCode == 401 })
				}
				mine := y.mint(rival, &eve, policy.Scopes(policy.ReadAccount), nil)
				_, link, _ := strings.Cut(invited.Link, "/invite/")
				var got struct {
					Granted bool
					Reason  *string
				}
				decode(t, y.send("POST", "/v1/invitations/accept", mine, `{"token": "`+link+`"}`).want(200), &got)
				if got.Granted != c.invites || !c.invites && (got.Reason == nil || *got.Reason != "revoked") {
					t.Errorf("the invitation: %+v", got)
				}
				if a := y.redeems(enrollment.Token); c.joins {
					a.want(201)
				} else {
					a.problem(400, "enrollment-refused")
				}
			})
		}
	})
}

// What somebody has allowed a program ends with their membership, as long as the program has not fetched
// it: a token that is fetched after that would be good again as soon as they are added again.
func TestAllowedProgramsEndWithTheRight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, flags...)
		cookie := y.browser()
		second := y.tenant("second")
		y.in(second, func(tx *db.Tx) error { return seed.Member{Account: second, User: y.user, Role: "member"}.Add(tx) })
		bob := y.mint(y.acct, new(y.person("bob", y.acct, policy.Owner)), policy.Owner.Ceiling(), nil)
		kept, code := y.approves(cookie), y.approves(cookie)
		y.send("POST", "/auth/device/token", "", `{"device_code": "`+kept+`"}`).want(200)
		y.send("DELETE", "/v1/org/members/"+y.user, bob, "").want(200)
		y.in(y.acct, func(tx *db.Tx) error { return seed.Member{Account: y.acct, User: y.user, Role: "owner"}.Add(tx) })
		y.send("POST", "/auth/device/token", "", `{"device_code": "`+code+`"}`).problem(400, "access_denied")
	})
}

// A deletion that an owner has asked for is taken back with the role of the owner.
func TestDeletionEndsWithTheRight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, flags...)
		y.tenant("rival")
		bob := y.person("bob", y.acct, policy.Owner)
		token, cookie := y.mint(y.acct, &bob, policy.Owner.Ceiling(), nil), y.browser()
		y.send("PUT", "/v1/account/deletion", "", `{"login": "acme"}`, "Cookie", cookie, "Origin", y.URL()).want(200)
		asked := func() bool {
			var me struct{ Account struct{ Deletion *struct{} } }
			decode(t, y.send("GET", "/v1/me", token, "").want(200), &me)
			return me.Account.Deletion != nil
		}
		y.gets(bob, policy.Owner) // and nobody loses anything
		if !asked() {
			t.Fatal("it is not asked for")
		}
		y.send("PATCH", "/v1/org/members/"+y.user, token, `{"role": "admin"}`).want(200)
		if asked() {
			t.Error("it goes on in the name of who is no owner any more")
		}
	})
}

// gets gives a member a role.
func (y *yard) gets(user string, role policy.Role) {
	y.t.Helper()
	y.send("PATCH", "/v1/org/members/"+user, y.owner, `{"role": "`+string(role)+`"}`).want(200)
}

// removes removes a member.
func (y *yard) removes(user string) {
	y.t.Helper()
	y.send("DELETE", "/v1/org/members/"+user, y.owner, "").want(200)
}
