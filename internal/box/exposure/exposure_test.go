package exposure

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestPortsOfThisMachine holds that ports opened on this machine are found, and
// that those on loopback are not reported.
func TestPortsOfThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		if r := Inspect(t.Context()); r.Firewall != Unknown || len(r.Findings) == 0 {
			t.Errorf("%+v", r)
		}
		return
	}
	port := func(addr net.Addr) int {
		switch a := addr.(type) {
		case *net.TCPAddr:
			return a.Port
		case *net.UDPAddr:
			return a.Port
		}
		return 0
	}
	listen := func(at string) int {
		l, err := net.Listen("tcp4", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return port(l.Addr())
	}
	open, own := listen("0.0.0.0:0"), listen("127.0.0.1:0")
	udp, err := net.ListenPacket("udp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	r := Inspect(t.Context())
	for _, want := range []Port{{open, "tcp", "0.0.0.0"}, {port(udp.LocalAddr()), "udp", "0.0.0.0"}} {
		if !slices.Contains(r.Ports, want) {
			t.Errorf("%+v is not among %+v", want, r.Ports)
		}
	}
	if slices.ContainsFunc(r.Ports, func(p Port) bool { return p.Port == own && p.Protocol == "tcp" }) {
		t.Errorf("a port of loopback is listed: %+v", r.Ports)
	}
	if !slices.Contains([]string{Active, Inactive, Absent, Unknown}, r.Firewall) || r.Firewall == Unknown && len(r.Findings) == 0 {
		t.Errorf("%+v", r)
	}
}

const dockers = `table ip filter {
	chain FORWARD {
		type filter hook forward priority filter; policy drop;
		counter jump DOCKER
	}
	chain INPUT {
		type filter hook input priority filter; policy accept;
	}
}
`

func TestFirewall(t *testing.T) {
	for name, c := range map[string]struct {
		user     int
		programs string            // installed
		prints   map[string]string // by program
		ufw      string
		want     string
		why      bool
	}{
		"nothing installed": {user: 1000, want: Absent},
		"rules": {programs: "nft",
			prints: map[string]string{"nft": strings.Replace(dockers, "policy accept;\n", "policy accept;\n\t\ttcp dport 22 accept\n", 1)},
			want:   Active},
		"refuses by default": {programs: "nft",
			prints: map[string]string{"nft": strings.Replace(dockers, "policy accept", "policy drop", 1)}, want: Active},
		"lets all in": {programs: "nft", prints: map[string]string{"nft": dockers}, want: Inactive},
		"old rules": {programs: "nft iptables",
			prints: map[string]string{"iptables": "-P INPUT ACCEPT\n-A INPUT -p icmp -j DROP\n"}, want: Active},
		"no old rules": {programs: "iptables", prints: map[string]string{"iptables": "-P INPUT ACCEPT\n"}, want: Inactive},
		"firewalld": {user: 1000, programs: "firewall-cmd",
			prints: map[string]string{"systemctl": "active\ninactive\ninactive\n"}, want: Active},
		"ufw": {user: 1000, programs: "ufw iptables",
			prints: map[string]string{"systemctl": "inactive\nactive\ninactive\n"}, ufw: "yes", want: Active},
		"ufw, switched off": {user: 1000, programs: "ufw iptables",
			prints: map[string]string{"systemctl": "inactive\nactive\ninactive\n"}, ufw: "no", want: Inactive},
		"ufw, and nobody says it is up": {user: 1000, programs: "ufw iptables", ufw: "yes", want: Unknown, why: true},
		"nftables, whose rules are shut": {user: 1000, programs: "nft",
			prints: map[string]string{"systemctl": "inactive\ninactive\nactive\n"}, want: Unknown, why: true},
		"programs, and nobody to ask": {user: 1000, programs: "iptables nft", want: Unknown, why: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if c.ufw != "" {
				if err := os.MkdirAll(filepath.Join(root, "etc/ufw"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, "etc/ufw/ufw.conf"),
					[]byte("# /etc/ufw/ufw.conf\nENABLED="+c.ufw+"\nLOGLEVEL=low\n"),
					0o644); err != nil {
					t.Fatal(err)
				}
			}
			m := machine{root: root, user: c.user,
				has: func(p string) bool { return slices.Contains(strings.Fields(c.programs), p) },
				run: func(_ context.Context, p string, _ ...string) string { return c.prints[p] }}
			r := m.inspect(t.Context())
			if r.Firewall != c.want || len(r.Ports) != 0 {
				t.Errorf("%+v, want %s", r, c.want)
			}
			// One finding is that this machine has no /proc.
			if said := len(r.Findings) > 1; said != c.why {
				t.Errorf("findings %q", r.Findings)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return // the words below are in the order of these
	}
	for text, want := range map[string]string{
		"0100007F:0035": "127.0.0.1:53", "00000000:1F90": "0.0.0.0:8080",
		"00000000000000000000000001000000:0016": "[::1]:22", "0000000000000000FFFF00000A0200C0:01BB": "192.0.2.10:443",
		"B80D0120000000000000000001000000:0050": "[2001:db8::1]:80",
	} {
		if at, ok := address(text); !ok || at.String() != want {
			t.Errorf("%s is %s, want %s", text, at, want)
		}
	}
	for _, text := range []string{"", "zz:1", "0100007F", "0100007F:fffff", "01:01"} {
		if at, ok := address(text); ok {
			t.Errorf("%q is %s", text, at)
		}
	}
}
