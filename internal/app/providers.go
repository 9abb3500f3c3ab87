package app

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"yardmaster/internal/domain/modelkey"
)

// plainHTTP is where accounts may have their keys sent over plain http. What
// listens on this machine is for this machine's own; on a server for others, it
// is none of theirs.
func (a *App) plainHTTP() modelkey.Plain {
	if a.cfg.HTTPKeys == "anywhere" {
		return modelkey.PlainAnywhere
	}
	host, _, err := net.SplitHostPort(a.cfg.Listen)
	if err != nil {
		return modelkey.PlainNowhere
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return modelkey.PlainLoopback
	}
	return modelkey.PlainNowhere
}

// models judges an address of a model provider when it is dialled, whatever its
// name was when the key came in. Private networks are open, for models are
// served there; this machine is as for plainHTTP.
func (a *App) models(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial a model provider: %w", err)
	}
	ip := at.Addr().Unmap().WithZone("")
	if slices.ContainsFunc(a.cfg.Reachable, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	if modelkey.Closed(ip) || ip.IsLoopback() && a.plainHTTP() == modelkey.PlainNowhere {
		return fmt.Errorf("%s is no address for models", ip)
	}
	return nil
}
