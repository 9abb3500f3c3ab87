package app

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"yardmaster/internal/dial"
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

// guard judges the addresses that customers name when they are stored, and again when they
// are dialled, because a name may lead elsewhere by then.
func (a *App) guard() *dial.Guard {
	g := dial.NewGuard(a.cfg.Reachable)
	if a.cfg.AirGapped == "on" {
		return g.Closed()
	}
	return g
}

// road carries requests to services that no setting names: by whatever way the machine has; in
// an air gap, only where the guard leads, without a proxy, since a proxy leads anywhere.
func (a *App) road() http.RoundTripper {
	if a.cfg.AirGapped != "on" {
		return http.DefaultTransport
	}
	return &http.Transport{DialContext: a.guard().Dialer(30 * time.Second).DialContext, ForceAttemptHTTP2: true}
}

// modelGuard judges the addresses of models. Those on this machine may be named where the
// server is for the people of the machine alone.
func (a *App) modelGuard() *dial.Guard {
	if a.servesItself() {
		return a.guard().WithLoopback()
	}
	return a.guard()
}

// hostGuard judges the addresses of code hosts, which an operator names at the set-up.
func (a *App) hostGuard() *dial.Guard { return a.modelGuard().WithPrivate() }

// servesItself tells whether the server is for the people of its own machine alone. That it
// listens on loopback does not say so: a proxy in front of it may be for everybody. All that
// is known of its addresses has to be loopback: that of base-url, the one that it listens
// at, the sites that people open it at; and no proxy is trusted.
func (a *App) servesItself() bool {
	loopback := func(site string) bool {
		u, err := url.Parse(site)
		return err == nil && dial.Loopback(u.Hostname())
	}
	host, _, err := net.SplitHostPort(a.cfg.Listen)
	return err == nil && dial.Loopback(host) && loopback(a.base) && len(a.cfg.Proxies) == 0 &&
		!slices.ContainsFunc(a.cfg.OwnOrigins, func(site string) bool { return !loopback(site) })
}
