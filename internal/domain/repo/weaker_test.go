package repo

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// leaves are the dotted names of the fields of a policy file; * is any name.
func leaves(t reflect.Type, at string) (out []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		name = at + name
		switch {
		case f.Type.Kind() == reflect.Struct:
			out = append(out, leaves(f.Type, name+".")...)
		case f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Struct:
			out = append(out, leaves(f.Type.Elem(), name+".*.")...)
		default:
			out = append(out, name)
		}
	}
	return out
}

// Whoever adds a field to the policy file says here what a change of it means.
func TestEveryFieldIsJudged(t *testing.T) {
	t.Parallel()
	all := leaves(reflect.TypeFor[Policy](), "")
	judged := maps.Clone(judges)
	maps.Copy(judged, prepareJudges)
	for _, field := range all {
		if judged[field] == nil {
			t.Errorf("nobody judges a change of %s: add it to judges, and to the cases of TestWeaker", field)
		}
		if _, ok := changes[field]; !ok {
			t.Errorf("no case of TestWeaker changes %s", field)
		}
	}
	for field := range judged {
		if !slices.Contains(all, field) {
			t.Errorf("%s is judged, and no field of a policy file", field)
		}
	}
}

func usd(f float64) *float64 { return &f }

// base is a policy file that has something to say everywhere.
func base() Policy {
	p := DefaultPolicy()
	p.Agent.Isolation = "landlock"
	p.Checks.Command = "make check"
	p.Budget = BudgetPolicy{TaskUSD: usd(5), RunUSD: usd(2)}
	p.Approvals.Carry = "never"
	p.Merge.Queue = "batch"
	p.Review.Mode = "on_request"
	p.Conflicts = "stack"
	p.Issues.Answer = false
	p.Instructions = "Be careful."
	p.MCPServers = map[string]MCPServer{"tracker": {URL: "https://t.example.com", Transport: "http", TokenRef: "T"}}
	p.Knowledge.Keep = "off"
	p.Prepare = PreparePolicy{Command: "make tools", Network: []string{"t.example.com"}, Secrets: []string{"A"}, Timeout: "10m"}
	return p
}

type verdict struct {
	change func(*Policy)
	names  string // what it names, in order; empty: it weakens nothing
}

func server(change func(*MCPServer)) func(*Policy) {
	return func(p *Policy) {
		m := p.MCPServers["tracker"]
		change(&m)
		p.MCPServers = map[string]MCPServer{"tracker": m}
	}
}

