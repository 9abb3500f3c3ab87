package app

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/flow"
)

// signinProviders are those that people sign in with: the GitHub, if the server is an app of
// it, and those of accounts.
func (a *App) signinProviders() flow.Providers {
	if a.cfg.GitHubID == "" {
		return flow.Providers{}
	}
	return flow.Providers{GitHub: a.cfg.GitHubURL}
}

// plainHTTP returns the addresses to which accounts may have their keys sent over
// plain http. A server that listens on the loopback address alone may reach models
// on its own machine; accounts of any other server may not.
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

// models judges the address of a model provider when it is dialled, because its name
// may lead elsewhere than when the key was added. Private networks are allowed:
// models are served there. This machine is allowed where plainHTTP allows it.
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
