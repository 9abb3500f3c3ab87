package repo

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Limits of what a policy file says about the environment.
const (
	maxPrepare      = 8000 // characters of the script
	maxPrepareTime  = time.Hour
	maxPrepareNames = 50  // entries of each list
	maxPreparePath  = 200 // bytes of a path
)

// PreparePolicy is the script that makes the environment of agents and checks ready, once a
// box for all runs of the repository. It runs with the files of the default branch alone, and
// nothing else of a run has its network or its secrets.
type PreparePolicy struct {
	_       struct{} `doc:"The script that makes the environment of agents and checks ready, once a box for all runs of the repository." schema:"PreparePolicy"`
	Command string   `json:"command" yaml:"command" example:"scripts/prepare.sh" doc:"run by sh -c in a checkout of the default branch; empty: nothing is prepared"`
	Inputs  []string `json:"inputs,omitempty" yaml:"inputs" example:"[\"go.sum\"]" doc:"files and folders of the default branch whose change has it run anew; without any, each change does"`
	Network []string `json:"network,omitempty" yaml:"network" example:"[\"*.example.com\"]" doc:"public hosts that it reaches while it runs, such as example.com, *.example.com or example.com:80; without a port it is 443"`
	Secrets []string `json:"secrets,omitempty" yaml:"secrets" example:"[\"NPM_TOKEN\"]" doc:"names of secrets that it has as variables, and that agents and checks do not have"`
	Timeout string   `json:"timeout" yaml:"timeout" example:"10m" doc:"how long it may take, as a duration"`
}

// For is Timeout as a duration.
func (p PreparePolicy) For() time.Duration {
	d, err := time.ParseDuration(p.Timeout)
	if err != nil {
		return 10 * time.Minute
	}
	return d
}

// tidy has an empty list be none.
func (p *PreparePolicy) tidy() {
	for _, list := range []*[]string{&p.Inputs, &p.Network, &p.Secrets} {
		if len(*list) == 0 {
			*list = nil
		}
	}
}

func (p PreparePolicy) check() (msgs []string) {
	bad := func(format string, args ...any) { msgs = append(msgs, fmt.Sprintf(format, args...)) }
	if strings.ContainsRune(p.Command, 0) || len([]rune(p.Command)) > maxPrepare {
		bad("prepare.command must have at most %d characters, and none is U+0000", maxPrepare)
	}
	if d, err := time.ParseDuration(p.Timeout); err != nil || d <= 0 || d > maxPrepareTime {
		bad("prepare.timeout must be a duration of at most %s, such as 10m", maxPrepareTime)
	}
	for _, list := range []struct {
		name  string
		all   []string
		valid func(string) bool
		says  string
	}{
		{"inputs", p.Inputs, isInput, "a path from the root of the repository"},
		{"network", p.Network, isHost, "a host in lower case, with a port if it is not 443, or *. and one"},
		{"secrets", p.Secrets, func(s string) bool { return tokenRef.MatchString(s) }, "the name of a secret"},
	} {
		if len(list.all) > maxPrepareNames {
			bad("prepare.%s must have at most %d entries", list.name, maxPrepareNames)
		}
		if p.Command == "" && len(list.all) > 0 {
			bad("prepare.%s is of no use without prepare.command", list.name)
		}
		if slices.ContainsFunc(list.all, func(s string) bool { return !list.valid(s) }) {
			bad("prepare.%s: each must be %s", list.name, list.says)
		}
	}
	return msgs
}

func isInput(p string) bool {
	return p != "" && len(p) <= maxPreparePath && path.Clean(p) == p && !path.IsAbs(p) && p != "." && p != ".." &&
		!strings.HasPrefix(p, "../") && !strings.ContainsAny(p, "\x00\n:")
}

// isHost tells whether a text is a host, or *. and one, with or without a port. An address is
// none: it could be one inside of the network of a box.
func isHost(text string) bool {
	name := strings.TrimPrefix(text, "*.")
	u, err := url.Parse("https://" + name + "/")
	if err != nil || name == "" || u.Host != name || strings.ContainsAny(name, "*/@?#[ ") || name != strings.ToLower(name) {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err != nil && !strings.HasSuffix(name, ":") && !strings.HasPrefix(name, ".")
}

// Hosts are Network with the port of each.
func (p PreparePolicy) Hosts() []string {
	var out []string
	for _, h := range p.Network {
		if !strings.Contains(h, ":") {
			h += ":443"
		}
		out = append(out, h)
	}
	return out
}

// prepareJudges say what a change of the script's rules means.
var prepareJudges = map[string]judge{
	"prepare.inputs": harmless, // they only say when it runs anew
	"prepare.command": func(was, would Policy) []Weakening {
		if would.Prepare.Command == "" {
			return nil
		}
		return changed("prepare.command", "another script runs with the network and the secrets that agents do not have",
			func(p Policy) string { return p.Prepare.Command })(was, would)
	},
	"prepare.timeout": lower("prepare.timeout", "a script may hold a box longer", func(p Policy) (string, int) {
		return p.Prepare.For().String(), int(p.Prepare.For().Seconds())
	}),
	"prepare.network": func(was, would Policy) []Weakening {
		if !slices.ContainsFunc(would.Prepare.Network, func(h string) bool { return !slices.Contains(was.Prepare.Network, h) }) {
			return nil
		}
		return changed("prepare.network", "the script reaches other hosts",
			func(p Policy) string { return strings.Join(p.Prepare.Network, ", ") })(was, would)
	},
	"prepare.secrets": changed("prepare.secrets", "the script has other secrets, and agents have those that it has no more",
		func(p Policy) string { return strings.Join(p.Prepare.Secrets, ", ") }),
}
