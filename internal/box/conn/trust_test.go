package conn

import (
	"context"
	"errors"
	"io"
	"net"
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
