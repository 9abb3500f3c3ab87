package repo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Weakening is one field of a policy file that would hold agents less, or that
// would tell them something else, than it does.
type Weakening struct {
	_     struct{} `doc:"A field of a policy file that a merge would make hold agents less." schema:"Weakening"`
	Field string   `json:"field" example:"merge.mode" doc:"its dotted name in the file"`
	Was   string   `json:"was" example:"ask" doc:"at most 200 characters of it"`
	Would string   `json:"would" example:"auto" doc:"what it would be; at most 200 characters of it"`
	Why   string   `json:"why" example:"pull requests would merge without a person's word" doc:"what gets weaker by it"`
}

// String says it in a sentence: field, what it was, what it would be.
func (w Weakening) String() string {
	return fmt.Sprintf("%s from %s to %s (%s)", w.Field, w.Was, w.Would, w.Why)
}

// judge says what is weaker about one field of the file.
type judge func(was, would Policy) []Weakening

// harmless judges fields that hold nobody.
func harmless(Policy, Policy) []Weakening { return nil }

// judges has every field of a policy file, by its dotted name; * is any name. A
// test fails when the file has a field that nobody judges.
var judges = map[string]judge{
	"version":              harmless, // there is one
	"merge.method":         harmless, // the same lines come in either way
	"merge.delete_branch":  harmless, // of a branch that is merged
	"merge.on_cancel":      harmless, // nothing is merged by either
	"merge.grace":          harmless, // it only says how long a person may think again
	"merge.batch":          harmless, // all are checked together, however many
	"checks.missing_after": harmless, // it only says when a person is asked
	"checkout.submodules":  harmless, // those of the default branch alone
	"checkout.lfs":         harmless, // the repository's own
	"checkout.depth":       harmless, // nothing is checked less

	"agent.template": changed("agent.template", "the template decides which agent works, with which model",
		func(p Policy) string { return p.Agent.Template }),
	"agent.isolation": lower("agent.isolation", "agents are held less", func(p Policy) (string, int) {
		return string(p.Agent.Isolation), -isolationRank(string(p.Agent.Isolation))
	}),
	"checks.command": func(was, would Policy) []Weakening {
		if was.Checks.Command == "" {
			return nil
		}
		return changed("checks.command", "a head is held against other checks, or none",
			func(p Policy) string { return p.Checks.Command })(was, would)
	},
	"checks.timeout": lower("checks.timeout", "a check may hold a box longer", func(p Policy) (string, int) {
		return p.CheckTimeout().String(), int(p.CheckTimeout().Seconds())
	}),
	"merge.mode": lower("merge.mode", "less is asked before a merge", func(p Policy) (string, int) {
		return string(p.Merge.Mode), leniency(p.Merge.Mode)
	}),
	"merge.queue": lower("merge.queue", "heads are merged unchecked with what the base has become", func(p Policy) (string, int) {
		return p.Merge.Queue, slices.Index([]string{"batch", "off"}, p.Merge.Queue)
	}),
	"approvals.carry": lower("approvals.carry", "an approval holds for later heads", func(p Policy) (string, int) {
		return p.Approvals.Carry, slices.Index([]string{"never", "rebase"}, p.Approvals.Carry)
	}),
	"review.mode": lower("review.mode", "less is reviewed", func(p Policy) (string, int) {
		return p.Review.Mode, slices.Index([]string{"auto", "on_request", "off"}, p.Review.Mode)
	}),
	"review.template": changed("review.template", "the template decides which model reviews",
		func(p Policy) string { return p.Review.Template }),
	"review.min_severity": lower("review.min_severity", "fewer findings are posted", func(p Policy) (string, int) {
		return string(p.Review.MinSeverity), -p.Review.MinSeverity.Rank()
	}),
	"review.block": lower("review.block", "fewer findings hold a merge", func(p Policy) (string, int) {
		return p.Review.Block, slices.Index(reviewBlocks, p.Review.Block)
	}),
	"conflicts": lower("conflicts", "work that conflicts with open work is held up less", func(p Policy) (string, int) {
		return p.Conflicts, slices.Index([]string{"hold", "stack", "ignore"}, p.Conflicts)
	}),
	"pulls.watch": lower("pulls.watch", "agents push to more branches of people", func(p Policy) (string, int) {
		return p.Pulls.Watch, slices.Index([]string{"none", "labelled", "all"}, p.Pulls.Watch)
	}),
	"pulls.push": lower("pulls.push", "agents push to branches of people unasked", func(p Policy) (string, int) {
		return string(p.Pulls.Push), leniency(p.Pulls.Push)
	}),
	"pulls.label": changed("pulls.label", "another label has agents push to a branch of people",
		func(p Policy) string { return p.Pulls.Label }),
	"issues.triage": lower("issues.triage", "agents are told of more issues, which strangers may write", func(p Policy) (string, int) {
		return p.Issues.Triage, slices.Index([]string{"off", "labelled", "all"}, p.Issues.Triage)
	}),
	"issues.label": changed("issues.label", "another label has agents work on an issue",
		func(p Policy) string { return p.Issues.Label }),
	"issues.answer": lower("issues.answer", "more is said and closed at the code host", func(p Policy) (string, int) {
		if p.Issues.Answer {
			return "true", 1
		}
		return "false", 0
	}),
	"issues.webhook_ref": changed("issues.webhook_ref", "issues are handed to another webhook",
		func(p Policy) string { return p.Issues.WebhookRef }),
	"issues.handoff": lower("issues.handoff", "issues are handed to a webhook unasked", func(p Policy) (string, int) {
		return p.Issues.Handoff, slices.Index([]string{"manual", "auto"}, p.Issues.Handoff)
	}),
	"knowledge.keep": lower("knowledge.keep", "agents are had propose texts of pages unasked", func(p Policy) (string, int) {
		return p.Knowledge.Keep, slices.Index([]string{"off", "auto"}, p.Knowledge.Keep)
	}),
	"budget.task_usd": greater("budget.task_usd", func(p Policy) *float64 { return p.Budget.TaskUSD }),
	"budget.run_usd":  greater("budget.run_usd", func(p Policy) *float64 { return p.Budget.RunUSD }),
	"instructions":    changed("instructions", "every later agent is told something else", func(p Policy) string { return p.Instructions }),

	"mcp_servers.*.url": func(was, would Policy) []Weakening {
		added := func(name string) []Weakening {
			return []Weakening{{Field: "mcp_servers." + name, Was: show(""), Would: show(would.MCPServers[name].URL),
				Why: "later agents reach one server more"}}
		}
		return servers("url", added, func(m MCPServer) string { return m.URL })(was, would)
	},
	"mcp_servers.*.transport": servers("transport", nil, func(m MCPServer) string { return string(m.Transport) }),
	"mcp_servers.*.token_ref": servers("token_ref", nil, func(m MCPServer) string { return m.TokenRef }),
}

