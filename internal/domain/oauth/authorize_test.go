package oauth

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
)

// TestUnknownClientsAreNotAnswered holds that faults of the client itself are shown
// on the page: the browser is not sent to an unregistered address.
func TestUnknownClientsAreNotAnswered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		for name, c := range map[string]struct{ change, code string }{
			"no client":          {"client_id=", "invalid_client"},
			"a client of nobody": {"client_id=v1.AAAA", "invalid_client"},
			"no address":         {"redirect_uri=", "invalid_request"},
			"another address":    {"redirect_uri=https://evil.example/cb", "invalid_request"},
			"another path":       {"redirect_uri=http://127.0.0.1:7777/other", "invalid_request"},
		} {
			key, value, _ := strings.Cut(c.change, "=")
			for _, session := range []string{"", owner} {
				y.refused(c.code, "GET", y.request(key, value), session, "")
			}
			req := httptest.NewRequest("GET", y.request(key, value), nil)
			req.Header.Set("Accept", "text/html,application/xhtml+xml")
			rec := httptest.NewRecorder()
			y.http.ServeHTTP(rec, req)
			if rec.Code != 400 || rec.Header().Get("Location") != "" || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html") {
				t.Errorf("%s, in a browser: %d %v", name, rec.Code, rec.Header())
			}
		}
	})
}

// TestBadRequestsAreAnsweredHere holds that other faults are shown on the page as
// well: registration is open, and a person who has not decided is sent to no client's
// address.
func TestBadRequestsAreAnsweredHere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		for _, c := range []struct{ key, value, code string }{
			{"response_type", "token", "unsupported_response_type"},
			{"response_type", "", "unsupported_response_type"},
			{"code_challenge_method", "plain", "invalid_request"},
			{"code_challenge_method", "", "invalid_request"},
			{"code_challenge", "", "invalid_request"},
			{"code_challenge", verifier + "x", "invalid_request"},
			{"scope", "read:tasks read:nonsense", "invalid_scope"},
			{"scope", "admin:accounts", "invalid_scope"},
			{"resource", "https://elsewhere.example/v1/mcp", "invalid_target"},
		} {
			target := y.request(c.key, c.value)
			y.refused(c.code, "GET", target, owner, "")
			req := httptest.NewRequest("GET", target, nil)
			req.Header.Set("Accept", "text/html,application/xhtml+xml")
			req.Header.Set("X-Session", owner)
			rec := httptest.NewRecorder()
			y.http.ServeHTTP(rec, req)
			if rec.Code != 400 || rec.Header().Get("Location") != "" || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html") {
				t.Errorf("%s=%s, in a browser: %d %v", c.key, c.value, rec.Code, rec.Header())
			}
			at := y.call(answer{303, nil}, "GET", target, "", "").Header().Get("Location")
			if !strings.HasPrefix(at, "/login?return_to=") {
				t.Errorf("%s=%s: a visitor is sent to %s", c.key, c.value, at)
			}
		}
		for _, fine := range []string{"", base, base + "/", base + ResourcePath} {
			y.shown(y.request("resource", fine, "unknown", "is ignored"), owner)
		}
	})
}

// TestSignInReturns holds that the request survives a visit to the sign-in page
// unchanged.
func TestSignInReturns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		target := y.request("resource", base+ResourcePath)
		at, err := url.Parse(y.call(answer{303, nil}, "GET", target, "", "").Header().Get("Location"))
		if err != nil || at.Path != "/login" {
			t.Fatalf("%v, %v", at, err)
		}
		if got := at.Query().Get("return_to"); got != target {
			t.Errorf("it returns to %s, want %s", got, target)
		}
	})
}

