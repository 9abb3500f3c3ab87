// Package exposure reports how exposed the machine of a box is: whether a firewall
// is active, and which ports listen at addresses that other machines can reach. It
// runs with the rights of the box, changes nothing, and reports what it cannot find
// out.
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

// The states of a firewall.
const (
	Active   = "active"
	Inactive = "inactive" // installed, but it lets everything in
	Absent   = "absent"   // no program for one is installed
	Unknown  = "unknown"
)

// Port is a port that a program listens at.
type Port struct {
	Port     int    `json:"port"`
	Protocol string `json:"protocol"` // tcp or udp
	Address  string `json:"address"`
}

// Report is the result of Inspect.
type Report struct {
	Firewall string   `json:"firewall"`
	Ports    []Port   `json:"exposed_ports"`
	Findings []string `json:"findings,omitempty"`
}

// machine is the machine to examine. Tests replace its parts.
type machine struct {
	root string // folder that contains its files
	user int
	has  func(program string) bool
	run  func(ctx context.Context, program string, args ...string) string
}

// programWait limits the run time of one program.
const programWait = 5 * time.Second

// Inspect examines this machine. It never fails: Findings says what it could not find
// out.
func Inspect(ctx context.Context) Report {
	if runtime.GOOS != "linux" {
		return Report{Unknown, []Port{}, []string{
			"What listens, and behind which firewall, is known on Linux only; this is " + runtime.GOOS + ".",
		}}
	}
	return machine{root: "/", user: os.Geteuid(), has: has, run: run}.inspect(ctx)
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

// run returns the output of a program, also if the program fails.
func run(ctx context.Context, program string, args ...string) string {
	path := find(program)
	if path == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, programWait)
	defer cancel()
	out, _ := exec.CommandContext(ctx, path, args...).Output()
	return string(out)
}

func (m machine) inspect(ctx context.Context) Report {
	out := Report{Ports: []Port{}}
	var why string
	if out.Firewall, why = m.firewall(ctx); why != "" {
		out.Findings = append(out.Findings, why)
	}
	ports, whole := m.ports()
	if !whole {
		out.Findings = append(out.Findings, "What listens is not known in full: /proc/net cannot be read.")
	}
	if len(ports) > maxPorts {
		out.Findings = append(out.Findings, "Of "+strconv.Itoa(len(ports))+" ports the first "+strconv.Itoa(maxPorts)+" are listed.")
		ports = ports[:maxPorts]
	}
	out.Ports = append(out.Ports, ports...)
	return out
}

// maxPorts limits how many ports are reported.
const maxPorts = 1000

// firewall returns the state of the firewall and, if it is uncertain, the reason.
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
	return Unknown, "No service of a firewall is at work; rules that were set otherwise can be read by root only, " +
		"and the box does not run as root."
}

// ufw returns the setting of ufw: yes, no, or "" if ufw is not installed.
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

// filters tells whether a ruleset of nftables has an input chain that drops by
// default or has rules.
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

// listenStates lists the states in /proc/net of a listening TCP socket and of an
// unconnected UDP socket.
var listenStates = map[string]string{"tcp": "0A", "udp": "07"}

// ports lists the listening ports at addresses other than loopback; whole is false
// if some could not be read.
func (m machine) ports() (out []Port, whole bool) {
	whole = true
	for _, protocol := range []string{"tcp", "udp"} {
		for _, version := range []string{"", "6"} {
			file, err := os.Open(filepath.Join(m.root, "proc/net", protocol+version))
			if err != nil {
				// A kernel without IPv6 has no such file.
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
		if len(f) < 4 || f[3] != listenStates[protocol] {
			continue
		}
		if at, ok := address(f[1]); ok && !at.Addr().IsLoopback() {
			out = append(out, Port{int(at.Port()), protocol, at.Addr().String()})
		}
	}
	return out
}

// address reads an address as the kernel prints it: 32-bit words in the byte order
// of the machine, in hex, and the port.
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
