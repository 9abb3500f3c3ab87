package app

import (
	"html"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/db"
)

// Sign-in is for our own pages and for programs, whatever a browser leaves out.
func TestSignInFromElsewhere(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--rate-limits", "off")
	cookie := y.browser()
	address, err := y.SignInURL(t.Context(), y.user, y.acct, "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	link := strings.TrimPrefix(address, y.URL())
	for path, body := range map[string]string{
		"/auth/password": `{"login": "ada", "password": "` + password + `"}`, "/auth/email": `{"email": "ada@example.com"}`,
		"/auth/email/verify": `{"email": "ada@example.com", "code": "123456"}`, "/auth/reauth": `{"password": "` + password + `"}`,
		"/auth/device": `{}`, "/auth/device/token": `{"device_code": "x"}`, "/auth/logout": ``,
		link: "",
	} {
		for name, header := range map[string][]string{
			"another site":           {"Origin", "http://evil.example"},
			"another port":           {"Origin", "http://127.0.0.1:1"},
			"an opaque origin":       {"Origin", "null"},
			"a word that is no site": {"Origin", "yard"},
			"a form elsewhere":       {"Sec-Fetch-Site", "cross-site"},
			"another site's frame":   {"Sec-Fetch-Site", "same-origin", "Origin", "http://evil.example"},
		} {
			a := y.send("POST", path, "", body, append(header, "Cookie", cookie)...)
			if a.StatusCode != 403 || !strings.Contains(string(a.body), "cross-origin") {
				t.Errorf("%s from %s: %d %s", path, name, a.StatusCode, a.body)
			}
		}
	}
	y.send("POST", link, "", "", "Origin", y.URL()).want(303) // it was not used up
	y.send("POST", "/auth/password", "", `{"login": "ada", "password": "`+password+`"}`, "Origin", y.URL()).want(200)
	y.send("POST", "/auth/password", "", `{"login": "ada", "password": "`+password+`"}`, "Origin", "null", "Sec-Fetch-Site",
		"same-origin").want(200)
}

// A name of somebody's own that leads to this server makes no page of theirs ours,
// whatever proxy it comes through.
func TestSignInUnderAForeignName(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--trusted-proxies", "127.0.0.0/8", "--rate-limits", "off")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(y.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"login": "ada", "password": "` + password + `"}`
	sign := func(scheme, host string, header ...string) answer {
		return y.send("POST", "/auth/password", "", body, append(header, "Host", host, "Origin", scheme+"://"+host)...)
	}
	cookie := y.browser()
	for _, host := range []string{"evil.example", "evil.example:" + port, "127.0.0.1.evil.example:" + port, "localhost.evil.example",
		"192.0.2.7:" + port} {
		for name, a := range map[string]answer{
			"Host":             sign("http", host),
			"Host, over TLS":   sign("https", host),
			"X-Forwarded-Host": y.send("POST", "/auth/password", "", body, "Origin", "http://"+host, "X-Forwarded-Host", host),
			"a cookie":         y.send("POST", "/v1/tokens", "", "{}", "Host", host, "Origin", "http://"+host, "Cookie", cookie),
		} {
			if a.StatusCode != 403 || !strings.Contains(string(a.body), "cross-origin") {
				t.Errorf("%s of %s: %d %s", name, host, a.StatusCode, a.body)
			}
		}
	}
	for _, host := range []string{"localhost:" + port, "127.0.0.1:" + port, "127.0.0.1:1", "localhost:9000", "[::1]:9000"} {
		sign("http", host).want(200)
		y.send("POST", "/v1/tokens", "", "{}", "Host", host, "Origin", "http://"+host, "Cookie", cookie).want(201)
	}
}

// Tools are called by programs, and by the pages that the operator knows.
func TestToolsFromElsewhere(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--mcp-origins", "https://tools.example.com, https://more.example.com:8443")
	ping := `{"jsonrpc": "2.0", "id": 1, "method": "ping"}`
	for _, origin := range []string{"http://evil.example", "null", "https://tools.example.com.evil.example", "http://tools.example.com",
		"https://127.0.0.1.evil.example", "file://", "x",
		"http://localhost:evil", "http://127.0.0.1.evil.example", "http://u@localhost", "http://u:p@127.0.0.1:3000", "http://localhost/",
		"http://localhost/x", "http://localhost?x", "http://localhost#x",
		"http://localhost:", "http://localhost:0", "http://localhost:65536", "http://localhost:080", "http://127.1",
		"http://[localhost]:80", "http://[::1%25lo]:80", "ws://localhost", "http:localhost", "//localhost", "http://local%68ost",
		"http://localhost.:80",
		y.URL() + "/", "http://u@" + strings.TrimPrefix(y.URL(), "http://")} {
		for credential, bearer := range map[string]string{"a token": y.owner, "none": "", "a wrong one": "dev_pat_x"} {
			if p := y.send("POST", mcp.Path, bearer, ping, "Origin", origin).problem(403, "cross-origin"); p == nil {
				t.Errorf("from %s with %s", origin, credential)
			}
		}
		y.send("GET", mcp.Path, y.owner, "", "Origin", origin).problem(403, "cross-origin")
		a := y.send("OPTIONS", mcp.Path, "", "", "Origin", origin, "Access-Control-Request-Method", "POST")
		if a.StatusCode != 403 || a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("a script of %s may ask: %d %v", origin, a.StatusCode, a.Header)
		}
	}
	for _, origin := range []string{"", y.URL(), "http://localhost:6274", "http://127.0.0.1:3000", "http://[::1]:3000", "http://localhost",
		"https://localhost:65535", "http://127.8.9.10:1", "https://tools.example.com", "https://more.example.com:8443"} {
		var header []string
		if origin != "" {
			header = []string{"Origin", origin}
			a := y.send("OPTIONS", mcp.Path, "", "", "Origin", origin, "Access-Control-Request-Method", "POST").want(200)
			if got := a.Header.Get("Access-Control-Allow-Origin"); got != origin {
				t.Errorf("a script of %s may read what is for %q", origin, got)
			}
		}
		a := y.send("POST", mcp.Path, y.owner, ping, header...).want(200)
		if got := a.Header.Get("Access-Control-Allow-Origin"); got != origin {
			t.Errorf("the answer to %q is for %q", origin, got)
		}
	}
}

