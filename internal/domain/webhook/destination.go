package webhook

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/fault"
)

// errDestination says that an address may not be named. It does not say why, so that
// nobody learns from it what there is in the network of the server.
var errDestination = fault.Field(
	"url",
	"is not an address that webhooks can be sent to: it has to lie in the public network, or in one that the operator allows (allow-networks)",
)

// destination checks the address of a webhook, and answers it in full and masked. It asks
// name servers, so it must not be called in a transaction.
func (s *Service) destination(ctx context.Context, text string) (whole, masked string, err error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return "", "", fault.Field("url", "must be an absolute address")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", "", fault.Field("url", "must begin with https:// or http://")
	case u.Fragment != "":
		return "", "", fault.Field("url", "must not have a fragment")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ips := []netip.Addr{}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		ips = append(ips, ip)
	} else if ips, err = s.resolve(ctx, u.Hostname()); err != nil || len(ips) == 0 {
		return "", "", errDestination
	}
	if slices.ContainsFunc(ips, func(ip netip.Addr) bool { return !s.Guard.Reaches(ip) }) {
		return "", "", errDestination
	}
	return u.String(), mask(u), nil
}

// mask is an address without what may be a secret in it: who signs in, path and query.
func mask(u *url.URL) string {
	shown := u.Scheme + "://" + u.Host
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		shown += "/…"
	}
	return shown
}
