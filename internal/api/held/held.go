// Package held limits what callers hold open at a server: connections (Conns) and requests
// that are being answered (Room). Whatever is beyond a limit is refused at once.
//
//	conns.go  a listener that counts connections, and closes idle ones for new ones
//	room.go   a handler that counts requests, with room set apart for some
//	place.go  the place of a request: a stranger's, until its credential was verified
package held

import (
	"context"
	"math"
	"net"
	"net/netip"
)

// Limits are the most connections of a server.
type Limits struct {
	All        int // at once
	PerAddress int // of one address
}

// From makes limits for a process that may have so many open files: three quarters are for
// connections, the rest is for what the server opens itself. A number that is given counts;
// an address has an eighth.
func From(files uint64, all, perAddress int) Limits {
	if all <= 0 {
		all = int(min(files, math.MaxInt32)/4*3) - 128
		all = min(max(all, 64), 16_384)
	}
	if perAddress <= 0 {
		perAddress = max(all/8, 16)
	}
	return Limits{all, min(perAddress, all)}
}

// peerOf is the address of the other end of a connection; zero if it has none.
func peerOf(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

type connKey struct{}

// connOf is the connection of the request that ctx belongs to; nil outside of one.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