// Weaker names the fields that would be weaker, or tell agents something else,
// if would took the place of was, sorted by name.
func Weaker(was, would Policy) (out []Weakening) {
	for _, all := range []map[string]judge{judges, prepareJudges} {
		for _, field := range slices.Sorted(maps.Keys(all)) {
			out = append(out, all[field](was, would)...)
		}
	}
	slices.SortStableFunc(out, func(a, b Weakening) int { return strings.Compare(a.Field, b.Field) })
	return out
}

// leniency orders what is left to agents: the more, the higher.
func leniency(l Leave) int { return slices.Index([]Leave{"never", "ask", "auto"}, l) }

// isolationRank orders the levels of isolation. What a file does not demand by
// a name that is known here is above none, which is agents held by nothing.
func isolationRank(level string) int {
	switch level {
	case "none":
		return 0
	case "landlock":
		return 2
	case "bubblewrap":
		return 3
	}
	return 1
}

func changed(field, why string, of func(Policy) string) judge {
	return func(was, would Policy) []Weakening {
		a, b := of(was), of(would)
		if a == b {
			return nil
		}
		return []Weakening{{Field: field, Was: show(a), Would: show(b), Why: why}}
	}
}

// lower judges a field whose values have an order; a greater rank is weaker.
func lower(field, why string, of func(Policy) (string, int)) judge {
	return func(was, would Policy) []Weakening {
		a, from := of(was)
		b, to := of(would)
		if to <= from {
			return nil
		}
		return []Weakening{{Field: field, Was: show(a), Would: show(b), Why: why}}
	}
}

func greater(field string, of func(Policy) *float64) judge {
	return func(was, would Policy) []Weakening {
		a, b := of(was), of(would)
		if a == nil || b != nil && *b <= *a {
			return nil
		}
		return []Weakening{{Field: field, Was: dollars(a), Would: dollars(b), Why: "models may cost more"}}
	}
}

// servers judges a field of the servers that are in both; added judges those
// that come in.
func servers(field string, added func(name string) []Weakening, of func(MCPServer) string) judge {
	return func(was, would Policy) (out []Weakening) {
		for _, name := range slices.Sorted(maps.Keys(would.MCPServers)) {
			before, known := was.MCPServers[name]
			switch a, b := of(before), of(would.MCPServers[name]); {
			case !known && added != nil:
				out = append(out, added(name)...)
			case known && a != b:
				out = append(out, Weakening{Field: "mcp_servers." + name + "." + field, Was: show(a), Would: show(b),
					Why: "later agents are sent somewhere else, or with another secret"})
			}
		}
		return out
	}
}

func dollars(usd *float64) string {
	if usd == nil {
		return "no limit"
	}
	return strconv.FormatFloat(*usd, 'f', -1, 64) + " US dollars"
}

// maxShown is how many characters of a value are shown.
const maxShown = 200

// show quotes what somebody wrote into a file.
func show(s string) string {
	if s == "" {
		return "nothing"
	}
	if r := []rune(strings.ToValidUTF8(s, "\uFFFD")); len(r) > maxShown {
		s = string(r[:maxShown]) + "…"
	}
	return strconv.Quote(s)
}
