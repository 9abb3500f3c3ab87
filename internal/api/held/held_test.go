package held

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/patience"
)

const refusal = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// server is a server whose path /hold is answered when hold is closed.
type server struct {
	*Conns
	t       *testing.T
	address string
	hold    chan struct{}
	holding chan struct{} // a value for each call that is held
	counted *atomic.Int64 // calls of verified callers
}

func serve(t *testing.T, conns Limits, room *Room, trusted ...netip.Prefix) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		NewConns(conns, trusted, []byte(refusal), nil), t, l.Addr().String(), make(chan struct{}), make(chan struct{}, 100),
		new(atomic.Int64),
	}
	if room.Address == nil {
		room.Address = func(r *http.Request) string { return strings.Split(r.RemoteAddr, ":")[0] }
	}
	room.Shows = func(r *http.Request) bool { return r.Header.Get("Authorization") != "" }
	room.Refuse = func(w http.ResponseWriter, _ *http.Request, f *fault.Error) {
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", fmt.Sprint(f.RetryAfter.Seconds()))
		w.WriteHeader(f.Kind.Status())
	}
	h := &http.Server{ConnContext: s.Context, Handler: room.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.authenticate(r); err != nil {
			room.Refuse(w, r, fault.From(err))
			return
		}
		if strings.HasPrefix(r.URL.Path, "/hold") {
			s.holding <- struct{}{}
			<-s.hold
		}
		if r.Method == "POST" {
			s.holding <- struct{}{}
			if _, err := io.ReadAll(r.Body); err != nil {
				w.WriteHeader(400)
			}
		}
	}))}
	go h.Serve(s.Listener(l))
	t.Cleanup(func() { close(s.hold); h.Close() })
	return s
}

// authenticate verifies the credential of a request, as what is behind a Room does.
func (s *server) authenticate(r *http.Request) error {
	switch token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); token {
	case "x", "box":
		return Known(r.Context(), token, func() (func(), error) { s.counted.Add(1); return func() { s.counted.Add(-1) }, nil })
	case "many":
		return Known(r.Context(), "", func() (func(), error) { return nil, op.TooMuchOpen("many") })
	case "unasked":
		return nil
	}
	return Stranger(r.Context())
}

// dial connects from an address.
func (s *server) dial(from string) net.Conn {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(s.t.Context(), "tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	late, _ := patience.Context(s.t).Deadline()
	if err := c.SetDeadline(late); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a request on a connection, and answers the status; 0: the connection is closed.
func ask(c net.Conn, path string, header ...string) int {
	send(c, path, header...)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	if resp.StatusCode == 503 && (!resp.Close || resp.Header.Get("Retry-After") != "5") {
		return -1
	}
	return resp.StatusCode
}

func send(c net.Conn, path string, header ...string) {
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, strings.Join(append(header, ""), "\r\n"))
}

// known is the header of a request that presents a credential.
const known = "Authorization: Bearer x"

// TestIdleConnectionsGiveWay: the connection that is idle for the longest time is closed for a
// new one, and one that is being answered is not.
func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{3, 3}, &Room{Limits: Limits{10, 10}})
	busy := s.dial("127.0.0.1")
	send(busy, "/hold", known)
	patience.Receive(t, "a call", s.holding)
	first, second := s.dial("127.0.0.2"), s.dial("127.0.0.3")
	if ask(first, "/") != 200 || ask(second, "/") != 200 {
		t.Fatal("connections within the limit are refused")
	}
	if ask(s.dial("127.0.0.4"), "/") != 200 {
		t.Error("idle connections keep a new one out")
	}
	if ask(first, "/") != 0 || ask(second, "/") != 200 {
		t.Error("another connection was closed than the one that was idle for the longest time")
	}
	if n := s.Open(); n != 3 {
		t.Errorf("%d connections, and there may be 3", n)
	}
	s.hold <- struct{}{}
	if resp, err := http.ReadResponse(bufio.NewReader(busy), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("a call that is answered was cut off: %v", err)
	}
}

// TestBusyConnectionsAreNotClosed: where all connections are busy a new one is refused, and
// there is room again when one has ended.
func TestBusyConnectionsAreNotClosed(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{2, 2}, &Room{Limits: Limits{10, 10}})
	var busy []net.Conn
	for i := range 2 {
		c := s.dial(fmt.Sprintf("127.0.0.%d", 1+i))
		send(c, "/hold", known)
		patience.Receive(t, "a call", s.holding)
		busy = append(busy, c)
	}
	if got := ask(s.dial("127.0.0.9"), "/"); got != 503 {
		t.Errorf("beyond the limit: %d", got)
	}
	busy[0].Close()
	s.hold <- struct{}{}
	s.hold <- struct{}{}
	patience.Until(t, "room", func() bool { return ask(s.dial("127.0.0.9"), "/") == 200 })
}

