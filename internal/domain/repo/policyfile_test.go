package repo

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

func TestParsePolicy(t *testing.T) {
	t.Parallel()
	with := func(change func(*Policy)) Policy {
		p := DefaultPolicy()
		change(&p)
		return p
	}
	taskUSD := 2.5
	for name, c := range map[string]struct {
		text string
		want Policy
		says string // of the first message; empty: the file is valid
	}{
		"empty":       {"", DefaultPolicy(), ""},
		"a comment":   {"# nothing\n", DefaultPolicy(), ""},
		"the version": {"version: 1\n", DefaultPolicy(), ""},
		"one key":     {"checks: {command: make check}\n", with(func(p *Policy) { p.Checks.Command = "make check" }), ""},
		"all of it": {"version: 1\nagent: {template: t, isolation: landlock}\nchecks: {command: c, timeout: 90m, missing_after: 2h}\nmerge: {mode: auto, method: squash, delete_branch: false, queue: batch, batch: 3, grace: 10}\napprovals: {carry: never}\nreview: {mode: off, template: r, min_severity: nit, block: never}\nconflicts: stack\npulls: {watch: all, label: l, push: auto}\ninstructions: i\nissues: {triage: all, label: x, answer: false, webhook_ref: h, handoff: auto}\nbudget: {task_usd: 2.5}\ncheckout: {submodules: false, lfs: false, depth: 3}\nprepare: {command: make tools, inputs: [go.sum], network: [\"*.example.com\"], secrets: [A], timeout: 5m}\n", Policy{
			Version: 1, Agent: AgentPolicy{Template: "t", Isolation: "landlock"},
			Checks: CheckPolicy{Command: "c", Timeout: "90m", Missing: "2h"}, Checkout: CheckoutPolicy{Depth: 3},
			Prepare: PreparePolicy{Command: "make tools", Inputs: []string{"go.sum"}, Network: []string{"*.example.com"},
				Secrets: []string{"A"}, Timeout: "5m"},
			Merge: MergePolicy{Mode: "auto", Method: "squash", DeleteBranch: false, OnCancel: "close", Queue: "batch", Batch: 3,
				Grace: 10},
			Approvals: ApprovalPolicy{Carry: "never"}, Review: ReviewPolicy{Mode: "off", Template: "r", MinSeverity: "nit", Block: "never"},
			Conflicts: "stack", Pulls: PullPolicy{Watch: "all", Label: "l", Push: "auto"}, Instructions: "i",
			Issues:    IssuePolicy{Triage: "all", Label: "x", Answer: false, WebhookRef: "h", Handoff: "auto"},
			Knowledge: KnowledgePolicy{Keep: "auto"}, Budget: BudgetPolicy{TaskUSD: &taskUSD}}, ""},
		"a budget below 0":  {"budget: {run_usd: -1}\n", Policy{}, "budget.run_usd must be between 0 and 100000"},
		"a section of null": {"merge:\n", DefaultPolicy(), ""},
		"an unknown key":    {"version: 1\nmerge: {moode: auto}\n", Policy{}, "line 2: there is no field moode"},
		"another version":   {"version: 2\n", Policy{}, "version must be 1"},
		"other conflicts":   {"conflicts: fight\n", Policy{}, "conflicts must be one of hold, stack, ignore"},
		"another mode":      {"merge: {mode: yolo}\n", Policy{}, "merge.mode must be one of ask, auto, never"},
		"another queue":     {"merge: {queue: train}\n", Policy{}, "merge.queue must be one of off, batch"},
		"no batch":          {"merge: {batch: 0}\n", Policy{}, "merge.batch must be between 1 and 20"},
		"another carry":     {"approvals: {carry: always}\n", Policy{}, "approvals.carry must be one of never, rebase"},
		"another review":    {"review: {mode: maybe}\n", Policy{}, "review.mode must be one of auto, on_request, off"},
		"other issues":      {"issues: {triage: some}\n", Policy{}, "issues.triage must be one of off, labelled, all"},
		"kept by whom":      {"knowledge: {keep: maybe}\n", Policy{}, "knowledge.keep must be one of auto, off"},
		"kept by people":    {"knowledge: {keep: off}\n", with(func(p *Policy) { p.Knowledge.Keep = "off" }), ""},
		"another handoff":   {"issues: {handoff: never}\n", Policy{}, "issues.handoff must be one of manual, auto"},
		"handed to nobody":  {"issues: {handoff: auto}\n", Policy{}, "issues.webhook_ref must name a webhook"},
		"no label":          {"issues: {label: \"\"}\n", Policy{}, "issues.label must have 1 to 35 characters"},
		"another severity":  {"review: {min_severity: bad}\n", Policy{}, "review.min_severity"},
		"another block":     {"review: {block: nit}\n", Policy{}, "review.block"},
		"another push":      {"pulls: {push: yes}\n", Policy{}, "pulls.push must be one of ask, auto, never"},
		"another method":    {"merge: {method: rebase}\n", Policy{}, "merge.method"},
		"another isolation": {"agent: {isolation: prayer}\n", Policy{}, "agent.isolation"},
		"no template":       {"agent: {template: ''}\n", Policy{}, "agent.template must not be empty"},
		"one of checkout":   {"checkout: {depth: 1}\n", with(func(p *Policy) { p.Checkout.Depth = 1 }), ""},
		"no depth":          {"checkout: {depth: -1}\n", Policy{}, "checkout.depth must be between 0 and 1000000"},
		"lfs of what":       {"checkout: {lfs: some}\n", Policy{}, "line 1: a text `some` cannot stand here"},
		"deep submodules":   {"checkout: {submodules: {depth: 1}}\n", Policy{}, "line 1: a mapping cannot stand here"},
		"prepared":          {"prepare: {command: x, network: []}\n", with(func(p *Policy) { p.Prepare.Command = "x" }), ""},
		"prepared long":     {"prepare: {command: x, timeout: 2h}\n", Policy{}, "prepare.timeout must be a duration of at most 1h0m0s"},
		"prepared by none":  {"prepare: {secrets: [A]}\n", Policy{}, "prepare.secrets is of no use without prepare.command"},
		"an address":        {"prepare: {command: x, network: [10.0.0.1]}\n", Policy{}, "prepare.network: each must be a host"},
		"one with a port":   {"prepare: {command: x, network: [\"[::1]:80\"]}\n", Policy{}, "prepare.network: each must be a host"},
		"all hosts":         {"prepare: {command: x, network: [\"*\"]}\n", Policy{}, "prepare.network: each must be a host"},
		"an input outside":  {"prepare: {command: x, inputs: [../x]}\n", Policy{}, "prepare.inputs: each must be a path"},
		"no such name":      {"prepare: {command: x, secrets: [a-b]}\n", Policy{}, "prepare.secrets: each must be the name"},
		"no duration":       {"checks: {timeout: soon}\n", Policy{}, "checks.timeout"},
		"a negative one":    {"checks: {timeout: -1m}\n", Policy{}, "checks.timeout"},
		"too long a one":    {"checks: {timeout: 3h}\n", Policy{}, "checks.timeout"},
		"U+0000":            {`checks: {command: "a\0b"}`, Policy{}, "checks.command must not hold"},
		"much to say": {"instructions: " + strings.Repeat("ü", maxInstructions),
			with(func(p *Policy) { p.Instructions = strings.Repeat("ü", maxInstructions) }), ""},
		"too much to say":  {"instructions: " + strings.Repeat("ü", maxInstructions+1), Policy{}, "instructions must have at most"},
		"too large":        {"#" + strings.Repeat("x", maxPolicyBytes), Policy{}, "larger than"},
		"two documents":    {"version: 1\n---\nversion: 1\n", Policy{}, "more than one document"},
		"a list":           {"- 1\n", Policy{}, "line 1: a list cannot stand here"},
		"text as a number": {"version: one\n", Policy{}, "line 1: a text `one` cannot stand here"},
		"mcp servers":      {"mcp_servers:\n  tracker:\n    url: https://mcp.example.com/v1\n    transport: http\n    token_ref: MCP_TRACKER_TOKEN\n", withServer(), ""},
		"mcp over http": {"mcp_servers:\n  tracker: {url: \"http://mcp.example.com\", transport: http, token_ref: T}\n", Policy{},
			"https"},
		"broken":   {"version: [1\n", Policy{}, "line"},
		"not text": {"version: \xff\xfe\n", Policy{}, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			p, msgs := ParsePolicy([]byte(c.text))
			if c.says == "" {
				if msgs != nil || !reflect.DeepEqual(p, c.want) {
					t.Errorf("%+v, %q; want %+v", p, msgs, c.want)
				}
				return
			}
			if len(msgs) == 0 || !strings.Contains(msgs[0], c.says) || !reflect.DeepEqual(p, DefaultPolicy()) {
				t.Errorf("%q does not say %q, or the defaults are not in force: %+v", msgs, c.says, p)
			}
		})
	}
}

