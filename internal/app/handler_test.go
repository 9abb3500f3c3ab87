package app

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

func TestUnmatchedPath(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	for _, path := range []string{"/nothing", "/v1", "/v1/", "/v1/tasks/x/y/z", "/v1//tasks", "/v1/tasks/", "/v1/../v1/tasks", "/git/",
		"/git/acme/calc.git", "/git/acme/calc.git/info/refs/x"} {
		for _, bearer := range []string{"", y.owner} {
			y.send("GET", path, bearer, "").problem(404, "not-found")
		}
	}
}

func TestWrongMethod(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	for path, allow := range map[string]string{"/v1/tasks": "GET, HEAD, POST", "/v1/me": "GET, HEAD", "/v1/tasks/x/cancel": "POST",
		"/auth/password": "POST"} {
		a := y.send("PUT", path, y.owner, "{}")
		a.problem(405, "method-not-allowed")
		if got := a.Header.Get("Allow"); got != allow {
			t.Errorf("%s allows %q, want %q", path, got, allow)
		}
	}
	if a := y.send("HEAD", "/v1/me", y.owner, "").want(200); len(a.body) != 0 || a.ContentLength <= 0 {
		t.Errorf("HEAD answers %d bytes and says %d", len(a.body), a.ContentLength)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	for _, path := range []string{"/", "/v1/me", "/nothing", "/healthz"} {
		if got := y.send("GET", path, "", "", "X-Request-Id", "mine 1").Header.Get("X-Request-Id"); got != "mine 1" {
			t.Errorf("%s does not adopt the request id: %q", path, got)
		}
		long := strings.Repeat("x", 201)
		for _, bad := range []string{"", long, "caf\u00e9"} {
			got := y.send("GET", path, "", "", "X-Request-Id", bad).Header.Get("X-Request-Id")
			if got == "" || got == bad {
				t.Errorf("%s answers the request id %q to %q", path, got, bad)
			}
		}
	}
}

func TestBadCredentials(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	for name, header := range map[string]string{
		"of another kind": "Basic YWRhOnB3", "no token": "Bearer", "garbage": "Bearer dev_pat_x",
		"of nobody": "Bearer " + strings.Repeat("d", 57),
		"changed":   "Bearer " + y.owner[:len(y.owner)-1] + "!",
	} {
		t.Run(name, func(t *testing.T) {
			a := y.send("GET", "/v1/tasks", "", "", "Authorization", header)
			a.problem(401, "unauthenticated")
			if a.Header.Get("WWW-Authenticate") == "" {
				t.Error("a 401 without a challenge")
			}
		})
	}
	past := time.Now().Add(-time.Minute)
	y.send("GET", "/v1/tasks", y.mint(y.acct, &y.user, policy.Owner.Ceiling(), &past), "").problem(401, "unauthenticated")
	y.send("GET", "/", "", "", "Authorization", "Bearer garbage").want(200)
}

func TestRevokedTokenStops(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	var minted struct{ ID, Token string }
	decode(t, y.send("POST", "/v1/tokens", y.owner, "{}").want(201), &minted)
	y.send("GET", "/v1/tasks", minted.Token, "").want(200)
	y.send("DELETE", "/v1/tokens/"+minted.ID, y.owner, "").want(200)
	y.send("GET", "/v1/tasks", minted.Token, "").problem(401, "unauthenticated")
}

// A token never holds more than its minter's role allows now, whatever it was
// minted with.
func TestRoleCeiling(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	bob := y.person("bob", y.acct, policy.Admin)
	pat := y.mint(y.acct, &bob, policy.Admin.Ceiling(), nil)
	create := func() answer { return y.send("POST", "/v1/runners/enrollments", pat, "{}") }
	create().want(201)
	y.in(y.acct, func(tx *db.Tx) error {
		_, err := seed.SetRole.Exec(tx, y.acct, bob, string(policy.Viewer))
		return err
	})
	// Another node would have changed the role: ours may trust what it knows
	// for a moment.
	patience.Until(y.t, "the demoted member's token loses what its role lost", func() bool { return create().StatusCode == 403 })
	p := create().problem(403, "missing-scope")
	if missing, _ := p["missing_scopes"].([]any); len(missing) != 1 || missing[0] != "write:runners" {
		t.Errorf("missing_scopes is %v", p["missing_scopes"])
	}
	y.send("GET", "/v1/tasks", pat, "").want(200)
}

func TestWhoLeftHoldsNothing(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	bob := y.person("bob", y.tenant("rival"), policy.Owner)
	y.send("GET", "/v1/tasks", y.mint(y.acct, &bob, policy.Owner.Ceiling(), nil), "").problem(401, "unauthenticated")
}

// browser signs in with a password and answers the Cookie header.
func (y *yard) browser() string {
	y.t.Helper()
	a := y.send("POST", "/auth/password", "", `{"login": "ada", "password": "`+password+`"}`).want(200)
	set := a.Header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
		if !strings.Contains(set, part) {
			y.t.Errorf("the cookie lacks %s: %s", part, set)
		}
	}
	cookie, _, _ := strings.Cut(set, ";")
	return cookie
}

