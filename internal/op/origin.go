package op

import (
	"fmt"
	"net"
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
	// OwnForms are OwnPages, and whoever sends must say so: what a person decides
	// with a cookie is taken from no program.
	OwnForms
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

// SameSite tells whether a page's origin is this server: by the address it is
// configured with, the one that the request came to, or the one that a trusted
// proxy says it came to.
func SameSite(origin *url.URL, req *http.Request, base string, proxies []netip.Prefix) bool {
	if origin.Host == "" {
		return false
	}
	if strings.EqualFold(origin.Host, req.Host) || strings.EqualFold(origin.Scheme+"://"+origin.Host, base) {
		return true
	}
	peer, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil || !within(proxies, peer) {
		return false
	}
	// The nearest proxy adds the last one.
	hosts := split(req.Header.Values("X-Forwarded-Host"))
	return len(hosts) > 0 && strings.EqualFold(origin.Host, hosts[len(hosts)-1])
}

// Came says where a page that was refused comes from, and what was expected.
func Came(req *http.Request, base string) string {
	origin := req.Header.Get("Origin")
	if origin == "" {
		origin = "no origin"
	}
	return fmt.Sprintf("The page's origin is %s, and the request came to the host %s; this server is %s. Behind a proxy, set base-url to the address that people open, and have the proxy send Host as it came, with its port.",
		short(origin), short(req.Host), base)
}

// short is a text of a caller, to be shown.
func short(s string) string {
	if !printable(s) {
		return "unreadable"
	}
	return s
}

// comesFrom refuses requests of pages that may not send them, whatever
// credential came along.
func (s *server) comesFrom(req *http.Request, o *Op) error {
	origin, site := req.Header.Get("Origin"), req.Header.Get("Sec-Fetch-Site")
	switch o.From {
	case OwnPages, OwnForms:
		if o.From == OwnForms && origin == "" && site == "" {
			return fault.New(fault.Forbidden, "cross-origin", "The request does not say which page it comes from: it has neither Origin nor Sec-Fetch-Site. Browsers send them; a proxy in front of this server may have taken them out.")
		}
		u, err := url.Parse(origin)
		own := err == nil && SameSite(u, req, s.BaseURL, s.Proxies)
		if site == "cross-site" || site == "same-site" || origin != "" && !own && (origin != "null" || site != "same-origin") {
			return fault.New(fault.Forbidden, "cross-origin", "This is for pages of this server, and for programs. "+Came(req, s.BaseURL))
		}
	case KnownPages:
		if origin != "" && !s.known(origin) {
			return fault.New(fault.Forbidden, "cross-origin", "Pages of this origin may not call. The server's operator can allow it.")
		}
	}
	return nil
}