func withServer() Policy {
	p := DefaultPolicy()
	p.MCPServers = map[string]MCPServer{"tracker": {URL: "https://mcp.example.com/v1", Transport: "http", TokenRef: "MCP_TRACKER_TOKEN"}}
	return p
}

// Whatever is pushed, what comes out is the defaults with a reason, or a policy
// that holds every limit, can be stored, and is read the same when written again.
func FuzzParsePolicy(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		p, msgs := ParsePolicy(text)
		if msgs != nil {
			if len(msgs) == 0 || !reflect.DeepEqual(p, DefaultPolicy()) {
				t.Fatalf("refused with %q, and yet %+v", msgs, p)
			}
			return
		}
		if d := p.CheckTimeout(); p.Version != 1 || d <= 0 || d > maxCheckTime || utf8.RuneCountInString(p.Instructions) > maxInstructions {
			t.Fatalf("beyond the limits: %+v", p)
		}
		for _, s := range []string{p.Agent.Template, p.Checks.Command, p.Instructions} {
			if s != storable(s) {
				t.Fatalf("cannot be stored: %q", s)
			}
		}
		again, err := yaml.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > maxPolicyBytes {
			return
		}
		if q, msgs := ParsePolicy(again); msgs != nil || !reflect.DeepEqual(q, p) {
			t.Fatalf("%+v is read back as %+v: %q", p, q, msgs)
		}
	})
}

