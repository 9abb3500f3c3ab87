// Package exposure looks at how open the machine of a box is: whether a firewall
// is at work, and what listens at addresses that others can reach. It asks as the
// user it runs as, changes nothing, and says so where it cannot know.
package exposure

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// States of a firewall.
const (
	Active   = "active"
	Inactive = "inactive" // there is one, and it lets everything in
	Absent   = "absent"   // no program for one is installed
	Unknown  = "unknown"
)

// Port is something that listens.
type Port struct {
	Port     int    `json:"port"`
	Protocol string `json:"protocol"` // tcp or udp
	Address  string `json:"address"`
}

// Report is what was found.
type Report struct {
	Firewall string   `json:"firewall"`
	Ports    []Port   `json:"exposed_ports"`
	Findings []string `json:"findings,omitempty"`
}

// machine is what is looked at.
type machine struct {
	root string // of its files
	user int
	has  func(program string) bool
	run  func(ctx context.Context, program string, args ...string) string
}

// patience is how long a program of the machine may take to answer.
const patience = 5 * time.Second

// Look looks at this machine.
func Look(ctx context.Context) Report {
	if runtime.GOOS != "linux" {
		return Report{Unknown, []Port{}, []string{"What listens, and behind which firewall, is known on Linux only; this is " + runtime.GOOS + "."}}
	}
	return machine{root: "/", user: os.Geteuid(), has: has, run: run}.look(ctx)
}

func find(program string) string {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin", "/usr/bin", "/bin") {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

func has(program string) bool { return find(program) != "" }

// run answers what a program printed, whatever became of it.
func run(ctx context.Context, program string, args ...string) string {
	path := find(program)
	if path == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, _ := exec.CommandContext(ctx, path, args...).Output()
	return string(out)
}

func (m machine) look(ctx context.Context) Report {
	out := Report{Ports: []Port{}}
	var why string
	if out.Firewall, why = m.firewall(ctx); why != "" {
		out.Findings = append(out.Findings, why)
	}
	ports, whole := m.ports()
	if !whole {
		out.Findings = append(out.Findings, "What listens is not known in full: /proc/net cannot be read.")
	}
	if len(ports) > most {
		out.Findings = append(out.Findings, "Of "+strconv.Itoa(len(ports))+" ports the first "+strconv.Itoa(most)+" are listed.")
		ports = ports[:most]
	}
	out.Ports = append(out.Ports, ports...)
	return out
}

// most is how many ports are reported.
const most = 1000

// firewall tells whether there is one, and, where that is not certain, why.
func (m machine) firewall(ctx context.Context) (state, why string) {
	if m.user == 0 && m.has("nft") {
		if rules := m.run(ctx, "nft", "list", "ruleset"); filters(rules) {
			return Active, ""
		}
	}
	if m.user == 0 && m.has("iptables") {
		switch rules := m.run(ctx, "iptables", "-S", "INPUT"); {
		case strings.Contains(rules, "-P INPUT DROP"), strings.Contains(rules, "-A INPUT"):
			return Active, ""
		case rules != "":
			return Inactive, ""
		}
	}
	if m.user == 0 && m.has("nft") {
		return Inactive, ""
	}
	services := strings.Fields(m.run(ctx, "systemctl", "is-active", "firewalld.service", "ufw.service", "nftables.service"))
	up := func(i int) bool { return i < len(services) && services[i] == "active" }
	switch ufw := m.ufw(); {
	case up(0), up(1) && ufw == "yes":
		return Active, ""
	case up(2):
		return Unknown, "nftables is at work; only root can read its rules, and the box does not run as root."
	case ufw == "yes":
		return Unknown, "ufw is configured; whether it is at work, root knows only, and the box does not run as root."
	case ufw == "no":
		return Inactive, ""
	case !slices.ContainsFunc([]string{"nft", "iptables", "ufw", "firewall-cmd"}, m.has):
		return Absent, ""
	}
	return Unknown, "No service of a firewall is at work; rules that were set otherwise can be read by root only, and the box does not run as root."
}

// ufw is whether ufw is to be at work: yes, no, or empty if there is none.
func (m machine) ufw() string {
	text, err := os.ReadFile(filepath.Join(m.root, "etc/ufw/ufw.conf"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "ENABLED="); ok {
			return strings.ToLower(strings.Trim(value, `"'`))
		}
	}
	return ""
}

// filters tells whether a ruleset of nftables has a chain for what comes in that
// refuses by default, or has rules.
func filters(ruleset string) bool {
	in := false
	for line := range strings.Lines(ruleset) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "type ") && strings.Contains(line, "hook input"):
			if in = true; strings.Contains(line, "policy drop") {
				return true
			}
		case strings.HasPrefix(line, "}"):
			in = false
		case in && line != "" && !strings.HasPrefix(line, "#"):
			return true
		}
	}
	return false
}

// States of a socket in /proc/net: a TCP socket that listens, a UDP socket that
// nobody is connected to.
var waits = map[string]string{"tcp": "0A", "udp": "07"}

// ports lists what listens at addresses other than loopback; whole is false if
// not all could be read.
func (m machine) ports() (out []Port, whole bool) {
	whole = true
	for _, protocol := range []string{"tcp", "udp"} {
		for _, version := range []string{"", "6"} {
			file, err := os.Open(filepath.Join(m.root, "proc/net", protocol+version))
			if err != nil {
				// Without IPv6 there is no file of it.
				whole = whole && version == "6"
				continue
			}
			out = append(out, listening(file, protocol)...)
			file.Close()
		}
	}
	slices.SortFunc(out, func(a, b Port) int {
		return cmp.Or(strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port), strings.Compare(a.Address, b.Address))
	})
	return slices.Compact(out), whole
}

func listening(table io.Reader, protocol string) (out []Port) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[3] != waits[protocol] {
			continue
		}
		if at, ok := address(f[1]); ok && !at.Addr().IsLoopback() {
			out = append(out, Port{int(at.Port()), protocol, at.Addr().String()})
		}
	}
	return out
}

// address reads one as the kernel prints it: words of the machine's own order in
// hex, and the port.
func address(text string) (at netip.AddrPort, ok bool) {
	host, port, _ := strings.Cut(text, ":")
	words, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(words)%4 != 0 {
		return at, false
	}
	for i := 0; i < len(words); i += 4 {
		binary.NativeEndian.PutUint32(words[i:], binary.BigEndian.Uint32(words[i:]))
	}
	ip, ok := netip.AddrFromSlice(words)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), ok
}
