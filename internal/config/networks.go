package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// Networks are address ranges. The zero value has none.
type Networks []netip.Prefix

func (n Networks) String() string {
	var out []string
	for _, p := range n {
		out = append(out, p.String())
	}
	return strings.Join(out, ",")
}

func networks(s string) (out Networks, err error) {
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8", part)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
