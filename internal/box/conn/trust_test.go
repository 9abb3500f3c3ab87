package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// distant is a connection to a machine that is not this one.
type distant struct {
	net.Conn
	at net.IP
}

func (d distant) RemoteAddr() net.Addr { return &net.TCPAddr{IP: d.at, Port: 4222} }

// What was stored as an address in the clear is believed on this machine alone, until
// the control plane has said anew that it is one.
func TestClearIsForThisMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at    string
		trust Trust
		ok    bool
	}{
		{"127.0.0.1", Trust{Here: true}, true}, {"::1", Trust{Here: true}, true}, {"127.8.9.1", Trust{Here: true}, true},
		{"192.0.2.1", Trust{Here: true}, false}, {"10.0.0.7", Trust{Here: true}, false}, {"2001:db8::1", Trust{Here: true}, false},
		{"192.0.2.1", Trust{}, true},
	} {
		near, far := net.Pipe()
		got, err := c.trust.protect(context.Background(), distant{near, net.ParseIP(c.at)}, "bus:4222", nil)
		if c.ok != (err == nil) || !c.ok && (!errors.Is(err, ErrClear) || !IsForeign(err) || got != nil) {
			t.Errorf("%+v: %v %v", c, got, err)
		}
		if !c.ok {
			if said, err := io.ReadAll(far); len(said) > 0 || err != nil {
				t.Errorf("%+v: it is told %q, %v", c, said, err)
			}
		}
		near.Close()
		far.Close()
	}
}

// A box that was told its addresses by an earlier server reads them as they were meant,
// and speaks in the clear to none if TLS was said of one.
func TestAddressesTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		told, want string
		tls        bool
	}{
		{"nats://127.0.0.1:1", "127.0.0.1:1", false},
		{"tls://bus.example.com:4222", "bus.example.com:4222", true},
		{"bus", "bus:4222", false},
		{"nats://[::1], ::1 ,[::1]:7,", "[::1]:4222 [::1]:4222 [::1]:7", false},
		{"nats://a, tls://b", "a:4222 b:4222", true},
		{" TLS://a:1", "a:1", true},
		{"tcp://a", "a:4222", false},
		{"", "", false},
	} {
		if got := addresses(c.told); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: %q", c.told, got)
		}
		if TrustOf(c.told, "").TLS != c.tls || TrustOf(c.told, "00") != (Trust{TLS: true, CA: "00"}) {
			t.Errorf("%q: %+v", c.told, TrustOf(c.told, ""))
		}
	}
}

// One address of several is enough, however it was written.
func TestProbeOfSeveral(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	bus, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	go func() {
		for c, err := bus.Accept(); err == nil; c, err = bus.Accept() {
			io.WriteString(c, "INFO {}\r\n")
		}
	}()
	if err := Probe(t.Context(), "nats://"+gone.Addr().String()+", "+bus.Addr().String(), Trust{}); err != nil {
		t.Error(err)
	}
	for _, list := range []string{gone.Addr().String(), "", "tls://" + bus.Addr().String() + "," + gone.Addr().String()} {
		if err := Probe(t.Context(), list, TrustOf(list, "")); err == nil || IsForeign(err) != strings.HasPrefix(list, "tls") {
			t.Errorf("%q: %v", list, err)
		}
	}
}
