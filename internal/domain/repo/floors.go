package repo

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"yardmaster/internal/protocol"
)

// Floors are what an account holds all of its repositories to, whatever their
// policy files say. A field that is null asks nothing.
type Floors struct {
	Isolation *string   `json:"isolation" enum:"none,landlock,bubblewrap" doc:"the least that agent.isolation may be; read when a task is queued, claimed or explained"`
	MergeMode *string   `json:"merge_mode" enum:"auto,ask,never" example:"ask" doc:"the most lenient that merge.mode may be; read when a head has passed its checks, and again before it is merged"`
	TaskUSD   *float64  `json:"task_usd" minimum:"0" maximum:"100000" example:"20" doc:"the most that budget.task_usd may be, in US dollars; read whenever money is set aside for a call to a model"`
	RunUSD    *float64  `json:"run_usd" minimum:"0" maximum:"100000" example:"5" doc:"the most that budget.run_usd may be, in US dollars; read whenever money is set aside for a call to a model"`
	Egress    *[]string `json:"egress" maxItems:"100" example:"[\"*.example.com\"]" doc:"the hosts that mcp_servers and prepare.network may name, such as mcp.example.com or *.example.com; an empty list allows none; read when a run begins and is told of its servers"`
	Protected []string  `json:"protected_paths,omitzero" maxItems:"100" example:"[\"deploy/**\"]" doc:"paths whose change a person is always asked about, besides .svc; read before a merge. Matched from the root, without regard to case: * and ? are within a name, ** is any folders, and what is below a match is covered as well"`
	Outside   bool      `json:"outside_boxes" required:"false" example:"false" doc:"whether boxes of other accounts take work of this one that their owners, who are members here, have asked for and agreed to have there, see /v1/me/runners; box.list with outside:true names each of them. Read with each claim and whenever such a box is given something; false ends what runs there"`
}

// Clamp is one field of a policy file that asks for more than the account
// allows.
type Clamp struct {
	_     struct{} `doc:"A field of a policy file that asks for more than the account allows." schema:"Clamp"`
	Field string   `json:"field" example:"merge.mode" doc:"its dotted name in the file"`
	Asked string   `json:"asked" example:"auto" doc:"what the file asks for, or its default"`
	Given string   `json:"given" example:"ask" doc:"what is in force"`
	Floor string   `json:"floor" example:"merge_mode" doc:"the floor of the account that says so"`
}

// maxPattern is how long a pattern of Floors may be, in bytes.
const maxPattern = 200

// check says what is wrong, by field.
func (f Floors) check() map[string][]string {
	e := map[string][]string{}
	if f.Egress != nil {
		for i, host := range *f.Egress {
			name := strings.TrimPrefix(host, "*.")
			if u, err := url.Parse("https://" + name + "/"); err != nil || name == "" || u.Host != name ||
				strings.ContainsAny(name, "*/@?# ") || name != strings.ToLower(name) {
				e[fmt.Sprintf("egress.%d", i)] = []string{"must be a host in lower case, with a port if it is not 443, or *. and one"}
			}
		}
	}
	for i, p := range f.Protected {
		bad := p == "" || len(p) > maxPattern || strings.ContainsRune(p, 0)
		for seg := range strings.SplitSeq(strings.TrimSuffix(p, "/"), "/") {
			_, err := path.Match(seg, "")
			bad = bad || err != nil || seg == "" || seg == "." || seg == ".." || seg != "**" && strings.Contains(seg, "**")
		}
		if bad {
			e[fmt.Sprintf("protected_paths.%d",
				i)] = []string{fmt.Sprintf("must be a path from the root without a slash before it, in which *, ? and ** may stand, of at most %d bytes", maxPattern)}
		}
	}
	return e
}