// TestConnectionsOfAnAddress: one address has its part, whatever it does, and a trusted proxy
// has none.
func TestConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{10, 2}, &Room{Limits: Limits{20, 20}}, netip.MustParsePrefix("127.0.0.9/32"))
	for range 2 {
		send(s.dial("127.0.0.1"), "/hold", known)
		patience.Receive(t, "a call", s.holding)
	}
	if got := ask(s.dial("127.0.0.1"), "/"); got != 503 {
		t.Errorf("a third connection of an address: %d", got)
	}
	for range 5 {
		c := s.dial("127.0.0.9")
		send(c, "/hold", known)
		patience.Receive(t, "a call of a proxy", s.holding)
	}
	if got := ask(s.dial("127.0.0.2"), "/"); got != 200 {
		t.Errorf("another address: %d", got)
	}
}

// TestRefusedConnectionsAreClosed: very many connections beyond the limit leave nothing open.
func TestRefusedConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{1, 1}, &Room{Limits: Limits{10, 10}})
	send(s.dial("127.0.0.1"), "/hold", known)
	patience.Receive(t, "a call", s.holding)
	for i := range 3 * refusing {
		c := s.dial(fmt.Sprintf("127.0.1.%d", 1+i%200))
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Fatalf("the connection %d stays open: %v", i, err)
		}
	}
	if n := s.Open(); n != 1 {
		t.Errorf("%d connections are counted, and there is one", n)
	}
}

// TestRoomSetApart: when everything is full, what has room of its own is answered, up to its
// part, half of which is for others than one address.
func TestRoomSetApart(t *testing.T) {
	t.Parallel()
	health := Apart{Name: "health", Most: 4, Is: func(r *http.Request) bool { return strings.Contains(r.URL.Path, "health") }}
	s := serve(t, Limits{50, 50}, &Room{Limits: Limits{10, 4}, Apart: []Apart{health}})
	for i := range 6 { // 10 less 4
		send(s.dial(fmt.Sprintf("127.0.0.%d", 1+i%2)), "/hold", known)
		patience.Receive(t, "a call", s.holding)
	}
	if got := ask(s.dial("127.0.0.3"), "/", known); got != 503 {
		t.Errorf("beyond all: %d", got)
	}
	if got := ask(s.dial("127.0.0.3"), "/health"); got != 200 {
		t.Errorf("health: %d", got)
	}
	for range 2 {
		send(s.dial("127.0.0.3"), "/hold/health")
		patience.Receive(t, "a call", s.holding)
	}
	if got := ask(s.dial("127.0.0.3"), "/health"); got != 503 {
		t.Errorf("more than half of the room apart: %d", got)
	}
	if got := ask(s.dial("127.0.0.4"), "/health"); got != 200 {
		t.Errorf("the other half: %d", got)
	}
}

// TestStrangersHaveHalf: those who present no credential leave half of the room to others,
// and an address its part.
func TestStrangersHaveHalf(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{50, 50}, &Room{Limits: Limits{10, 4}})
	for i := range 5 {
		send(s.dial(fmt.Sprintf("127.0.0.%d", 1+i)), "/hold")
		patience.Receive(t, "a call", s.holding)
	}
	if got := ask(s.dial("127.0.0.8"), "/"); got != 503 {
		t.Errorf("a stranger more: %d", got)
	}
	for range 4 {
		send(s.dial("127.0.0.9"), "/hold", known)
		patience.Receive(t, "a call", s.holding)
	}
	if got := ask(s.dial("127.0.0.9"), "/", known); got != 503 {
		t.Errorf("more of one address: %d", got)
	}
	if got := ask(s.dial("127.0.0.8"), "/", known); got != 200 {
		t.Errorf("the last place: %d", got)
	}
}

func TestLimitsFromFiles(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		files        uint64
		all, address int
		want         Limits
	}{
		{1024, 0, 0, Limits{640, 80}}, {1 << 20, 0, 0, Limits{16_384, 2048}}, {100, 0, 0, Limits{64, 16}}, {1024, 8, 20, Limits{8, 8}},
		{1<<64 - 1, 0, 5, Limits{16_384, 5}},
	} {
		if got := From(x.files, x.all, x.address); got != x.want {
			t.Errorf("%+v: %+v", x, got)
		}
	}
}
