package dial

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

func TestReaches(t *testing.T) {
	t.Parallel()
	g := NewGuard([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")})
	for address, may := range map[string]bool{
		"93.184.215.14": true, "2606:2800:21f:cb07:6820:80da:af6b:8b2c": true, "10.1.2.3": true, "::ffff:10.1.2.3": true, "fd00:1::5": true,
		"10.2.0.1": false, "127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "169.254.169.254": false, "192.168.0.1": false,
		"172.16.0.1": false, "0.0.0.0": false, "::": false, "fe80::1%lo": false, "fd00:2::1": false, "100.64.0.1": false,
		"224.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "64:ff9b:1::1": false, "2001:0:7f00:1::": false,
		"::7f00:1": false, "fec0::1": false, "240.0.0.1": false, "198.18.0.1": false, "168.63.129.16": false, "fd00:ec2::254": false,
	} {
		if got := g.Reaches(netip.MustParseAddr(address)); got != may {
			t.Errorf("%s is reached: %v", address, got)
		}
	}
}

// TestExceptions: what a copy of a Guard reaches besides, and that the Guard itself does not.
func TestExceptions(t *testing.T) {
	t.Parallel()
	g := NewGuard(nil)
	for address, want := range map[string][2]bool{ // with loopback, with private networks
		"127.0.0.1": {true, false}, "::1": {true, false}, "::ffff:127.0.0.1": {true, false},
		"10.0.0.1": {false, true}, "fd00::1": {false, true},
		"169.254.169.254": {}, "fd00:ec2::254": {}, "168.63.129.16": {}, "0.0.0.0": {}, "64:ff9b::7f00:1": {}, "100.64.0.1": {},
	} {
		ip := netip.MustParseAddr(address)
		if got := [2]bool{g.WithLoopback().Reaches(ip), g.WithPrivate().Reaches(ip)}; got != want || g.Reaches(ip) {
			t.Errorf("%s: %v, want %v; without: %v", address, got, want, g.Reaches(ip))
		}
	}
}

// TestClosed: a Guard with the public network closed reaches what is allowed, and this machine or
// private networks where it reached them before.
func TestClosed(t *testing.T) {
	t.Parallel()
	g := NewGuard([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("93.184.215.0/24")})
	closed := g.Closed()
	for address, want := range map[string][4]bool{ // open; closed; with loopback; with private networks
		"93.184.215.14": {true, true, true, true}, "10.1.2.3": {true, true, true, true}, "::ffff:10.1.2.3": {true, true, true, true},
		"1.1.1.1": {true}, "::ffff:1.1.1.1": {true}, "2606:4700::1111": {true},
		"127.0.0.1": {false, false, true, false}, "10.2.0.1": {false, false, false, true}, "169.254.169.254": {}, "64:ff9b::101:101": {},
	} {
		ip := netip.MustParseAddr(address)
		got := [4]bool{g.Reaches(ip), closed.Reaches(ip), closed.WithLoopback().Reaches(ip), closed.WithPrivate().Reaches(ip)}
		if got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

// A name that leads to this machine is refused when it is dialled.
func TestDial(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for allowed, may := range map[string]bool{"127.0.0.0/8": true, "10.0.0.0/8": false} {
		d := NewGuard([]netip.Prefix{netip.MustParsePrefix(allowed)}).Dialer(time.Minute)
		c, err := d.DialContext(t.Context(), "tcp4", "localhost:"+port)
		if (err == nil) != may {
			t.Errorf("with %s allowed: %v", allowed, err)
		}
		if err == nil {
			c.Close()
		}
	}
}
