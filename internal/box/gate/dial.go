package gate

import (
	"net"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Dialer makes a dialer that connects to public addresses, and to others that
// listed is true for. It judges the address that a name has led to, so that no
// answer of a name server leads into the box or its network. An address of
// IPv4 within IPv6 comes to listed as the former.
func Dialer(listed func(addr netip.Addr, port uint16) bool) *net.Dialer {
	public := ssrf.New(ssrf.WithAnyPort())
	return &net.Dialer{Timeout: 10 * time.Second, Control: func(network, address string, c syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err == nil && listed(at.Addr().Unmap(), at.Port()) {
			return nil
		}
		return public.Safe(network, address, c)
	}}
}