// changes are changes of each field of base, for the better and the worse.
var changes = map[string][]verdict{
	"version":         {{func(p *Policy) { p.Version = 2 }, ""}},
	"merge.method":    {{func(p *Policy) { p.Merge.Method = "squash" }, ""}},
	"merge.on_cancel": {{func(p *Policy) { p.Merge.OnCancel = "keep" }, ""}},
	"merge.queue": {
		{func(p *Policy) { p.Merge.Queue = "off" }, "merge.queue"},
		{func(p *Policy) { p.Merge.Queue = "batch" }, ""},
	},
	"merge.grace":         {{func(p *Policy) { p.Merge.Grace = 10 }, ""}},
	"merge.batch":         {{func(p *Policy) { p.Merge.Batch = 9 }, ""}},
	"merge.delete_branch": {{func(p *Policy) { p.Merge.DeleteBranch = false }, ""}},
	"agent.template":      {{func(p *Policy) { p.Agent.Template = "other" }, "agent.template"}},
	"agent.isolation": {
		{func(p *Policy) { p.Agent.Isolation = "none" }, "agent.isolation"},
		{func(p *Policy) { p.Agent.Isolation = "" }, "agent.isolation"},
		{func(p *Policy) { p.Agent.Isolation = "bubblewrap" }, ""},
	},
	"checks.command": {
		{func(p *Policy) { p.Checks.Command = "true" }, "checks.command"},
		{func(p *Policy) { p.Checks.Command = "" }, "checks.command"},
	},
	"checkout.submodules": {{func(p *Policy) { p.Checkout.Submodules = false }, ""}},
	"checkout.lfs":        {{func(p *Policy) { p.Checkout.LFS = false }, ""}},
	"checkout.depth":      {{func(p *Policy) { p.Checkout.Depth = 1 }, ""}},
	"prepare.inputs":      {{func(p *Policy) { p.Prepare.Inputs = []string{"go.sum"} }, ""}},
	"prepare.command": {
		{func(p *Policy) { p.Prepare.Command = "curl evil" }, "prepare.command"},
		{func(p *Policy) { p.Prepare.Command = "" }, ""},
	},
	"prepare.network": {
		{func(p *Policy) { p.Prepare.Network = []string{"t.example.com", "other.example.com"} }, "prepare.network"},
		{func(p *Policy) { p.Prepare.Network = nil }, ""},
	},
	"prepare.secrets": {
		{func(p *Policy) { p.Prepare.Secrets = []string{"A", "B"} }, "prepare.secrets"},
		{func(p *Policy) { p.Prepare.Secrets = nil }, "prepare.secrets"},
	},
	"prepare.timeout": {
		{func(p *Policy) { p.Prepare.Timeout = "30m" }, "prepare.timeout"},
		{func(p *Policy) { p.Prepare.Timeout = "1m" }, ""},
	},
	"checks.missing_after": {
		{func(p *Policy) { p.Checks.Missing = "2h" }, ""},
	},
	"checks.timeout": {
		{func(p *Policy) { p.Checks.Timeout = "2h" }, "checks.timeout"},
		{func(p *Policy) { p.Checks.Timeout = "600s" }, ""},
		{func(p *Policy) { p.Checks.Timeout = "1m" }, ""},
	},
	"merge.mode": {
		{func(p *Policy) { p.Merge.Mode = "auto" }, "merge.mode"},
		{func(p *Policy) { p.Merge.Mode = "never" }, ""},
	},
	"pulls.watch": {
		{func(p *Policy) { p.Pulls.Watch = "all" }, "pulls.watch"},
		{func(p *Policy) { p.Pulls.Watch = "none" }, ""},
	},
	"pulls.push": {
		{func(p *Policy) { p.Pulls.Push = "auto" }, "pulls.push"},
		{func(p *Policy) { p.Pulls.Push = "never" }, ""},
	},
	"pulls.label": {
		{func(p *Policy) { p.Pulls.Label = "other" }, "pulls.label"},
	},
	"approvals.carry": {
		{func(p *Policy) { p.Approvals.Carry = "rebase" }, "approvals.carry"},
	},
	"review.mode": {
		{func(p *Policy) { p.Review.Mode = "auto" }, ""},
		{func(p *Policy) { p.Review.Mode = "off" }, "review.mode"},
	},
	"review.template": {{func(p *Policy) { p.Review.Template = "lenient" }, "review.template"}},
	"review.min_severity": {
		{func(p *Policy) { p.Review.MinSeverity = "high" }, "review.min_severity"},
		{func(p *Policy) { p.Review.MinSeverity = "nit" }, ""},
	},
	"review.block": {
		{func(p *Policy) { p.Review.Block = "never" }, "review.block"},
		{func(p *Policy) { p.Review.Block = "low" }, ""},
	},
	"conflicts": {
		{func(p *Policy) { p.Conflicts = "ignore" }, "conflicts"},
		{func(p *Policy) { p.Conflicts = "hold" }, ""},
	},
	"issues.triage": {
		{func(p *Policy) { p.Issues.Triage = "all" }, "issues.triage"},
		{func(p *Policy) { p.Issues.Triage = "off" }, ""},
	},
	"issues.label":       {{func(p *Policy) { p.Issues.Label = "other" }, "issues.label"}},
	"issues.webhook_ref": {{func(p *Policy) { p.Issues.WebhookRef = "other" }, "issues.webhook_ref"}},
	"knowledge.keep": {
		{func(p *Policy) { p.Knowledge.Keep = "auto" }, "knowledge.keep"},
		{func(p *Policy) { p.Knowledge.Keep = "off" }, ""},
	},
	"issues.handoff": {
		{func(p *Policy) { p.Issues.Handoff = "auto" }, "issues.handoff"},
		{func(p *Policy) { p.Issues.Handoff = "manual" }, ""},
	},
	"issues.answer": {
		{func(p *Policy) { p.Issues.Answer = true }, "issues.answer"},
		{func(p *Policy) { p.Issues.Answer = false }, ""},
	},
	"budget.task_usd": {
		{func(p *Policy) { p.Budget.TaskUSD = nil }, "budget.task_usd"},
		{func(p *Policy) { p.Budget.TaskUSD = usd(5.01) }, "budget.task_usd"},
		{func(p *Policy) { p.Budget.TaskUSD = usd(0) }, ""},
	},
	"budget.run_usd": {
		{func(p *Policy) { p.Budget.RunUSD = nil }, "budget.run_usd"},
		{func(p *Policy) { p.Budget.RunUSD = usd(3) }, "budget.run_usd"},
		{func(p *Policy) { p.Budget.RunUSD = usd(1) }, ""},
	},
	"instructions": {
		{func(p *Policy) { p.Instructions = "Push to main." }, "instructions"},
		{func(p *Policy) { p.Instructions = "" }, "instructions"},
	},
	"mcp_servers.*.url": {
		{func(p *Policy) { p.MCPServers = nil }, ""},
		{server(func(m *MCPServer) { m.URL = "https://evil.example" }), "mcp_servers.tracker.url"},
		{func(p *Policy) {
			p.MCPServers = maps.Clone(p.MCPServers)
			p.MCPServers["more"] = MCPServer{URL: "https://evil.example", Transport: "sse", TokenRef: "T"}
		}, "mcp_servers.more"},
	},
	"mcp_servers.*.transport": {{server(func(m *MCPServer) { m.Transport = "sse" }), "mcp_servers.tracker.transport"}},
	"mcp_servers.*.token_ref": {{server(func(m *MCPServer) { m.TokenRef = "DEPLOY" }), "mcp_servers.tracker.token_ref"}},
}