// What is a caller's is kept by nothing on the way.
func TestAnswersAreNotKept(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	cookie := y.browser()
	y.push("acme/web", map[string]string{"README": "hello\n"})
	kept := func(a answer) string { return a.Header.Get("Cache-Control") }
	for name, a := range map[string]answer{
		"a person":  y.send("GET", "/v1/me", "", "", "Cookie", cookie).want(200),
		"a token's": y.send("GET", "/v1/me", y.owner, "").want(200),
		"made":      y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`).want(202),
		"kept for a key": y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`, "Idempotency-Key",
			"k").want(202),
		"given again": y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`, "Idempotency-Key",
			"k").want(202),
		"missing":         y.send("GET", "/v1/tasks/x", y.owner, "").want(404),
		"no such path":    y.send("GET", "/v1/x", y.owner, "").want(404),
		"no credential":   y.send("GET", "/v1/me", "", "").want(401),
		"a wrong method":  y.send("DELETE", "/v1/me", y.owner, "").want(405),
		"a tool":          y.send("POST", mcp.Path, y.owner, `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`).want(200),
		"OAuth":           y.send("POST", "/oauth/token", "", `{}`).want(400),
		"a consent":       y.send("GET", "/device", "", "", "Cookie", cookie).want(200),
		"the gateway":     y.send("GET", "/gateway/v1/models", "x", ""),
		"git":             y.send("GET", "/git/acme/web.git/info/refs?service=git-upload-pack", "", ""),
		"an odd question": y.send("GET", "/v1/me?x=y", y.owner, "").want(400),
	} {
		if got := kept(a); !strings.Contains(got, "no-store") && !strings.Contains(got, "no-cache") {
			t.Errorf("%s may be kept: %q", name, got)
		}
	}
	if got := kept(y.send("GET", "/v1/openapi.json", y.owner, "").want(200)); !strings.HasPrefix(got, "public") {
		t.Errorf("what is for everybody: %q", got)
	}
}

// A client that asks and asks, and reads nothing, is cut off. Answers must be
// read at a pace, as bodies must be sent (rest.TestReadersArePaced).
func TestSlowReadersAreCutOff(t *testing.T) {
	t.Parallel()
	y := hurried(t, func(*yard) {}, "--body-timeout", "300ms")
	cutOff(t, y, "1000 answers unread", map[string]string{
		"a document": "GET /v1/openapi.json HTTP/1.1\r\nHost: yard\r\n\r\n",
		"an answer":  "GET /v1/me HTTP/1.1\r\nHost: yard\r\nAuthorization: Bearer " + y.owner + "\r\n\r\n",
		"a problem":  "GET /v1/nothing HTTP/1.1\r\nHost: yard\r\n\r\n",
		"no body":    "HEAD /v1/openapi.json HTTP/1.1\r\nHost: yard\r\n\r\n",
	}, func(conn net.Conn, head string) error {
		many := strings.Repeat(head, 1000)
		for {
			if _, err := io.WriteString(conn, many); err != nil { // until the server has had enough
				return err
			}
		}
	})
}

// TestConsentIsProvedByItsTicket holds that the answer to a consent screen is judged by its
// ticket: without a word about where it comes from, a good one counts and a bad one is 400,
// and from another site none does.
func TestConsentIsProvedByItsTicket(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	cookie := y.browser()
	var client struct {
		ID string `json:"client_id"`
	}
	decode(t, y.send("POST", "/oauth/register", "", `{"redirect_uris": ["http://127.0.0.1/cb"]}`).want(201), &client)
	page := y.send("GET", "/oauth/authorize?response_type=code&redirect_uri=http%3A%2F%2F127.0.0.1%2Fcb&client_id="+client.ID+
		"&code_challenge_method=S256&code_challenge="+strings.Repeat("a", 43), "", "", "Cookie", cookie).want(200)
	ticket := ""
	for _, field := range hidden.FindAllStringSubmatch(string(page.body), -1) {
		if field[1] == "ticket" {
			ticket = html.UnescapeString(field[2])
		}
	}
	decide := func(ticket string, header ...string) answer {
		return y.send("POST", "/oauth/authorize", "", url.Values{"ticket": {ticket}, "decision": {"authorize"}}.Encode(),
			append(header, "Cookie", cookie, "Content-Type", "application/x-www-form-urlencoded")...)
	}
	decide("bad").problem(400, "bad-ticket")
	decide("bad", "Origin", y.URL()).problem(400, "bad-ticket")
	decide(ticket, "Origin", "http://evil.example").problem(403, "cross-origin")
	decide(ticket, "Sec-Fetch-Site", "cross-site").problem(403, "cross-origin")
	decide(ticket).want(303)
}
