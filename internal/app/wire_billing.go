package app

import (
	"net"
	"net/netip"

	"yardmaster/internal/domain/billing"
)

// plainHTTP is where accounts may have their keys sent over plain http. What
// listens on this machine is for this machine's own; on a server for others, it
// is none of theirs.
func (a *App) plainHTTP() billing.Plain {
	if a.cfg.HTTPKeys == "anywhere" {
		return billing.PlainAnywhere
	}
	host, _, err := net.SplitHostPort(a.cfg.Listen)
	if err != nil {
		return billing.PlainNowhere
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return billing.PlainLoopback
	}
	return billing.PlainNowhere
}
