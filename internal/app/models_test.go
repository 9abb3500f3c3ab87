package app

import (
	"net/netip"
	"strings"
	"testing"

	"yardmaster/internal/config"
)

// TestAddressesOfModels: models on this machine are for a server of which all that is known is
// loopback, and those in private networks for a server whose operator allows the network.
func TestAddressesOfModels(t *testing.T) {
	t.Parallel()
	const own, others = "http://127.0.0.1:8080", "https://yard.example.com"
	loopback := []string{"127.0.0.1:11434", "127.9.9.9:80", "[::1]:11434", "[::ffff:127.0.0.1]:80"}
	never := strings.Fields(`169.254.169.254:80 [::ffff:169.254.169.254]:80 [fe80::1%1]:80 [fd00:ec2::254]:80 0.0.0.0:8080 [::]:8080
		100.100.100.200:80 224.0.0.1:80 10.0.0.7:443 100.64.0.1:443 240.0.0.1:443 [64:ff9b::7f00:1]:443 [64:ff9b:1::7f00:1]:443
		[2002:7f00:1::]:443 [2001:0:7f00:1::]:443 [::7f00:1]:443 [fec0::1]:443 168.63.129.16:80`)
	itself := config.Config{Listen: "127.0.0.1:8080"}
	proxied, elsewhere, another, everywhere, allowed := itself, itself, itself, itself, itself
	proxied.Proxies = config.Networks{netip.MustParsePrefix("127.0.0.1/32")}
	elsewhere.OwnOrigins = config.Origins{others}
	another.OwnOrigins = config.Origins{"http://localhost:5173"}
	everywhere.Listen, allowed.Listen = "0.0.0.0:8080", "0.0.0.0:8080"
	allowed.Reachable = config.Networks{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for name, c := range map[string]struct {
		config config.Config
		base   string
		open   bool // loopback
	}{
		"a laptop":                       {itself, own, true},
		"a laptop by name":               {config.Config{Listen: "localhost:8080"}, "http://localhost:8080", true},
		"behind a proxy":                 {itself, others, false},
		"a proxy is trusted":             {proxied, own, false},
		"people open it elsewhere":       {elsewhere, own, false},
		"another site of the machine":    {another, own, true},
		"it listens everywhere":          {everywhere, own, false},
		"it listens everywhere, no base": {everywhere, "http://[::]:8080", false},
		"a name that is not loopback":    {itself, "http://127.0.0.1.example.com", false},
		"the operator says so":           {allowed, others, true},
	} {
		a := &App{cfg: &c.config, base: c.base}
		dials := a.modelGuard().Control
		for _, at := range loopback {
			if got := dials("tcp", at, nil) == nil; got != c.open {
				t.Errorf("%s: %s is open: %v", name, at, got)
			}
		}
		for _, at := range never {
			if dials("tcp6", at, nil) == nil || dials("tcp4", at, nil) == nil {
				t.Errorf("%s: %s is open", name, at)
			}
		}
		if err := dials("tcp4", "1.1.1.1:443", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if a.guard().Control("tcp4", "127.0.0.1:80", nil) == nil && len(c.config.Reachable) == 0 {
			t.Errorf("%s: what is no model may be on this machine", name)
		}
		if err := a.hostGuard().Control("tcp4", "10.0.0.7:443", nil); err != nil {
			t.Errorf("%s: an operator may not name a host in a private network: %v", name, err)
		}
		if c := a.hostGuard().Control; c("tcp4", "169.254.169.254:80", nil) == nil || c("tcp6", "[fd00:ec2::254]:80", nil) == nil {
			t.Errorf("%s: an operator may name the metadata of a cloud", name)
		}
	}
}