// Clamp is the policy as far as the account allows it, and which fields ask for
// more.
func (f Floors) Clamp(p Policy) (Policy, []Clamp) {
	out := []Clamp{}
	if f.Isolation != nil && isolationRank(string(p.Agent.Isolation)) < isolationRank(*f.Isolation) {
		out = append(out, Clamp{Field: "agent.isolation", Asked: string(p.Agent.Isolation), Given: *f.Isolation, Floor: "isolation"})
		p.Agent.Isolation = protocol.LeastIsolation(*f.Isolation)
	}
	if f.MergeMode != nil && leniency(p.Merge.Mode) > leniency(Leave(*f.MergeMode)) {
		out = append(out, Clamp{Field: "merge.mode", Asked: string(p.Merge.Mode), Given: *f.MergeMode, Floor: "merge_mode"})
		p.Merge.Mode = Leave(*f.MergeMode)
	}
	cap := func(field, floor string, asked **float64, most *float64) {
		if most != nil && (*asked == nil || **asked > *most) {
			out = append(out, Clamp{Field: field, Asked: dollars(*asked), Given: dollars(most), Floor: floor})
			*asked = most
		}
	}
	cap("budget.task_usd", "task_usd", &p.Budget.TaskUSD, f.TaskUSD)
	cap("budget.run_usd", "run_usd", &p.Budget.RunUSD, f.RunUSD)
	if f.Egress == nil {
		return p, out
	}
	asked := p.Prepare.Network
	within := slices.DeleteFunc(slices.Clone(asked), func(h string) bool { return !f.reaches("https://" + h) })
	if len(within) < len(asked) {
		out = append(out, Clamp{Field: "prepare.network", Asked: strings.Join(asked, ", "),
			Given: cmp.Or(strings.Join(within, ", "), "nothing"), Floor: "egress"})
		p.Prepare.Network = within
	}
	kept := map[string]MCPServer{} // the file's own is shared
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		if s := p.MCPServers[name]; f.reaches(s.URL) {
			kept[name] = s
		} else {
			out = append(out, Clamp{Field: "mcp_servers." + name, Asked: s.URL, Given: "nothing", Floor: "egress"})
		}
	}
	if len(kept) < len(p.MCPServers) {
		p.MCPServers = kept
	}
	return p, out
}

// reaches tells whether a server at an https address may be named.
func (f Floors) reaches(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Host), ":443")
	return slices.ContainsFunc(*f.Egress, func(allowed string) bool {
		if domain, wild := strings.CutPrefix(allowed, "*"); wild {
			return strings.HasSuffix(host, domain)
		}
		return host == strings.TrimSuffix(allowed, ":443")
	})
}

// rules is the folder of the policy file, which is protected in every account.
const rules = ".svc"

// Protects tells whether a person is asked before this entry of a repository
// changes. A link says that it is, or would be, a symbolic link or another
// repository: one in the place of a folder that leads to what is protected
// counts as well.
func (f Floors) Protects(entry string, link bool) bool {
	names := strings.Split(entry, "/")
	for i := range names {
		names[i] = plain(names[i])
	}
	if names[0] == rules || shortRules(names[0]) {
		return true
	}
	return slices.ContainsFunc(f.Protected, func(pattern string) bool {
		segs := strings.Split(strings.TrimSuffix(pattern, "/"), "/")
		for i, s := range segs {
			if s != "**" {
				segs[i] = plain(s)
			}
		}
		return covers(segs, names) || link && leads(segs, names)
	})
}

// shortRules tells whether a name is what a file system of eight letters may
// call the folder of the rules.
func shortRules(name string) bool {
	digits, ok := strings.CutPrefix(name, "svc~")
	return ok && strings.Trim(digits, "0123456789") == ""
}

// plain is the name that a file system may take a name for: without regard to
// case, without characters that show nothing, without what Windows leaves out
// at the end.
func plain(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		least := r // of those that differ in case only
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return unicode.ToLower(least)
	}, name)
	return strings.TrimRight(name, " .")
}

// covers tells whether a pattern matches a path, or a folder that it is in.
func covers(pattern, names []string) bool {
	if len(pattern) == 0 {
		return true
	}
	if pattern[0] == "**" {
		for i := range names {
			if covers(pattern[1:], names[i:]) {
				return true
			}
		}
		return false
	}
	if len(names) == 0 {
		return false
	}
	ok, err := path.Match(pattern[0], names[0])
	return err == nil && ok && covers(pattern[1:], names[1:])
}

// leads tells whether what a pattern matches may lie below a path.
func leads(pattern, names []string) bool {
	for i, name := range names {
		if i == len(pattern) || pattern[i] == "**" {
			return false
		}
		if ok, err := path.Match(pattern[i], name); err != nil || !ok {
			return false
		}
	}
	return true
}
