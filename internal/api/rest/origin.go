package rest

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
)

// site is the origin of a page: a scheme, a host in lower case, and a port, which is
// that of the scheme if none is named.
type site struct{ scheme, host, port string }

// siteOf reads an origin, which is http or https, a host and perhaps a port; false if
// the text is anything else.
func siteOf(origin string) (site, bool) {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || !strings.EqualFold(origin, u.Scheme+"://"+u.Host) {
		return site{}, false
	}
	s := site{u.Scheme, strings.ToLower(u.Hostname()), u.Port()}
	if s.port == "" && !strings.HasSuffix(u.Host, ":") {
		s.port = map[string]string{"https": "443", "http": "80"}[s.scheme]
	}
	n, err := strconv.ParseUint(s.port, 10, 16)
	bracketed := strings.HasPrefix(u.Host, "[")
	return s, err == nil && n > 0 && strconv.FormatUint(n, 10) == s.port && s.host != "" && strings.Contains(s.host, ":") == bracketed
}

// address returns the host if it is an IP address, else the zero address.
func (s site) address() netip.Addr {
	ip, err := netip.ParseAddr(s.host)
	if err != nil || ip.Zone() != "" {
		return netip.Addr{}
	}
	return ip.Unmap()
}

// local tells whether the host names the machine itself: localhost or a loopback
// address.
func (s site) local() bool { return s.host == "localhost" || s.address().IsLoopback() }

func (s site) among(sites []string) bool {
	return slices.ContainsFunc(sites, func(other string) bool {
		o, ok := siteOf(other)
		return ok && o == s
	})
}

// known tells whether the page that sends a request is one of op.KnownPages.
func (s *server) known(origin string) bool {
	from, ok := siteOf(origin)
	return ok && (from.local() || from.among(s.own()) || from.among(s.Origins))
}

// own lists the configured addresses of this server.
func (g *Config) own() []string { return append([]string{g.Pipeline.BaseURL}, g.Own...) }

// fromOwnPage tells whether the headers of a browser name a page of this server as the
// sender. A request without such headers does not come from a current browser.
func (g *Config) fromOwnPage(req *http.Request) bool {
	origin, site := req.Header.Get("Origin"), req.Header.Get("Sec-Fetch-Site")
	switch site {
	case "":
		return g.same(req)
	case "same-origin":
		return origin == "" || origin == "null" || g.same(req)
	}
	return false
}

// same tells whether the page that sends a request belongs to this server, by the
// configured addresses. Host alone proves nothing, because anybody can point a name of
// their own at this server. An origin that equals Host is accepted in two cases: between
// names and ports of this machine if the server is on it, and between IP addresses,
// which need no name, if the server listens at all addresses.
func (g *Config) same(req *http.Request) bool {
	from, ok := siteOf(req.Header.Get("Origin"))
	if !ok || from.among(g.own()) {
		return ok
	}
	to, named := siteOf(from.scheme + "://" + req.Host)
	base, based := siteOf(g.Pipeline.BaseURL)
	everywhere := base.address().IsUnspecified()
	return named && based && from == to && (from.local() && (base.local() || everywhere) || from.address().IsValid() && everywhere)
}

// came describes the origin of a page that was refused, and the origins that are
// accepted.
func (g *Config) came(req *http.Request) string {
	origin := req.Header.Get("Origin")
	if origin == "" {
		origin = "no origin"
	}
	return fmt.Sprintf("The page's origin is %s, and the request came to the host %s; this server is %s. Set base-url to the address that people open, with its port; further ones are listed in own-origins.",
		short(origin), short(req.Host), strings.Join(g.own(), ", "))
}

// short returns a text of a caller as it may be shown.
func short(s string) string {
	if !printable(s) {
		return "unreadable"
	}
	return s
}

// comesFrom returns the fault cross-origin for a request of a page that is not in from,
// with any credential.
func (s *server) comesFrom(req *http.Request, from op.Origin) error {
	origin, site := req.Header.Get("Origin"), req.Header.Get("Sec-Fetch-Site")
	switch from {
	case op.OwnPages, op.OwnForms:
		if site == "cross-site" || site == "same-site" || origin != "" && !s.same(req) && (origin != "null" || site != "same-origin") {
			return fault.New(fault.Forbidden, "cross-origin", "This is for pages of this server, and for programs. "+s.came(req))
		}
	case op.KnownPages:
		if origin != "" && !s.known(origin) {
			return fault.New(fault.Forbidden, "cross-origin", "Pages of this origin may not call. The server's operator can allow it.")
		}
	}
	return nil
}