func TestWeaker(t *testing.T) {
	t.Parallel()
	if got := Weaker(base(), base()); got != nil {
		t.Errorf("no change weakens %v", got)
	}
	for field, list := range changes {
		for i, c := range list {
			would := base()
			c.change(&would)
			var names []string
			for _, w := range Weaker(base(), would) {
				names = append(names, w.Field)
				if w.Was == "" || w.Would == "" || w.Was == w.Would || w.Why == "" {
					t.Errorf("%s %d: %+v does not say what becomes of it", field, i, w)
				}
			}
			if got := strings.Join(names, " "); got != c.names {
				t.Errorf("%s %d: weaker are %q, want %q", field, i, got, c.names)
			}
		}
	}
	// A file that is gone, against the defaults.
	var names []string
	for _, w := range Weaker(base(), DefaultPolicy()) {
		names = append(names, w.Field)
	}
	if got, want := strings.Join(names, " "), "agent.isolation approvals.carry budget.run_usd budget.task_usd checks.command instructions issues.answer knowledge.keep merge.queue prepare.secrets"; got != want {
		t.Errorf("without the file %q are weaker, want %q", got, want)
	}
	long := DefaultPolicy()
	long.Instructions = strings.Repeat("ü", maxInstructions) + "\x1b[2J"
	if w := Weaker(DefaultPolicy(), long); len(w) != 1 || len([]rune(w[0].Would)) > maxShown+3 || strings.ContainsRune(w[0].Would, 0x1b) {
		t.Errorf("a long text is shown as %v", w)
	}
}
