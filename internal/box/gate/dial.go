package gate

import (
	"net"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Dialer returns a dialer that connects to public addresses, and to those for which
// listed returns true. It checks the address that a name resolved to, so that no
// answer of a name server leads into the box or its network. listed receives an
// IPv4 address within IPv6 as IPv4.
func Dialer(listed func(addr netip.Addr, port uint16) bool) *net.Dialer {
	public := ssrf.New(ssrf.WithAnyPort())
	return &net.Dialer{Timeout: 10 * time.Second, Control: func(network, address string, c syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err == nil && listed(at.Addr().Unmap(), at.Port()) {
			return nil
		}
		return public.Safe(network, address, c)
	}}
}
