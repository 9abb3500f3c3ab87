package rest

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Address returns the address that a request comes from: the other end of the
// connection or, if that is a trusted proxy, the last reported hop that is no trusted
// proxy.
func Address(req *http.Request, trusted []netip.Prefix) string {
	peer, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil || len(trusted) == 0 || !within(trusted, peer) {
		return peer
	}
	forwarded, other := req.Header.Values("Forwarded"), req.Header.Values("X-Forwarded-For")
	switch {
	case len(forwarded) == 0:
		return lastHop(peer, split(other), trusted)
	case len(other) == 0:
		return lastHop(peer, nodes(forwarded), trusted)
	}
	// A proxy sets one of the headers, and may pass on the other as the caller
	// sent it. So only an address that both report is believed.
	if a, b := lastHop(peer, split(other), trusted), lastHop(peer, nodes(forwarded), trusted); a == b {
		return a
	}
	return peer
}

// lastHop walks from the nearest hop to the farthest. It returns the first one that is
// not trusted, or the farthest one.
func lastHop(peer string, hops []string, trusted []netip.Prefix) string {
	last := peer
	for _, hop := range slices.Backward(hops) {
		ip, ok := address(hop)
		if !ok {
			return last // the hop is hidden or malformed: those beyond it are unknown
		}
		if last = ip.String(); !within(trusted, last) {
			return last
		}
	}
	return last
}

func within(networks []netip.Prefix, text string) bool {
	ip, ok := address(text)
	return ok && slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// address reads an IP address, with or without a port, IPv6 with or without brackets.
func address(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return ip.Unmap().WithZone(""), err == nil
}

// split reads the lists of X-Forwarded-For.
func split(values []string) (out []string) {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		out = append(out, strings.TrimSpace(part))
	}
	return out
}

// nodes reads the for parameters of Forwarded (RFC 7239), one for each hop; "" for a
// hop without one.
func nodes(values []string) (out []string) {
	for _, hop := range split(values) {
		node := ""
		for pair := range strings.SplitSeq(hop, ";") {
			if name, value, ok := strings.Cut(pair, "="); ok && strings.EqualFold(strings.TrimSpace(name), "for") {
				node = strings.Trim(strings.TrimSpace(value), `"`)
			}
		}
		out = append(out, node)
	}
	return out
}
