// Package dial connects to addresses that customers name, such as webhooks and
// identity providers. It judges the address that a name has led to, at each connection,
// so that no answer of a name server leads into the network of the server.
package dial

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Guard tells which addresses may be connected to: public ones, unless they are closed, and
// those in the networks that the operator allows. Safe for concurrent use.
type Guard struct {
	Names    Resolver // by which a name is judged before it is stored
	allowed  []netip.Prefix
	loopback bool // this machine, too
	private  bool // private networks, too
	closed   bool // the public network is not
	public   *ssrf.Guardian
}

// services are the addresses at which clouds serve their machines alone, such as with their
// credentials, and that no list of special networks has: those of Azure, AWS and Google.
var services = []netip.Addr{
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
}

// NewGuard makes a Guard.
func NewGuard(allowed []netip.Prefix) *Guard {
	return &Guard{Names: net.DefaultResolver, allowed: allowed, public: ssrf.New(ssrf.WithAnyPort())}
}

// WithLoopback is a copy of the Guard that lets this machine be connected to.
func (g *Guard) WithLoopback() *Guard {
	with := *g
	with.loopback = true
	return &with
}

// WithPrivate is a copy of the Guard that lets private networks be connected to (RFC 1918,
// RFC 4193), for addresses that an operator names.
func (g *Guard) WithPrivate() *Guard {
	with := *g
	with.private = true
	return &with
}

// Closed is a copy of the Guard that keeps the public network closed.
func (g *Guard) Closed() *Guard {
	with := *g
	with.closed = true
	return &with
}

// Allows tells whether an address is in a network that the operator allows. An IPv4
// address within IPv6 is judged as IPv4, and an address with a zone without it.
func (g *Guard) Allows(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(ip) }) || g.loopback && ip.IsLoopback()
}

// Control refuses to connect to an address that may not be connected to. It is the
// Control of a net.Dialer.
func (g *Guard) Control(network, address string, c syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil {
		ip := at.Addr().Unmap().WithZone("")
		switch {
		case g.Allows(ip):
			return nil
		case slices.Contains(services, ip):
			return errService
		case g.private && ip.IsPrivate():
			return nil
		}
	}
	if g.closed {
		return errClosed
	}
	return g.public.Safe(network, address, c)
}

var (
	errClosed  = errors.New("the server is cut off from the public network (air-gapped)")
	errService = errors.New("the address is that of a service of a cloud for its machines")
)

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

// Loopback tells whether a host, as an address has it, is this machine: an address of the
// loopback network, or a name that is kept for it (RFC 6761, section 6.3).
func Loopback(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
