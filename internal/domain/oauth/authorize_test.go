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

// What is wrong with the client itself is told on the page: nobody is sent to
// an address that nobody registered.
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

// What else is wrong is told here as well: registration is open, and who has
// not said yes or no yet is sent to nobody's address.
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

// The way over the sign-in page loses nothing of the request.
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

// The screen never offers what the session does not hold, nor what only an
// operator token may carry.
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

// A ticket is worth something only to the session that was shown it, for a
// while, as long as it holds what was shown, once.
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
		// None of this has cost the code.
		y.pass(codeLife - time.Second)
		var g Grant
		y.call(answer{200, &g}, "POST", tokenPath, "", y.exchange(code, "client_secret", "is ignored"))
		if g.TokenType != "Bearer" || g.Scope != "read:tasks write:tasks" || g.ExpiresIn != 30*24*60*60 {
			t.Errorf("the grant is %+v", g)
		}
		if live := y.live(); !slices.Equal(live, []string{`["read:tasks","write:tasks"]`}) {
			t.Errorf("tokens: %v", live)
		}
		// Once more, long after it has expired, and not even by its client.
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
		// What is of no use any more goes.
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

// Of many who bring one code at once, one gets a token; and as the code was
// brought twice, it ends.
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

// A person may let a program act in another account of theirs than the one
// their session acts in: with the rights they have there, and the session
// stays where it is.
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
		// One that is not theirs is not picked.
		page = y.call(answer{200, nil}, "GET", y.request("account", "nobodys"), owner, "").Body.String()
		if !strings.Contains(page, `<option value="acme" selected>`) || !strings.Contains(page, "in the account <strong>acme</strong>") {
			t.Errorf("another's account:\n%s", page)
		}
		// The decision is about the account that was shown.
		y.refused("bad-ticket", "POST", authorizePath, "s1 rival read:tasks",
			decision(y.shown(y.request("account", "rival"), owner), "authorize"))
	})
}
