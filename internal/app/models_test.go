package app

import (
	"net/netip"
	"testing"

	"yardmaster/internal/config"
)

// Where the model gateway dials: not where a cloud tells a machine its
// credentials, and the machine itself only when it serves itself alone.
func TestAddressesOfModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config config.Config
		closed []string
		open   []string
	}{
		"a server for itself": {
			config.Config{Listen: "127.0.0.1:8080", HTTPKeys: "loopback"},
			[]string{"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[fe80::1%1]:80", "[fd00:ec2::254]:80", "0.0.0.0:8080",
				"[::]:8080", "100.100.100.200:80", "224.0.0.1:80"},
			[]string{"127.0.0.1:11434", "[::1]:11434", "10.0.0.7:443", "1.1.1.1:443"},
		},
		"a server for others": {
			config.Config{Listen: "0.0.0.0:8080", HTTPKeys: "loopback"},
			[]string{"127.0.0.1:8080", "[::1]:8080", "[::ffff:127.0.0.1]:8080", "169.254.169.254:80"},
			[]string{"10.0.0.7:443", "1.1.1.1:443"},
		},
		"what is allowed": {
			config.Config{Listen: "0.0.0.0:8080", HTTPKeys: "loopback", Reachable: config.Networks{netip.MustParsePrefix("127.0.0.0/8")}},
			[]string{"169.254.169.254:80"},
			[]string{"127.0.0.1:11434"},
		},
	} {
		a := &App{cfg: &c.config}
		for _, at := range c.closed {
			if a.models("tcp", at, nil) == nil {
				t.Errorf("%s: %s is open", name, at)
			}
		}
		for _, at := range c.open {
			if err := a.models("tcp", at, nil); err != nil {
				t.Errorf("%s: %s: %v", name, at, err)
			}
		}
	}
}