func TestCookieWrites(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	cookie := y.browser()
	mint := func(header ...string) answer {
		return y.send("POST", "/v1/tokens", "", "{}", append(header, "Cookie", cookie)...)
	}
	for name, header := range map[string][]string{
		"no word of the origin": nil,
		"another site":          {"Origin", "http://evil.example"},
		"another site's form":   {"Sec-Fetch-Site", "cross-site", "Origin", y.URL()},
		"a sibling's":           {"Sec-Fetch-Site", "same-site"},
		"an opaque origin":      {"Origin", "null"},
	} {
		t.Run(name, func(t *testing.T) { mint(header...).problem(403, "cross-origin") })
	}
	mint("Origin", y.URL()).want(201)
	mint("Sec-Fetch-Site", "same-origin").want(201)
	y.send("GET", "/v1/tokens", "", "", "Cookie", cookie).want(200)
	y.send("POST", "/auth/logout", "", "", "Cookie", cookie, "Origin", y.URL()).want(200)
	y.send("GET", "/v1/tokens", "", "", "Cookie", cookie).problem(401, "unauthenticated")
}

func TestChosenAccount(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	second := y.tenant("second")
	foreign := y.tenant("rival")
	y.in(second, func(tx *db.Tx) error {
		return seed.Member{Account: second, User: y.user, Role: string(policy.Viewer)}.Add(tx)
	})
	cookie := y.browser()
	acting := func(account string) answer {
		return y.send("GET", "/v1/me", "", "", "Cookie", cookie, "X-Svc-Account", account)
	}
	for _, chosen := range []string{second, "second"} {
		var me struct{ Account struct{ ID, Role string } }
		decode(t, acting(chosen).want(200), &me)
		if me.Account.ID != second || me.Account.Role != "viewer" {
			t.Errorf("as %s: %+v", chosen, me)
		}
	}
	unknown := acting("nobody").problem(403, "not-a-member")
	for _, chosen := range []string{foreign, "rival"} {
		if p := acting(chosen).problem(403, "not-a-member"); p["detail"] != unknown["detail"] {
			t.Errorf("a foreign account is told from an unknown one: %v", p)
		}
	}
	var me struct{ Account struct{ ID string } }
	decode(t, y.send("GET", "/v1/me", y.owner, "", "X-Svc-Account", "rival").want(200), &me)
	if me.Account.ID != y.acct {
		t.Errorf("a token left its account for %s", me.Account.ID)
	}
}

func TestPasswordSignIn(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	try := func(login, pw string) answer {
		return y.send("POST", "/auth/password", "", `{"login": "`+login+`", "password": "`+pw+`"}`)
	}
	try("ada", password).want(200)
	try("ADA@example.com", password).want(200)
	wrong := try("ada", password+"!").problem(401, "wrong-password")
	y.person("bob", y.acct, policy.Member) // has no password
	for _, login := range []string{"nobody", "bob"} {
		if p := try(login, password).problem(401, "wrong-password"); p["detail"] != wrong["detail"] {
			t.Errorf("%s: a login without a password is told from a wrong one: %v", login, p)
		}
	}
}

