package app

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/provider"
	"yardmaster/internal/proof/seed"
)

// What a session mints that an account's provider has vouched for, at once or by way of a program,
// is no more than the session, nor is what that mints, and it ends with the provider.
func TestTokensOfAProviderAreNoOwners(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, append(flags, "--allow-networks", "127.0.0.0/8")...)
		p := provider.New(t)
		y.send("PUT", "/v1/org-sso", y.owner, `{"issuer": "`+p.URL+`", "client_id": "`+provider.Client+`", "client_secret": "`+
			provider.Secret+`", "domains": ["example.com"]}`).want(200)
		eve := y.person("eve", y.acct, policy.Admin)
		p.Is(map[string]any{"sub": "5", "email": "ada@example.com", "email_verified": true}) // the owner, says eve's provider
		v := y.traveller()
		v.goes(ssoStart)
		cookie := v.cookie()
		var minted, again, device struct{ Token string }
		decode(t, y.send("POST", "/v1/tokens", "", `{"name": "x"}`, "Cookie", cookie, "Origin", y.URL()).want(201), &minted)
		decode(t, y.send("POST", "/v1/tokens", minted.Token, `{"name": "y"}`).want(201), &again)
		device.Token = y.device(cookie)
		for name, token := range map[string]string{"minted": minted.Token, "by that": again.Token, "by a device": device.Token} {
			y.send("PATCH", "/v1/org/members/"+eve, token, `{"role": "owner"}`).problem(403, "owner-required")
			y.send("POST", "/v1/org/members", token, `{"email": "eve2@example.com", "role": "owner"}`).problem(403, "owner-required")
			var who me
			decode(t, y.send("GET", "/v1/me", token, "").want(200), &who)
			for _, scope := range who.Scopes {
				if strings.HasPrefix(scope, "write:self:") || strings.HasPrefix(scope, "admin:") {
					t.Errorf("%s: a provider of an account vouches for %s", name, scope)
				}
			}
		}
		// Nor does such a session leave for an owner, or take them elsewhere.
		rival := y.tenant("rival")
		bob := y.mint(rival, new(y.person("bob", rival, policy.Owner)), policy.Owner.Ceiling(), nil)
		y.person("cat", y.acct, policy.Owner)
		var invited struct{ Link string }
		decode(t, y.send("POST", "/v1/org/members", bob, `{"email": "ada@example.com", "role": "member"}`).want(201), &invited)
		_, link, _ := strings.Cut(invited.Link, "/invite/")
		accept := `{"token": "` + link + `"}`
		y.send("POST", "/v1/invitations/accept", minted.Token, accept).problem(403, "sso-session")
		y.send("POST", "/v1/invitations/accept", "", accept, "Cookie", cookie, "Origin", y.URL()).problem(403, "sso-session")
		y.in(rival, func(tx *db.Tx) error { return seed.Member{Account: rival, User: y.user, Role: "member"}.Add(tx) })
		y.send("POST", "/v1/me/leave", "", `{"account": "acme"}`, "Cookie", cookie, "Origin", y.URL()).problem(403, "sso-session")

		y.send("DELETE", "/v1/org-sso", y.owner, "").want(200)
		for name, token := range map[string]string{"minted": minted.Token, "by that": again.Token, "by a device": device.Token} {
			if a := y.send("GET", "/v1/me", token, ""); a.StatusCode != 401 {
				t.Errorf("%s outlives the provider: %d", name, a.StatusCode)
			}
		}
		y.send("GET", "/v1/me", y.owner, "").want(200)
	})
}

var ticketOf = regexp.MustCompile(`name="ticket" value="([^"]*)"`)

// approves lets a command line in, as a person in a browser, and answers its device_code.
func (y *yard) approves(cookie string) (deviceCode string) {
	y.t.Helper()
	var d struct {
		DeviceCode string `json:"device_code"`
		UserCode   string `json:"user_code"`
	}
	decode(y.t, y.send("POST", "/auth/device", "", `{}`).want(200), &d)
	found := ticketOf.FindStringSubmatch(string(y.send("GET", "/device?user_code="+d.UserCode, "", "", "Cookie", cookie).want(200).body))
	if found == nil {
		y.t.Fatal("there is no ticket")
	}
	form := url.Values{"ticket": {html.UnescapeString(found[1])}, "decision": {"authorize"}}.Encode()
	y.send("POST", "/device", "", form, "Cookie", cookie, "Origin", y.URL(), "Content-Type", "application/x-www-form-urlencoded").want(200)
	return d.DeviceCode
}

// device is approves, and the token that the command line fetches.
func (y *yard) device(cookie string) (token string) {
	y.t.Helper()
	var g struct {
		Token string `json:"access_token"`
	}
	decode(y.t, y.send("POST", "/auth/device/token", "", `{"device_code": "`+y.approves(cookie)+`"}`).want(200), &g)
	return g.Token
}
