package dial

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Resolver asks name servers, as net.DefaultResolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Unreachable says that an address may not be named. It does not say why, so that nobody
// learns from it what there is in the network of the server.
const Unreachable = "is not an address that can be sent to: it has to lie in the public network, or in one that the operator allows (allow-networks)"

// Destination is an address that a customer names.
type Destination struct {
	URL    string
	Masked string // without what may be a secret in it: who signs in, path and query
}

// Destination checks an address of http or https, and where its name leads now. fault says
// what is wrong with it, for people; empty: nothing. It asks name servers, so it must not be
// called in a transaction.
func (g *Guard) Destination(ctx context.Context, text string) (d Destination, fault string) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return d, "must be an absolute address"
	case u.Scheme != "https" && u.Scheme != "http":
		return d, "must begin with https:// or http://"
	case u.Fragment != "":
		return d, "must not have a fragment"
	}
	if fault := g.Host(ctx, u.Hostname()); fault != "" {
		return d, fault
	}
	return Destination{URL: u.String(), Masked: mask(u)}, ""
}

// Host checks the name or address of a machine, and where a name leads now. fault says what is
// wrong with it, for people; empty: nothing. It asks name servers, so it must not be called in
// a transaction.
func (g *Guard) Host(ctx context.Context, host string) (fault string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ips := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		ips = append(ips, ip)
	} else if ips, err = g.Names.LookupNetIP(ctx, "ip", host); err != nil || len(ips) == 0 {
		return Unreachable
	}
	if slices.ContainsFunc(ips, func(ip netip.Addr) bool { return !g.Reaches(ip) }) {
		return Unreachable
	}
	return ""
}

// mask is an address without what may be a secret in it.
func mask(u *url.URL) string {
	shown := u.Scheme + "://" + u.Host
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		shown += "/…"
	}
	return shown
}