// TestScopesAreNarrowed holds that the screen offers only scopes that the session
// holds, and none that only operator tokens may have.
func TestScopesAreNarrowed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		for asked, want := range map[string]string{
			"read:tasks write:tasks":     "read:tasks",
			"read:tasks admin:accounts":  "read:tasks",
			"":                           "read:account read:tasks",
			" read:account  read:tasks ": "read:account read:tasks",
		} {
			session := "s1 acme read:account read:tasks admin:accounts"
			ticket := y.shown(y.request("scope", asked), session)
			q := y.heard(y.call(answer{303, nil}, "POST", authorizePath, session, decision(ticket, "authorize")))
			var g Grant
			y.call(answer{200, &g}, "POST", tokenPath, "", y.exchange(q.Get("code")))
			if g.Scope != want {
				t.Errorf("asked for %q, it gets %q, want %q", asked, g.Scope, want)
			}
		}
	})
}

// TestTickets holds that a ticket is good once, for a limited time, only in the
// session that was shown it, and only while that session holds the scopes.
func TestTickets(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		ticket := y.shown(y.request(), owner)
		rights := strings.TrimPrefix(owner, "s1 acme ")
		for name, c := range map[string]struct{ session, ticket string }{
			"nobody":             {"", ticket},
			"another session":    {"s2 acme " + rights, ticket},
			"another account":    {"s1 rival " + rights, ticket},
			"less than was seen": {"s1 acme read:tasks", ticket},
			"none":               {owner, ""},
			"damaged":            {owner, ticket[:len(ticket)-2]},
			"of another kind":    {owner, y.Ring.Seal(sealDevice, []byte("{}"))},
			"not a ticket":       {owner, y.client},
		} {
			t.Log(name)
			y.refused("bad-ticket", "POST", authorizePath, c.session, decision(c.ticket, "authorize"))
		}
		y.refused("invalid_request", "POST", authorizePath, owner, decision(ticket, "perhaps"))
		y.refused("invalid_request", "POST", authorizePath, owner, decision(ticket, "authorize")+"&decision=cancel")

		q := y.heard(y.call(answer{303, nil}, "POST", authorizePath, owner, decision(ticket, "cancel")))
		if q.Get("error") != "access_denied" || q.Get("state") != "s&1" || q.Get("iss") != base {
			t.Errorf("on cancel the client hears %v", q)
		}
		y.call(answer{303, nil}, "POST", authorizePath, owner, decision(ticket, "authorize"))
		y.refused("bad-ticket", "POST", authorizePath, owner, decision(ticket, "authorize"))

		late := y.shown(y.request(), owner)
		y.pass(ticketLife)
		y.refused("bad-ticket", "POST", authorizePath, owner, decision(late, "authorize"))
		y.refused("bad-ticket", "POST", authorizePath, owner, decision(late, "cancel"))
	})
}

func TestCodes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		var other ClientRegistration
		y.call(answer{201, &other}, "POST", registerPath, "", `{"redirect_uris": ["http://127.0.0.1/cb"]}`)
		code := y.code()
		for _, c := range []struct{ key, value, want string }{
			{"grant_type", "", "unsupported_grant_type"},
			{"grant_type", "refresh_token", "unsupported_grant_type"},
			{"client_id", "", "invalid_client"},
			{"client_id", "v1.AAAA", "invalid_client"},
			{"client_id", other.ClientID, "invalid_grant"},
			{"code", "", "invalid_grant"},
			{"code", code + "x", "invalid_grant"},
			{"redirect_uri", "http://127.0.0.1:7778/cb", "invalid_grant"},
			{"code_verifier", "", "invalid_request"},
			{"code_verifier", challenge, "invalid_grant"},
			{"code_verifier", verifier + "!", "invalid_request"},
			{"resource", "https://elsewhere.example", "invalid_target"},
		} {
			y.refused(c.want, "POST", tokenPath, "", y.exchange(code, c.key, c.value))
		}
		if live := y.live(); len(live) != 0 {
			t.Fatalf("a refusal gave tokens: %v", live)
		}
		// None of these requests has used the code up.
		y.pass(codeLife - time.Second)
		var g Grant
		y.call(answer{200, &g}, "POST", tokenPath, "", y.exchange(code, "client_secret", "is ignored"))
		if g.TokenType != "Bearer" || g.Scope != "read:tasks write:tasks" || g.ExpiresIn != 30*24*60*60 {
			t.Errorf("the grant is %+v", g)
		}
		if live := y.live(); !slices.Equal(live, []string{`["read:tasks","write:tasks"]`}) {
			t.Errorf("tokens: %v", live)
		}
		// A used code fails again long after it has expired, even for its own client.
		y.pass(24 * time.Hour)
		y.refused("invalid_grant", "POST", tokenPath, "", y.exchange(code, "client_id", other.ClientID))
		if live := y.live(); len(live) != 0 || y.dropped != 1 {
			t.Errorf("the code was used twice, and %v live; %d caches were told", live, y.dropped)
		}

		late := y.code()
		y.pass(codeLife)
		y.refused("invalid_grant", "POST", tokenPath, "", y.exchange(late))

		var changes []string
		y.read(func(tx *db.Tx) error {
			rows, err := audited.All(tx, "acme")
			for _, r := range rows {
				changes = append(changes, r.Actor+" "+r.Kind)
			}
			return err
		})
		want := []string{"user:ada client.authorized", "user:ada token.minted", "user:ada token.revoked", "user:ada client.authorized"}
		if !slices.Equal(changes, want) {
			t.Errorf("audited: %v, want %v", changes, want)
		}
		// Rows that have expired are deleted.
		y.pass(tokenLife + time.Hour)
		y.code()
		y.read(func(tx *db.Tx) error {
			n, err := countCodes.One(tx)
			if n != 1 {
				t.Errorf("%d codes are kept, want 1", n)
			}
			return err
		})
	})
}