// TestPoliciesAreRemembered holds that a remembered policy is that of its text,
// however many others have been asked for.
func TestPoliciesAreRemembered(t *testing.T) {
	t.Parallel()
	var c policies
	for range 2 {
		for i := range maxParsed + 10 {
			text := fmt.Sprintf("instructions: the %dth", i)
			for range 2 {
				if got := c.of(policyKey{text: text}).Instructions; got != text[len("instructions: "):] {
					t.Fatalf("%q for %q", got, text)
				}
			}
		}
	}
	if len(c.known) > maxParsed {
		t.Errorf("%d are remembered", len(c.known))
	}
}

func BenchmarkPolicyOfARow(b *testing.B) {
	text := "version: 1\nagent: {template: default, isolation: landlock}\nchecks: {command: make check, timeout: 15m}\nmerge: {mode: auto, method: squash}\n" +
		"budget: {task_usd: 5, run_usd: 2}\nmcp_servers:\n  docs: {url: 'https://docs.example.com/mcp', transport: http, token_ref: DOCS}\ninstructions: |\n" + strings.Repeat("  Keep it short, and test what you change.\n", 40)
	r := row{PolicyYML: &text}
	if _, wrong := ParsePolicy([]byte(text)); wrong != nil {
		b.Fatal(wrong)
	}
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			_ = r.policy()
		}
	})
	b.Run("parsed", func(b *testing.B) {
		for b.Loop() {
			_, _ = ParsePolicy([]byte(text))
		}
	})
}

// A file that says nothing of it has the grace of the server.
func TestGraceOfTheServer(t *testing.T) {
	SetGrace(10)
	defer SetGrace(0)
	for text, want := range map[string]int{"": 10, "merge: {mode: auto}\n": 10, "merge: {grace: 0}\n": 0, "merge: {grace: 30}\n": 30} {
		if p, msgs := ParsePolicy([]byte(text)); p.Merge.Grace != want || msgs != nil {
			t.Errorf("%q: %d seconds, want %d; %v", text, p.Merge.Grace, want, msgs)
		}
	}
}
