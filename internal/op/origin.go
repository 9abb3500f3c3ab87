package op

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"yardmaster/internal/fault"
)

// Origin is which pages in browsers may send a request. Programs say nothing of
// where they come from, and are let through.
type Origin uint8

const (
	// AnyPage leaves it to the credential: a cookie is good for writes of our
	// own pages only, a token is something the page has itself.
	AnyPage Origin = iota
	// OwnPages are those that the server was reached under.
	OwnPages
	// KnownPages are those of the server's own address, whatever name it was
	// reached under, those on the caller's own machine, and those of
	// Guard.Origins.
	KnownPages
)

// known tells whether the page that sends a request is one of KnownPages.
func (s *server) known(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return false
	}
	if own, err := url.Parse(s.BaseURL); err == nil && strings.EqualFold(own.Scheme+"://"+own.Host, origin) {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback() || slices.Contains(s.Origins, strings.ToLower(origin))
}

// comesFrom refuses requests of pages that may not send them, whatever
// credential came along.
func (s *server) comesFrom(req *http.Request, o *Op) error {
	origin, site := req.Header.Get("Origin"), req.Header.Get("Sec-Fetch-Site")
	switch o.From {
	case OwnPages:
		u, err := url.Parse(origin)
		own := err == nil && u.Host != "" && (strings.EqualFold(u.Host, req.Host) || strings.EqualFold(origin, s.BaseURL))
		if site == "cross-site" || site == "same-site" || origin != "" && !own && (origin != "null" || site != "same-origin") {
			return fault.New(fault.Forbidden, "cross-origin", "This is for pages of this server, and for programs.")
		}
	case KnownPages:
		if origin != "" && !s.known(origin) {
			return fault.New(fault.Forbidden, "cross-origin", "Pages of this origin may not call. The server's operator can allow it.")
		}
	}
	return nil
}