// An address that signs in does so once, by the button of its page, into a page of this
// server. Whatever opens it does not use it up.
func TestLinkSignsInOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, flags...)
		bob := y.person("bob", y.acct, policy.Member)
		in := func(user, to string) (path string) {
			t.Helper()
			address, err := y.SignInURL(t.Context(), user, y.acct, to)
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimPrefix(address, y.URL())
		}
		away := "//elsewhere.example"
		for to, want := range map[string]string{"/ui/tasks/7": "/ui/tasks/7", "https:" + away: "/", away: "/"} {
			path := in(y.user, to)
			for _, method := range []string{"GET", "HEAD", "GET"} {
				if a := y.send(method, path, "", "").want(200); a.Header.Get("Set-Cookie") != "" {
					t.Errorf("%s sets a cookie", method)
				} else if page := string(a.body); method == "GET" && (!strings.Contains(page, "Sign in as ada") ||
					!strings.Contains(page, `<form method="post" action="`+path+`"><button`)) {
					t.Errorf("its page is %s", page)
				}
			}
			a := y.send("POST", path, "", "").want(303)
			if got := a.Header.Get("Location"); got != want {
				t.Errorf("%s leads to %s, want %s", to, got, want)
			}
			cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
			y.send("GET", "/v1/me", "", "", "Cookie", cookie).want(200)
			for _, method := range []string{"GET", "POST"} {
				y.send(method, path, "", "").problem(410, "gone")
				page := y.send(method, path, "", "", "Accept", "text/html").want(410)
				if !strings.Contains(string(page.body), `href="/login?`) {
					t.Errorf("%s of a used address says %s", method, page.body)
				}
			}

			// Who is signed in as that person needs no button, and does not use it up.
			again := in(y.user, to)
			if got := y.send("GET", again, "", "", "Cookie", cookie).want(303).Header.Get("Location"); got != want {
				t.Errorf("%s leads ada to %s, want %s", to, got, want)
			}
			y.send("GET", again, "", "").want(200)
			other := y.send("GET", in(bob, to), "", "", "Cookie", cookie).want(200)
			if !strings.Contains(string(other.body), "Sign in as bob") {
				t.Errorf("the page of bob's address shows ada %s", other.body)
			}
		}
		y.send("GET", "/auth/link/"+id.Secret(id.SignIn), "", "").problem(410, "gone")
		y.send("POST", "/auth/link/"+id.Secret(id.SignIn), "", "").problem(410, "gone")
	})
}

// Without a dashboard the start page says who is signed in, and no address of the
// dashboard is there.
func TestNoDashboard(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--ui", "off")
	cookie, _, _ := strings.Cut(y.send("POST", "/auth/password", "", `{"login": "ada", "password": "`+password+`"}`).want(200).
		Header.Get("Set-Cookie"), ";")
	page := y.send("GET", "/", "", "", "Cookie", cookie, "Accept", "text/html").want(200)
	if !strings.Contains(string(page.body), "Welcome, ada") {
		t.Errorf("the start page is %s", page.body)
	}
	for _, path := range []string{"/ui/", "/ui/tasks", "/ui/a/LICENSES.txt"} {
		y.send("GET", path, "", "").problem(404, "not-found")
	}
	// The pages that are left have their look, and lead to no dashboard.
	for _, path := range []string{"/", "/login", "/nonsense", "/docs"} {
		page := string(y.send("GET", path, "", "", "Accept", "text/html").body)
		sheet := regexp.MustCompile(`rel="stylesheet" href="([^"]+)"`).FindStringSubmatch(page)
		if sheet == nil || strings.Contains(page, `href="/ui/"`) {
			t.Fatalf("%s: %s", path, page)
		}
		if css := y.send("GET", sheet[1], "", "").want(200); !strings.Contains(string(css.body), "--good") {
			t.Errorf("%s is %s", sheet[1], css.body)
		}
	}
}