// TestOneCodeOneToken holds that of simultaneous requests with one code only one gets
// a token, and that this token is then revoked, because the code came twice.
func TestOneCodeOneToken(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		body := y.exchange(y.code())
		var given, refused int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				rec := y.call(answer{}, "POST", tokenPath, "", body)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case rec.Code == 200:
					given++
				case rec.Code == 400 && strings.Contains(rec.Body.String(), `"invalid_grant"`):
					refused++
				default:
					t.Errorf("%d %s", rec.Code, rec.Body)
				}
			})
		}
		all.Wait()
		if given != 1 || refused != 11 || len(y.live()) != 0 {
			t.Errorf("%d given, %d refused, %d live", given, refused, len(y.live()))
		}
	})
}

// TestAccountIsPicked holds that a person may let a program act in another of their
// accounts, with the rights that they have there, and that their session stays in its
// account.
func TestAccountIsPicked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		page := y.call(answer{200, nil}, "GET", y.request(), owner, "").Body.String()
		for _, want := range []string{
			`<option value="acme" selected>`,
			`<option value="rival">`,
			`name="state" value="s&amp;1"`,
			`name="code_challenge" value="` + challenge + `"`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("the screen lacks %s:\n%s", want, page)
			}
		}
		ticket := y.shown(y.request("account", "rival"), owner)
		q := y.heard(y.call(answer{303, nil}, "POST", authorizePath, owner, decision(ticket, "authorize")))
		var g Grant
		y.call(answer{200, &g}, "POST", tokenPath, "", y.exchange(q.Get("code")))
		if g.Scope != "read:tasks" {
			t.Errorf("in rival it gets %q", g.Scope)
		}
		var in []string
		y.read(func(tx *db.Tx) (err error) {
			in, err = tokenAccounts.All(tx)
			return err
		})
		if len(in) != 1 || in[0] != "rival" {
			t.Errorf("the token acts in %v", in)
		}
		// An account of which they are no member is not chosen.
		page = y.call(answer{200, nil}, "GET", y.request("account", "nobodys"), owner, "").Body.String()
		if !strings.Contains(page, `<option value="acme" selected>`) || !strings.Contains(page, "in the account <strong>acme</strong>") {
			t.Errorf("another's account:\n%s", page)
		}
		// The decision applies to the account that was shown.
		y.refused("bad-ticket", "POST", authorizePath, "s1 rival read:tasks",
			decision(y.shown(y.request("account", "rival"), owner), "authorize"))
	})
}
