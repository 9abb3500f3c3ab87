package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// caller calls from an address of its own of this machine.
type caller struct {
	t    *testing.T
	y    *yard
	from string
	http http.Client
}

func (y *yard) from(address string) *caller {
	y.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: d.DialContext}
	y.t.Cleanup(transport.CloseIdleConnections)
	return &caller{y.t, y, address, http.Client{Transport: transport}}
}

// get makes a request, whose answer stays open if it is a stream.
func (c *caller) get(path, token string) *http.Response {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	c.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+c.y.listens+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatalf("%s from %s: %v", path, c.from, err)
	}
	c.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// open tells whether a stream was opened. A refusal has to be what refusals are.
func (c *caller) open(token string) bool {
	c.t.Helper()
	resp := c.get("/v1/streams?topics=tasks", token)
	if resp.StatusCode == 200 {
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			c.t.Fatal(err)
		}
		return true
	}
	tooManyOpen(c.t, resp)
	return false
}

// tooManyOpen checks what is answered beyond a limit of what is held open.
func tooManyOpen(t *testing.T, resp *http.Response) {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Type, Detail string
		RetryAfter   int `json:"retry_after"`
	}
	if err := json.Unmarshal(body, &p); err != nil || resp.StatusCode != 503 || !strings.HasSuffix(p.Type, "/too-many-open") ||
		fmt.Sprint(p.RetryAfter) != resp.Header.Get("Retry-After") || p.RetryAfter < 1 || !resp.Close || p.Detail == "" {
		t.Errorf("beyond the limit: %d, closed %v, %v, %s", resp.StatusCode, resp.Close, resp.Header, body)
	}
}

// TestOneAccountLeavesRoom: an account that opens all that it can, with as many credentials
// and from as many addresses as it likes, is held to its part. Others open theirs.
func TestOneAccountLeavesRoom(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--most-connections", "160", "--most-streams", "5", "--most-streams-account", "12")
	theirs := y.tenant("bob")
	var tokens []string
	for i := range 6 {
		user := y.person(fmt.Sprint("bob-", i), theirs, policy.Owner)
		tokens = append(tokens, y.mint(theirs, &user, policy.Owner.Ceiling(), nil))
	}
	opened := map[string]int{}
	all := 0
	for i := range 60 {
		token := tokens[i%len(tokens)]
		if y.from(fmt.Sprintf("127.0.%d.%d", 1+i/16, 1+i%16)).open(token) {
			opened[token]++
			all++
		}
	}
	if all != 12 {
		t.Errorf("an account has %d streams open, and may have 12", all)
	}
	mine := 0
	for range 8 {
		if y.from("127.0.9.1").open(y.owner) {
			mine++
		}
	}
	if mine != 5 {
		t.Errorf("a credential of another account has %d streams open, and may have 5", mine)
	}
	for _, path := range []string{"/healthz", "/v1/tasks"} {
		if got := y.from("127.0.9.2").get(path, y.owner).StatusCode; got != 200 {
			t.Errorf("%s: %d", path, got)
		}
	}
}

// TestPlaceOfAStreamIsFree: a stream that ends makes room for another one.
func TestPlaceOfAStreamIsFree(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--most-streams", "1")
	first := y.from("127.0.1.1").get("/v1/streams?topics=tasks", y.owner)
	if first.StatusCode != 200 || y.from("127.0.1.2").open(y.owner) {
		t.Fatalf("a second stream beside the first, which answers %d", first.StatusCode)
	}
	first.Body.Close()
	y.rig().Eventually("room for another stream", func() bool {
		return y.from("127.0.1.3").get("/v1/streams?topics=tasks", y.owner).StatusCode == 200
	})
}