func TestSetupDoor(t *testing.T) {
	t.Parallel()
	y := boot(t, db.SQLite)
	body := `{"login": "ada", "email": "ada@example.com", "password": "` + password + `", "account": "acme"}`
	run := func(token string) answer { return y.send("POST", "/setup/"+token, "", body) }
	run(y.setup+"x").problem(404, "not-found")
	y.send("GET", "/setup/"+y.setup, "", "").want(200)
	y.send("POST", "/setup/"+y.setup, "", `{"login": "Ada!"}`).problem(400, "invalid")
	if url, err := y.SetupURL(t.Context()); err != nil || url != y.URL()+"/setup/"+y.setup {
		t.Errorf("SetupURL: %q, %v", url, err)
	}
	cookie, _, _ := strings.Cut(run(y.setup).want(201).Header.Get("Set-Cookie"), ";")
	y.send("GET", "/v1/me", "", "", "Cookie", cookie).want(200)
	run(y.setup).problem(404, "not-found")
	y.send("GET", "/setup/"+y.setup, "", "").problem(404, "not-found")
	if url, err := y.SetupURL(t.Context()); err != nil || url != "" {
		t.Errorf("SetupURL after setup: %q, %v", url, err)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.send("POST", "/v1/tasks", y.owner, "{").problem(400, "invalid")
	y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web"}`, "Content-Type", "text/plain").problem(415, "unsupported-media-type")
	y.send("POST", "/v1/tasks", y.owner, `{"problem": "`+strings.Repeat("x", 1<<20)+`"}`).problem(413, "too-large")
	p := y.send("POST", "/v1/tasks", y.owner, `{"title": "", "surprise": 1}`).problem(400, "invalid")
	errs, _ := p["errors"].(map[string]any)
	for _, field := range []string{"repo", "title", "problem", "surprise"} {
		if errs[field] == nil {
			t.Errorf("errors say nothing of %s: %v", field, errs)
		}
	}
	p = y.send("GET", "/v1/tasks?limit=5", y.owner, "").problem(400, "invalid")
	if d, _ := p["detail"].(string); !strings.Contains(d, "per_page") {
		t.Errorf("the refusal of limit does not name per_page: %v", p)
	}
	p = y.send("GET", "/v1/tasks?page=2", y.owner, "").problem(400, "invalid")
	if d, _ := p["detail"].(string); !strings.Contains(d, "next_cursor") {
		t.Errorf("the refusal of page does not name next_cursor: %v", p)
	}
	for _, path := range []string{"/v1/me?x=1", "/v1/org/members?per_page=5", "/v1/queue/status?x=1",
		"/v1/prs/pending-approvals?cursor=x"} {
		y.send("GET", path, y.owner, "").problem(400, "invalid")
	}
	for _, q := range []string{"per_page=0", "per_page=201", "per_page=x", "cursor=x", "sort=age", "filter=status:odd", "surprise=1"} {
		y.send("GET", "/v1/tasks?"+q, y.owner, "").problem(400, "invalid")
	}
}

// Streams and long polls are ended when the server stops, not waited for.
func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.push("acme/web", map[string]string{"README": "hello\n"})
	rows := y.seed(y.acct, "acme")
	req, err := http.NewRequest("GET", y.URL()+"/v1/fleet/runs/"+rows["runId"]+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+y.owner)
	resp, err := rig.Plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	y.stop() // who is still served after a while is cut off
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Errorf("the stream was cut, not ended: %v", err)
	}
}

var (
	setTier  = db.S(`UPDATE accounts SET tier = $2 WHERE id = $1`)
	setSeats = db.S(`UPDATE accounts SET seats = $2 WHERE id = $1`)
)

// What a plan does not cover is refused by name.
func TestPlanLimits(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--queue-cap", "1")
	y.push("acme/web", map[string]string{"README": "hello\n"})
	file := func() answer {
		return y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`)
	}
	file().want(202)
	a := file()
	p := a.problem(429, "queue-full")
	after, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || after < 1 || p["retry_after"] != float64(after) {
		t.Errorf("Retry-After is %q, retry_after %v", a.Header.Get("Retry-After"), p["retry_after"])
	}
	y.in(y.acct, func(tx *db.Tx) error {
		_, err := setSeats.Exec(tx, y.acct, 0)
		return err
	})
	file().problem(403, "no-capacity")
	y.in(y.acct, func(tx *db.Tx) error {
		_, err := setTier.Exec(tx, y.acct, "free")
		return err
	})
	y.send("PATCH", "/v1/repos/acme/web", y.owner, `{"enabled": false}`).want(200)
	p = y.send("PATCH", "/v1/repos/acme/web", y.owner, `{"enabled": true}`).problem(402, "payment-required")
	if d, _ := p["detail"].(string); !strings.Contains(d, "account.oss_verification_apply") || !strings.Contains(d, "account.set_tier") {
		t.Errorf("the refusal names no way out: %s", d)
	}
}

// The type of every problem is an address that answers.
func TestProblemPages(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	slugs := map[string]bool{"wrong-password": true}
	for _, slug := range common() {
		slugs[slug] = true
	}
	for _, o := range Ops() {
		for _, r := range o.Refuses {
			slugs[r.Slug] = true
		}
	}
	for slug := range slugs {
		a := y.send("GET", "/problems/"+slug, "", "")
		if a.StatusCode != 200 || !strings.Contains(string(a.body), slug) {
			t.Errorf("the problem type %s has no page", slug)
		}
	}
}
