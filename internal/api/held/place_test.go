package held

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// drip is a body of which each of so many bytes takes 25 seconds.
type drip struct{ left int }

// Read implements io.Reader.
func (d *drip) Read(b []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(25 * time.Second)
	d.left--
	b[0] = 'a'
	return 1, nil
}

// answer is an answer that counts how often the waiting for a body is ended.
type answer struct {
	*httptest.ResponseRecorder
	cuts atomic.Int64
}

// SetReadDeadline is what http.ResponseController calls.
func (a *answer) SetReadDeadline(time.Time) error {
	a.cuts.Add(1)
	return nil
}

// alone carries out one request without a server, and tells how often its body was cut off.
func alone(room *Room, r *http.Request, serve http.HandlerFunc) (cuts int64) {
	room.Limits = Limits{10, 10}
	room.Address = func(*http.Request) string { return "192.0.2.1" }
	room.Shows = func(*http.Request) bool { return false }
	a := &answer{ResponseRecorder: httptest.NewRecorder()}
	room.Handler(serve).ServeHTTP(a, r)
	return a.cuts.Load()
}

// TestStrangersHaveTime: the body of a stranger that comes byte by byte breaks off when its
// time is over, and that of somebody whose credential was verified does not.
func TestStrangersHaveTime(t *testing.T) {
	t.Parallel()
	for verified, want := range map[bool]error{false: errSlow, true: nil} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			r := httptest.NewRequest("POST", "/", &drip{left: 4})
			alone(&Room{StrangersTime: time.Minute}, r, func(_ http.ResponseWriter, r *http.Request) {
				if verified {
					if err := Known(r.Context(), "", nil); err != nil {
						t.Error(err)
					}
				}
				got, err := io.ReadAll(r.Body)
				if !errors.Is(err, want) || (len(got) == 4) != verified {
					t.Errorf("verified %v: %d bytes after %s, %v", verified, len(got), time.Since(began), err)
				}
			})
		})
	}
}

// TestReadBodyIsNotCut: when the time of a stranger is over, a body is cut off that was not read
// to its end. One that was read is not, which would cancel its request.
func TestReadBodyIsNotCut(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", strings.NewReader("a"))
			before := int64(-1)
			cuts := alone(&Room{StrangersTime: time.Minute}, r, func(w http.ResponseWriter, r *http.Request) {
				if read {
					if _, err := io.ReadAll(r.Body); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(time.Hour)
				before = w.(*answer).cuts.Load()
			})
			if (before == 0) != read || (cuts == 0) != read {
				t.Errorf("read %v: the body was cut off %d times, and %d in all", read, before, cuts)
			}
		})
	}
}
