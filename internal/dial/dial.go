// Package dial connects to addresses that customers name, such as webhooks and
// identity providers. It judges the address that a name has led to, at each connection,
// so that no answer of a name server leads into the network of the server.
package dial

import (
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Guard tells which addresses may be connected to: public ones, and those in the
// networks that the operator allows. Safe for concurrent use.
type Guard struct {
	Names   Resolver // by which a name is judged before it is stored
	allowed []netip.Prefix
	public  *ssrf.Guardian
}

// NewGuard makes a Guard.
func NewGuard(allowed []netip.Prefix) *Guard {
	return &Guard{Names: net.DefaultResolver, allowed: allowed, public: ssrf.New(ssrf.WithAnyPort())}
}

// Allows tells whether an address is in a network that the operator allows. An IPv4
// address within IPv6 is judged as IPv4, and an address with a zone without it.
func (g *Guard) Allows(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Control refuses to connect to an address that may not be connected to. It is the
// Control of a net.Dialer.
func (g *Guard) Control(network, address string, c syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil && g.Allows(at.Addr()) {
		return nil
	}
	return g.public.Safe(network, address, c)
}

// Reaches tells whether an address may be connected to.
func (g *Guard) Reaches(ip netip.Addr) bool {
	network := "tcp6"
	if ip = ip.Unmap(); ip.Is4() {
		network = "tcp4"
	}
	return g.Control(network, netip.AddrPortFrom(ip, 443).String(), nil) == nil
}

// Dialer makes connections within a time limit, to addresses that may be connected to.
func (g *Guard) Dialer(limit time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: limit, Control: g.Control}
}
