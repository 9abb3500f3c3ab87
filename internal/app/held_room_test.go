package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// begin sends the head of a request whose body does not come, and answers what the server says
// to it: 100 when it reads the body.
func (y *yard) begin(from, path string, header ...string) *http.Response {
	y.t.Helper()
	_, resp := y.beginLong(from, path, 1000, header...)
	return resp
}

// beginLong is begin for a body of a length, which may be sent on the connection.
func (y *yard) beginLong(from, path string, length int, header ...string) (net.Conn, *http.Response) {
	y.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(y.t.Context(), "tcp", y.listens)
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { c.Close() })
	late, _ := patience.Context(y.t).Deadline()
	if err := c.SetReadDeadline(late); err != nil {
		y.t.Fatal(err)
	}
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: y\r\nExpect: 100-continue\r\nContent-Length: %d\r\n%s\r\n\r\n",
		path, length, strings.Join(header, "\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		y.t.Fatalf("%s: %v", path, err)
	}
	return c, resp
}

// TestPushesAreCounted: pushes that do not end count for their credential and their account,
// together with calls, and are refused beyond, before their body is read.
func TestPushesAreCounted(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--most-connections", "64", "--body-timeout", "10m") // 8 of a credential, 16 of an account
	theirs := y.tenant("bob")
	var tokens []string
	for i := range 3 {
		user := y.person(fmt.Sprint("bob-", i), theirs, policy.Owner)
		tokens = append(tokens, y.mint(theirs, &user, policy.Owner.Ceiling(), nil))
	}
	n := 0
	push := func(token string) *http.Response {
		n++
		r, err := http.NewRequest("POST", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("x", token)
		return y.begin(fmt.Sprintf("127.0.5.%d", n), "/git/bob/proj.git/git-receive-pack", "Authorization: "+r.Header.Get("Authorization"),
			"Content-Type: application/x-git-receive-pack-request")
	}
	refused := func(resp *http.Response) {
		t.Helper()
		if resp.StatusCode != 503 || !resp.Close || resp.Header.Get("Retry-After") != "5" {
			t.Errorf("a push too many: %d, closed %v, %v", resp.StatusCode, resp.Close, resp.Header)
		}
	}
	for _, token := range tokens[:2] {
		for range 8 {
			if got := push(token).StatusCode; got != 100 {
				t.Fatalf("push %d: %d", n, got)
			}
		}
		refused(push(token))
	}
	refused(push(tokens[2]))
	tooManyOpen(t, y.from("127.0.9.1").get("/v1/tasks", tokens[2]))
	tooManyOpen(t, y.begin("127.0.9.1", "/v1/mcp", "Authorization: Bearer "+tokens[2], "Content-Type: application/json"))
	if got := y.from("127.0.9.1").get("/v1/tasks", y.owner).StatusCode; got != 200 {
		t.Errorf("another account: %d", got)
	}
}

// TestJunkIsNoCredential: those who show what is no credential have the strangers' room, at
// every door, and neither that of boxes nor that of those who are known.
func TestJunkIsNoCredential(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--most-connections", "96", "--body-timeout", "10m")
	cookie := "Cookie: " + signin.Cookie(false) + "=junk"
	open := 0
	for i := range 120 {
		path := []string{"/unsubscribe", "/v1/runners/enroll", "/gateway/v1/chat/completions", "/git/acme/web.git/git-upload-pack"}[i%4]
		header := []string{"Authorization: Bearer junk", cookie, "Authorization: Basic eDpqdW5r"}[i%3]
		resp := y.begin(fmt.Sprintf("127.0.4.%d", 1+i%50), path, header, "Content-Type: application/json")
		if resp.StatusCode == 100 {
			open++
		}
	}
	if open < 10 || open > 45 {
		t.Errorf("%d bodies are open of 96 connections", open)
	}
	c := y.from("127.0.9.1")
	for path, want := range map[string]int{
		"/v1/tasks": 200, "/healthz": 200, "/gateway/v1/models": 401, "/git/acme/web.git/info/refs?service=git-upload-pack": 401,
	} {
		token := y.owner
		if want == 401 {
			token = "dev_none"
		}
		if got := c.get(path, token).StatusCode; got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
}

// TestSignInBesideTricklers: strangers who keep other doors busy keep nobody from signing in,
// and no git from asking for the first time.
func TestSignInBesideTricklers(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--most-connections", "96", "--body-timeout", "10m")
	last := 0
	for i := range 60 {
		last = y.begin(fmt.Sprintf("127.0.4.%d", 1+i), "/unsubscribe", "Content-Type: application/x-www-form-urlencoded").StatusCode
	}
	if last != 503 {
		t.Fatalf("there is room for strangers: %d", last)
	}
	c := y.from("127.0.9.1")
	for path, want := range map[string]int{"/login": 200, "/git/acme/web.git/info/refs?service=git-upload-pack": 401, "/unsubscribe": 503} {
		if got := c.get(path, "").StatusCode; got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
	resp, err := c.http.Post("http://"+y.listens+"/auth/password", "application/x-www-form-urlencoded",
		strings.NewReader("login=ada&password=no"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode == 503 {
		t.Errorf("sign-in: %s", body)
	}
}

// TestRefusedRequestIsRecorded: the record of a request that finds no room says why.
func TestRefusedRequestIsRecorded(t *testing.T) {
	t.Parallel()
	var record observe.Request
	r := httptest.NewRequestWithContext(observe.With(t.Context(), &record), "GET", "/v1/tasks", nil)
	refusal := op.TooMuchOpen("full")
	(&App{cfg: &config.Config{}}).refuseRequest(httptest.NewRecorder(), r, refusal)
	if record.Slug != op.SlugOpen || !refusal.Deliberate() {
		t.Errorf("recorded as %q, as a failure: %t", record.Slug, !refusal.Deliberate())
	}
}
