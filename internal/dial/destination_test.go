package dial

import (
	"context"
	"net/netip"
	"strings"
	"testing"
)

type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) (out []netip.Addr, err error) {
	for _, ip := range n[host] {
		out = append(out, netip.MustParseAddr(ip))
	}
	return out, nil
}

func TestDestination(t *testing.T) {
	t.Parallel()
	g := NewGuard(nil)
	g.Names = names{
		"good.example": {"93.184.215.14"}, "inside.example": {"10.0.0.1"}, "meta.example": {"169.254.169.254"},
		"mapped.example": {"::ffff:192.168.1.1"}, "both.example": {"93.184.215.14", "10.0.0.1"},
	}
	for address, says := range map[string]string{
		"https://good.example/hooks/T1?x=y": "", "http://good.example": "",
		"ftp://good.example/": "must begin", "file:///etc/passwd": "must be an absolute", "https://": "must be an absolute",
		"https://inside.example/": Unreachable, "https://meta.example/": Unreachable,
		"https://mapped.example/": Unreachable, "https://both.example/": Unreachable,
		"https://nobody.example/": Unreachable, "http://[::1]/": Unreachable, "http://10.1.1.1/": Unreachable,
		"http://[fe80::1%25lo]/": Unreachable, "https://good.example/#x": "fragment",
	} {
		d, fault := g.Destination(t.Context(), address)
		if says == "" && (fault != "" || strings.Contains(d.Masked, "T1") || !strings.HasPrefix(address, d.URL)) {
			t.Errorf("%s: %s, %+v", address, fault, d)
		}
		if says != "" && !strings.Contains(fault, says) {
			t.Errorf("%s: %q", address, fault)
		}
	}
}
