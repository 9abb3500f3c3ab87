package held

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/proof/patience"
)

// post begins a request with a body that does not come.
func post(c net.Conn, path string, header ...string) {
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n%s\r\n", path, strings.Join(append(header, ""), "\r\n"))
}

func status(c net.Conn) int {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	return resp.StatusCode
}

const (
	junk    = "Authorization: Bearer junk"
	unasked = "Authorization: Bearer unasked" // nobody says whose it is
	box     = "Authorization: Bearer box"
)

// TestJunkIsAStranger: whose credential is none, or was not looked at when the body is read,
// has the strangers' room and no more.
func TestJunkIsAStranger(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{50, 50}, &Room{Limits: Limits{10, 10}})
	for i := range 5 {
		post(s.dial(fmt.Sprintf("127.0.0.%d", 1+i)), "/", []string{junk, unasked}[i%2])
		patience.Receive(t, "a body that is read", s.holding)
	}
	if got := ask(s.dial("127.0.0.8"), "/", junk); got != 503 {
		t.Errorf("a sixth that shows junk: %d", got)
	}
	c := s.dial("127.0.0.8")
	post(c, "/", unasked)
	if got := status(c); got != 400 {
		t.Errorf("a sixth body of somebody who was not looked at: %d", got)
	}
	for range 5 {
		send(s.dial("127.0.0.9"), "/hold", known)
		patience.Receive(t, "a call", s.holding)
	}
}

// TestUnreadBody: who is refused before the body is read hears so at once, and sends no more.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{10, 10}, &Room{Limits: Limits{10, 10}})
	for _, header := range []string{"X-None: x", junk, unasked} {
		c := s.dial("127.0.0.1")
		fmt.Fprintf(c, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n%s\r\n\r\n", header)
		if got := status(c); got != 200 {
			t.Errorf("%s: %d", header, got)
		}
	}
}

// TestJunkHasStrangersTime: a body under a credential that is none breaks off when strangers
// have had their time.
func TestJunkHasStrangersTime(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{10, 10}, &Room{Limits: Limits{10, 10}, StrangersTime: time.Millisecond})
	for _, header := range []string{"X-None: x", junk, unasked} {
		c := s.dial("127.0.0.1")
		post(c, "/", header)
		patience.Receive(t, "a body that is read", s.holding)
		if got := status(c); got != 400 {
			t.Errorf("%s: %d", header, got)
		}
	}
}

// TestKnownAreCounted: a verified caller is counted once while the request lasts, and refused
// beyond.
func TestKnownAreCounted(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{10, 10}, &Room{Limits: Limits{10, 10}})
	c := s.dial("127.0.0.1")
	send(c, "/hold", known)
	patience.Receive(t, "a call", s.holding)
	if n := s.counted.Load(); n != 1 {
		t.Errorf("%d are counted", n)
	}
	s.hold <- struct{}{}
	if status(c) != 200 {
		t.Fatal("no answer")
	}
	patience.Until(t, "nobody is counted", func() bool { return s.counted.Load() == 0 })
	if resp := ask(s.dial("127.0.0.1"), "/", "Authorization: Bearer many"); resp != 503 {
		t.Errorf("one too many: %d", resp)
	}
}

// TestOwnRoom: when all is full, a box gets in once it was verified, and nobody else does.
func TestOwnRoom(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{50, 50}, &Room{Limits: Limits{10, 10}, Checks: 2, Apart: []Apart{{Name: "box", Own: true, Most: 2}}})
	for i := range 6 { // 10 less 2, less 2
		send(s.dial(fmt.Sprintf("127.0.0.%d", 1+i)), "/hold", known)
		patience.Receive(t, "a call", s.holding)
	}
	for range 3 {
		for _, header := range []string{junk, known, "X-None: x"} {
			if got := ask(s.dial("127.0.0.8"), "/", header); got != 503 {
				t.Errorf("%s, when all is full: %d", header, got)
			}
		}
	}
	for i := range 2 {
		send(s.dial(fmt.Sprintf("127.0.0.%d", 8+i)), "/hold", box)
		patience.Receive(t, "a box", s.holding)
	}
	if got := ask(s.dial("127.0.0.10"), "/", box); got != 503 {
		t.Errorf("a box beyond their room: %d", got)
	}
}

// TestDoorsOfTheirOwn: strangers at other doors do not keep anybody from signing in; there an
// address has a share, and a body few bytes and a short time.
func TestDoorsOfTheirOwn(t *testing.T) {
	t.Parallel()
	door := Apart{
		Name: "sign-in", Most: 4, PerAddress: 1, Time: time.Hour, Body: 10,
		Is: func(r *http.Request) bool { return strings.Contains(r.URL.Path, "sign-in") },
	}
	quick := Apart{
		Name: "quick", Most: 1, Time: time.Millisecond, Is: func(r *http.Request) bool { return strings.Contains(r.URL.Path, "quick") },
	}
	s := serve(t, Limits{50, 50}, &Room{Limits: Limits{15, 10}, Apart: []Apart{door, quick}})
	for i := range 5 { // half of 15 less 5
		post(s.dial(fmt.Sprintf("127.0.0.%d", 1+i)), "/")
		patience.Receive(t, "a body that is read", s.holding)
	}
	if got := ask(s.dial("127.0.0.8"), "/"); got != 503 {
		t.Errorf("a stranger more: %d", got)
	}
	post(s.dial("127.0.0.8"), "/sign-in", junk)
	patience.Receive(t, "a body that is read", s.holding)
	if got := ask(s.dial("127.0.0.8"), "/sign-in"); got != 503 {
		t.Errorf("more of one address: %d", got)
	}
	c := s.dial("127.0.0.9")
	post(c, "/sign-in")
	patience.Receive(t, "a body that is read", s.holding)
	if _, err := io.WriteString(c, strings.Repeat("a", 11)); err != nil {
		t.Fatal(err)
	}
	if got := status(c); got != 400 {
		t.Errorf("a body that is too long: %d", got)
	}
	c = s.dial("127.0.0.9")
	post(c, "/quick")
	patience.Receive(t, "a body that is read", s.holding)
	if got := status(c); got != 400 {
		t.Errorf("a body that does not come: %d", got)
	}
}
