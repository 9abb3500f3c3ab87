package sandbox

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPortOfTwoFamilies holds that an agent reaches its own socket at ::1 where
// another process has the same port of 127.0.0.1, and not that process.
func TestPortOfTwoFamilies(t *testing.T) {
	for _, x := range []struct {
		own, other  string // the port of other is that of own
		to          string
		some, alone bool
	}{
		{"127.0.0.1", "", "127.0.0.1", true, true},
		{"::1", "", "::1", true, true},
		{"::1", "", "127.0.0.1", false, false},
		{"::1", "127.0.0.1", "::1", true, true},
		{"::1", "127.0.0.1", "127.0.0.1", true, false},
		{"127.0.0.1", "::1", "127.0.0.1", true, true},
		{"127.0.0.1", "::1", "::1", true, false},
		{"::1", "0.0.0.0", "::1", true, true},
		{"::1", "0.0.0.0", "127.0.0.1", true, false},
		{"127.0.0.1", "::", "127.0.0.1", true, false}, // which may be of IPv6 alone
		{"127.0.0.1", "::ffff:127.0.0.2", "127.0.0.1", true, true},
		{"::ffff:127.0.0.1", "", "127.0.0.1", true, true},
	} {
		var l listeners
		var port uint16
		for port == 0 {
			at, inode := socketAt(t, netip.MustParseAddr(x.own), 0)
			if slices.ContainsFunc(listening(), func(o listener) bool { return o.at.Port() == at && o.inode != inode }) {
				continue // another process has that port at another address
			}
			if x.other != "" {
				if got, _ := socketAt(t, netip.MustParseAddr(x.other), at); got != at {
					continue
				}
			}
			port = at
			l.add(inode)
		}
		some, alone := l.at(netip.AddrPortFrom(netip.MustParseAddr(x.to), port))
		if some != x.some || alone != x.alone {
			t.Errorf("%v: some %v, alone %v", x, some, alone)
		}
	}
}

// socketAt listens until the test ends. The port is 0 if another process has it.
func socketAt(t *testing.T, ip netip.Addr, port uint16) (uint16, uint64) {
	t.Helper()
	domain, only := unix.AF_INET, 0
	var name unix.Sockaddr = &unix.SockaddrInet4{Port: int(port), Addr: [4]byte(ip.Unmap().AsSlice()[:4])}
	if ip.Is6() {
		domain, name = unix.AF_INET6, &unix.SockaddrInet6{Port: int(port), Addr: ip.As16()}
		if !ip.Is4In6() {
			only = 1
		}
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if domain == unix.AF_INET6 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Bind(fd, name); err == unix.EADDRINUSE && port != 0 {
		return 0, 0
	} else if err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := nameOf(bound)
	return at.Port(), st.Ino
}