// TestWaitsAreCountedAsStreams: whichever call may wait for news is held open as a stream is.
func TestWaitsAreCountedAsStreams(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--most-streams", "1")
	if !y.from("127.0.1.1").open(y.owner) {
		t.Fatal("no stream")
	}
	waiting := 0
	for _, o := range y.parts.ops("test") {
		in := o.Input()["wait_ms"]
		if in == "" {
			continue
		}
		waiting++
		path := regexp.MustCompile(`{\w+}`).ReplaceAllString(o.Path, "0199d3a4-5b6c-7d8e-9f01-23456789abcd")
		if in == "query" {
			path += "?wait_ms=25000"
		}
		req, err := http.NewRequest(o.Method, "http://"+y.listens+path, strings.NewReader(`{"message": "Hello", "wait_ms": 25000}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+y.owner)
		req.Header.Set("Content-Type", "application/json")
		resp, err := y.from("127.0.1.2").http.Do(req)
		if err != nil {
			t.Fatal(o.ID, err)
		}
		tooManyOpen(t, resp)
		resp.Body.Close()
	}
	if waiting < 2 {
		t.Errorf("%d capabilities wait", waiting)
	}
}

// TestConnectionsLeaveRoom: idle connections, those that send next to nothing and those that
// are busy leave room for others, for health, for boxes and for signed deliveries.
func TestConnectionsLeaveRoom(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--most-connections", "96", "--most-connections-address", "96", "--most-streams", "0",
		"--most-streams-account", "0", "--header-timeout", "10m", "--body-timeout", "10m")
	// More connections than there may be that send nothing, and that send half of a head.
	var conns []net.Conn
	for i := range 300 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+i%8))}}
		c, err := d.DialContext(t.Context(), "tcp", y.listens)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if i%2 == 0 {
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHo"); err != nil {
				continue // it was closed for others
			}
		}
		conns = append(conns, c)
	}
	if got := y.from("127.0.9.1").get("/v1/tasks", y.owner).StatusCode; got != 200 {
		t.Errorf("beside %d idle connections: %d", len(conns), got)
	}
	// As many busy ones as there may be: bodies that do not come.
	busy := 0
	for i := range 96 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 3, byte(1+i%8))}}
		c, err := d.DialContext(t.Context(), "tcp", y.listens)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "POST /v1/tasks HTTP/1.1\r\nHost: y\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n", y.owner)
		late, _ := patience.Context(t).Deadline()
		if err := c.SetReadDeadline(late); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == 100 {
			busy++
			continue
		}
		tooManyOpen(t, resp)
	}
	if busy == 0 || busy > 24 {
		t.Errorf("an account has %d calls open of 96 connections, and may have a quarter", busy)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200} {
		if got := y.from("127.0.9.2").get(path, "").StatusCode; got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
}

// TestStrangersLeaveRoom: senders that nobody knows, who keep bodies open at every public door
// from many addresses, leave room for those who present a credential, for health and for what
// is signed.
func TestStrangersLeaveRoom(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--most-connections", "160", "--body-timeout", "10m")
	var connected struct{ ID, Secret string }
	decode(t, y.send("POST", "/v1/integrations", y.owner, `{"kind":"generic","name":"alerts"}`).want(201), &connected)
	var doors []string
	for _, o := range y.parts.ops("test") {
		if o.Rule.IsPublic() && o.Method == "POST" && o.Holder == nil && !strings.Contains(o.Path, "{") {
			doors = append(doors, o.Path)
		}
	}
	doors = append(doors, "/v1/inbound/"+connected.ID)
	if len(doors) < 8 {
		t.Fatalf("only %d public doors: %q", len(doors), doors)
	}
	open := 0
	for i := range 200 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 4, byte(1+i%50))}}
		c, err := d.DialContext(t.Context(), "tcp", y.listens)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		late, _ := patience.Context(t).Deadline()
		if err := c.SetReadDeadline(late); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: y\r\nConnection: close\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n",
			doors[i%len(doors)])
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		switch {
		case err != nil:
			t.Fatalf("%s, with %d open: %v", doors[i%len(doors)], open, err)
		case resp.StatusCode == 100:
			open++
		case resp.StatusCode == 503:
			tooManyOpen(t, resp)
		}
	}
	if open < 20 || open > 80 {
		t.Errorf("strangers keep %d bodies open of 160 connections", open)
	}
	c := y.from("127.0.9.1")
	for path, token := range map[string]string{"/v1/tasks": y.owner, "/healthz": "", "/readyz": ""} {
		if resp := c.get(path, token); resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}
