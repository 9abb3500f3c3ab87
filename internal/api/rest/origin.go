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

// site is where a page comes from, as browsers say it: a scheme, a host in lower
// case, and a port, the scheme's own where none is named.
type site struct{ scheme, host, port string }

// siteOf reads an origin: http or https, a host, a port if there is one, and
// nothing else.
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

// address is the host, if it is an IP address.
func (s site) address() netip.Addr {
	ip, err := netip.ParseAddr(s.host)
	if err != nil || ip.Zone() != "" {
		return netip.Addr{}
	}
	return ip.Unmap()
}

// local tells of a site on the machine of whoever names it.
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

// own is the addresses that this server says it has.
func (g *Config) own() []string { return append([]string{g.Pipeline.BaseURL}, g.Own...) }

// fromOwnPage tells whether a browser says that a request comes from a page of
// this server. A request that says nothing is not a browser's of today.
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

// same tells whether the page that sends a request is of this server, by the
// addresses that it is configured with. Host proves nothing: anybody can have a
// name of their own lead here. It counts between the names and ports of this
// machine where the server is on it, and between IP addresses, which no name
// leads to, where it has all of them.
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

// came says where a page that was refused comes from, and what was expected.
func (g *Config) came(req *http.Request) string {
	origin := req.Header.Get("Origin")
	if origin == "" {
		origin = "no origin"
	}
	return fmt.Sprintf("The page's origin is %s, and the request came to the host %s; this server is %s. Set base-url to the address that people open, with its port; further ones are listed in own-origins.",
		short(origin), short(req.Host), strings.Join(g.own(), ", "))
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
func (s *server) comesFrom(req *http.Request, from op.Origin) error {
	origin, site := req.Header.Get("Origin"), req.Header.Get("Sec-Fetch-Site")
	switch from {
	case op.OwnPages, op.OwnForms:
		if from == op.OwnForms && origin == "" && site == "" {
			return fault.New(fault.Forbidden, "cross-origin",
				"The request does not say which page it comes from: it has neither Origin nor Sec-Fetch-Site. Browsers send them; a proxy in front of this server may have taken them out.")
		}
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
