package repo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"yardmaster/internal/api/op"
	"yardmaster/internal/lazy"
	"yardmaster/internal/protocol"
)

// PolicyPath is where a repository keeps its policy file.
const PolicyPath = ".svc/policy.yml"

// Limits of the policy file.
const (
	maxPolicyBytes  = 64 << 10
	maxInstructions = 8000 // characters
	maxCheckTime    = 2 * time.Hour
	maxMissing      = 7 * 24 * time.Hour
	maxGrace        = 600     // seconds
	maxBudget       = 100_000 // US dollars
	maxLabel        = 35      // characters; GitHub takes 50, and an answer adds to it
	maxWebhookRef   = 100     // characters
	maxBatch        = 20      // heads of one batch of a merge queue
)

// Policy is a parsed policy file with every default filled in. The zero file,
// and a repository without one, give the defaults.
type Policy struct {
	_       struct{}    `doc:"A policy file with every default filled in." schema:"Policy"`
	Version int         `json:"version" yaml:"version" doc:"of the format: 1"`
	Agent   AgentPolicy `json:"agent" yaml:"agent" doc:"how agents run"`
	Checks  CheckPolicy `json:"checks" yaml:"checks" doc:"the repository's own test command"`
	// Checkout says what agents and checks find in a checkout.
	Checkout CheckoutPolicy `json:"checkout" yaml:"checkout" doc:"what agents and checks find in a checkout"`
	// Prepare makes the environment of agents and checks ready.
	Prepare PreparePolicy `json:"prepare" yaml:"prepare" doc:"the script that makes the environment of agents and checks ready"`
	Merge   MergePolicy   `json:"merge" yaml:"merge" doc:"what happens to a pull request whose checks passed"`
	Pulls   PullPolicy    `json:"pulls" yaml:"pulls" doc:"which pull requests of people are looked after"`
	// Approvals says when a decision about a head holds for another one.
	Approvals ApprovalPolicy `json:"approvals" yaml:"approvals" doc:"when a decision about a head holds for another one"`
	// Review says how agents review pull requests.
	Review ReviewPolicy `json:"review" yaml:"review" doc:"how agents review pull requests"`
	// Issues says which issues of the code host become asks.
	Issues IssuePolicy `json:"issues" yaml:"issues" doc:"which issues of the code host become asks"`
	// Knowledge says who keeps the pages of the knowledge base.
	Knowledge KnowledgePolicy `json:"knowledge" yaml:"knowledge" doc:"who keeps the pages of the knowledge base"`
	// Budget limits what models may cost.
	Budget BudgetPolicy `json:"budget" yaml:"budget" doc:"what models may cost"`
	// Conflicts says what becomes of a task that would conflict with open work:
	// it waits (hold), begins on top of it (stack), or goes ahead (ignore).
	Conflicts string `json:"conflicts" yaml:"conflicts" enum:"hold,stack,ignore" doc:"a task that would conflict with open work waits, begins on top of it, or goes ahead"`
	// Instructions are handed to every agent that works on the repository.
	Instructions string `json:"instructions" yaml:"instructions" example:"Run the tests before you push." doc:"text that is given to every agent that works on the repository"`
	// MCPServers are what agents may use besides their own tools, by name.
	MCPServers map[string]MCPServer `json:"mcp_servers,omitempty" yaml:"mcp_servers" doc:"servers that agents may use besides their own tools, by name"`
}

// AgentPolicy says how agents run.
type AgentPolicy struct {
	_         struct{}                `doc:"How agents run." schema:"AgentPolicy"`
	Template  string                  `json:"template" yaml:"template" example:"default" doc:"agent template of tasks that name none"`                     // used when a task names none
	Isolation protocol.LeastIsolation `json:"isolation" yaml:"isolation" example:"best" doc:"the least that a box must offer; best is any level but none"` // the least a box must offer: none, best (any but none), landlock or bubblewrap
}

// CheckPolicy is the repository's own test command, run on a box for each new
// head of a pull request. Without a command nothing is checked on a box.
type CheckPolicy struct {
	_       struct{} `doc:"The repository's own test command, run on a box for each new head of a pull request." schema:"CheckPolicy"`
	Command string   `json:"command" yaml:"command" example:"make test" doc:"run by sh -c in the checkout; empty: nothing is checked"` // run by sh -c in the checkout
	Timeout string   `json:"timeout" yaml:"timeout" example:"10m" doc:"how long it may take, as a duration"`                           // a duration such as 10m
	// Missing is how long a check that the code host requires may take to report first.
	Missing string `json:"missing_after" yaml:"missing_after" example:"1h" doc:"how long a check that the code host requires may take until it first reports, as a duration; then a person is asked"`
}

// Leave is whether agents do a thing by themselves, ask a person first, or never do it.
type Leave string

// Values lists all of them.
func (Leave) Values() []string { return []string{"ask", "auto", "never"} }

// MergePolicy says what happens to a pull request whose checks passed.
type MergePolicy struct {
	_            struct{} `doc:"What happens to a pull request whose checks passed." schema:"MergePolicy"`
	Mode         Leave    `json:"mode" yaml:"mode" doc:"ask: a person approves the head first; auto: it is merged; never: it is left to people"` // ask: a person approves the head; auto: merge; never
	Method       string   `json:"method" yaml:"method" enum:"merge,squash" doc:"how it is merged"`                                               // merge or squash
	DeleteBranch bool     `json:"delete_branch" yaml:"delete_branch" doc:"whether the branch goes once it is merged"`
	Queue        string   `json:"queue" yaml:"queue" enum:"off,batch" doc:"batch: approved heads are checked together with what the base has become, and merged in order; off: each is merged at once. A merge queue of the code host goes before"`
	Batch        int      `json:"batch" yaml:"batch" example:"5" doc:"how many heads are checked together at most, 1 to 20"`
	Grace        int      `json:"grace" yaml:"grace" example:"60" doc:"seconds for which a merge waits that a person has approved, so that it can be taken back; 0 to 600"`
	OnCancel     string   `json:"on_cancel" yaml:"on_cancel" enum:"close,keep" doc:"close: a pull request is closed with its task; keep: it stays open for people"`
}

// PullPolicy says which pull requests of people are looked after as those of agents
// are: kept green, kept mergeable, and asked about.
type PullPolicy struct {
	_     struct{} `doc:"Which pull requests of people are looked after as those of agents are." schema:"PullPolicy"`
	Watch string   `json:"watch" yaml:"watch" enum:"none,labelled,all" doc:"labelled: those with the label; all: those of people, and those with the label"`
	Label string   `json:"label" yaml:"label" example:"yardmaster" doc:"the label that has one watched"`
	Push  Leave    `json:"push" yaml:"push" doc:"what agents do with their work for a branch of a person: ask before they push it, push it, or never"`
}

// Watches tells whether a pull request that the server did not open is looked after.
// Pull requests of programs such as Dependabot are shown only, unless they have the
// label.
func (p Policy) Watches(bot bool, labels []string) bool {
	return p.Pulls.Watch == "all" && !bot || p.Pulls.Watch != "none" && slices.Contains(labels, p.Pulls.Label)
}

// ApprovalPolicy says when a decision about a head holds for another one.
type ApprovalPolicy struct {
	_     struct{} `doc:"When a decision about a head of a pull request holds for another head." schema:"ApprovalPolicy"`
	Carry string   `json:"carry" yaml:"carry" enum:"never,rebase" example:"rebase" doc:"rebase: it holds for a new head that changes the same files in the same way, as after a rebase; never: each head is asked about"`
}

// ReviewPolicy says how agents review pull requests.
type ReviewPolicy struct {
	_           struct{} `doc:"How agents review pull requests." schema:"ReviewPolicy"`
	Mode        string   `json:"mode" yaml:"mode" enum:"auto,on_request,off" doc:"auto: pull requests that agents look after are reviewed by themselves, others on request; on_request: all on request; off: none"`
	Template    string   `json:"template" yaml:"template" example:"careful" doc:"agent template of reviews; empty: that of the work"`
	MinSeverity Severity `json:"min_severity" yaml:"min_severity" example:"medium" doc:"the least that a finding must be to be posted"`
	Block       string   `json:"block" yaml:"block" enum:"never,critical,high,medium,low" example:"high" doc:"a finding of at least this holds the merge until it is answered, fixed or dismissed; never: none does"`
}

// IssuePolicy says which issues of the code host become asks.
type IssuePolicy struct {
	_          struct{} `doc:"Which issues of the code host become asks." schema:"IssuePolicy"`
	Triage     string   `json:"triage" yaml:"triage" enum:"off,labelled,all" doc:"labelled: those with the label; all: each that is opened; those of programs never"`
	Label      string   `json:"label" yaml:"label" example:"yardmaster" doc:"the label that has an issue triaged"`
	Answer     bool     `json:"answer" yaml:"answer" doc:"whether a comment at the code host says what became of an issue, and a merge closes it"`
	WebhookRef string   `json:"webhook_ref" yaml:"webhook_ref" example:"" doc:"name of the webhook that issues are handed to; empty: none"`
	Handoff    string   `json:"handoff" yaml:"handoff" enum:"manual,auto" doc:"auto: an issue that triage would take goes to webhook_ref instead, if a person who may write to the repository stands behind it; manual: only if somebody hands it off"`
}

// Triages tells whether an open issue with these labels becomes an ask.
func (p Policy) Triages(labels []string) bool {
	return p.Issues.Triage == "all" || p.Issues.Triage == "labelled" && slices.Contains(labels, p.Issues.Label)
}

// HandsOff tells whether issues that a trusted person stands behind go to a webhook instead
// of triage.
func (p Policy) HandsOff() bool { return p.Issues.Handoff == "auto" }

// KnowledgePolicy says who keeps the pages of the knowledge base.
type KnowledgePolicy struct {
	_    struct{} `doc:"Who keeps the pages of the knowledge base." schema:"KnowledgePolicy"`
	Keep string   `json:"keep" yaml:"keep" enum:"auto,off" doc:"auto: once merges have changed files that pages were written from, an agent proposes what the pages should say; off: people do"`
}

// BudgetPolicy is in US dollars; null is no limit.
type BudgetPolicy struct {
	_       struct{} `doc:"Limits on what models may cost, in US dollars." schema:"BudgetPolicy"`
	TaskUSD *float64 `json:"task_usd" yaml:"task_usd" example:"5" doc:"for all tries of a task that names no budget; null: no limit"` // of all tries of a task that names no budget
	RunUSD  *float64 `json:"run_usd" yaml:"run_usd" example:"2" doc:"for one try; null: no limit"`                                    // of one try
}

// MCPServer is a server of the Model Context Protocol. Agents reach it through
// the box, which adds the token.
type MCPServer struct {
	_         struct{}           `doc:"A server of the Model Context Protocol. Agents reach it through the box, which adds the token." schema:"MCPServer"`
	URL       string             `json:"url" yaml:"url" format:"uri" example:"https://mcp.example.com/v1" doc:"an https address"`                     // https
	Transport protocol.Transport `json:"transport" yaml:"transport" doc:"how it is spoken to"`                                                        // http or sse
	TokenRef  string             `json:"token_ref" yaml:"token_ref" example:"MCP_TOKEN" doc:"name of the secret of the account that holds the token"` // name of the secret that holds the token
}

const maxMCPServers = 20

var (
	mcpName  = lazy.New(`^[a-z0-9][a-z0-9_-]{0,39}$`)
	tokenRef = lazy.New(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
)

func (m MCPServer) check(name string) (msgs []string) {
	u, err := url.Parse(m.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		msgs = append(msgs, "mcp_servers."+name+".url must be an https address without a user")
	}
	if m.Transport != "http" && m.Transport != "sse" {
		msgs = append(msgs, "mcp_servers."+name+".transport must be one of http, sse")
	}
	if !tokenRef.MatchString(m.TokenRef) {
		msgs = append(msgs, "mcp_servers."+name+".token_ref must be the name of a secret")
	}
	return msgs
}

// CheckTimeout is Checks.Timeout as a duration.
func (p Policy) CheckTimeout() time.Duration {
	d, err := time.ParseDuration(p.Checks.Timeout)
	if err != nil {
		return 10 * time.Minute
	}
	return d
}

// MissingAfter is Checks.Missing as a duration.
func (p Policy) MissingAfter() time.Duration {
	d, err := time.ParseDuration(p.Checks.Missing)
	if err != nil {
		return time.Hour
	}
	return d
}

// grace is merge.grace where no policy file says it, in seconds.
var grace atomic.Int64

// SetGrace says what merge.grace is where no policy file says it, in seconds: 0 unless a server
// calls it, once, before it serves.
func SetGrace(seconds int) { grace.Store(int64(seconds)) }

// DefaultPolicy is in force where no valid file says otherwise.
func DefaultPolicy() Policy {
	return Policy{
		Version:  1,
		Agent:    AgentPolicy{Template: "default", Isolation: "best"},
		Checks:   CheckPolicy{Timeout: "10m", Missing: "1h"},
		Checkout: CheckoutPolicy{Submodules: true, LFS: true},
		Prepare:  PreparePolicy{Timeout: "10m"},
		Merge: MergePolicy{Mode: "ask", Method: "merge", DeleteBranch: true, OnCancel: "close", Queue: "off", Batch: 5,
			Grace: int(grace.Load())},
		Pulls:     PullPolicy{Watch: "labelled", Label: "yardmaster", Push: "ask"},
		Approvals: ApprovalPolicy{Carry: "rebase"},
		Review:    ReviewPolicy{Mode: "auto", MinSeverity: "medium", Block: "high"},
		Issues:    IssuePolicy{Triage: "labelled", Label: "yardmaster", Answer: true, Handoff: "manual"},
		Knowledge: KnowledgePolicy{Keep: "auto"},
		Conflicts: "hold",
	}
}

// defaultsFor are in force where a policy file does not say otherwise. With the switch
// ai_first every pull request of a person is looked after, and every issue triaged.
func defaultsFor(aiFirst bool) Policy {
	p := DefaultPolicy()
	if aiFirst {
		p.Pulls.Watch, p.Issues.Triage = "all", "all"
	}
	return p
}

// What the YAML package says speaks of Go.
var (
	unknownField = lazy.New(`field (\S+) not found in type \S+`)
	strayValue   = lazy.New("cannot unmarshal (!!\\w+)( `.*`)? into \\S+$")
	yamlKinds    = strings.NewReplacer("!!str", "text", "!!seq", "list", "!!map", "mapping", "!!int", "number", "!!float", "number",
		"!!bool", "truth value")
)

// ParsePolicy reads a policy file strictly: unknown keys are errors. Each
// message names its line or its key.
func ParsePolicy(text []byte) (Policy, []string) { return parseOver(DefaultPolicy(), text) }

// parseOver is ParsePolicy with other defaults. DefaultPolicy is answered for a file that
// is not valid, whatever the defaults are.
func parseOver(defaults Policy, text []byte) (Policy, []string) {
	p := defaults
	if len(text) > maxPolicyBytes {
		return DefaultPolicy(), []string{fmt.Sprintf("the file is larger than %d bytes", maxPolicyBytes)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(&p)
	var types *yaml.TypeError
	switch {
	case errors.Is(err, io.EOF): // an empty file says nothing
		return defaults, nil
	case errors.As(err, &types):
		msgs := make([]string, len(types.Errors))
		for i, m := range types.Errors {
			m = unknownField.ReplaceAllString(m, "there is no field $1")
			m = strayValue.ReplaceAllString(m, "a $1$2 cannot stand here")
			msgs[i] = yamlKinds.Replace(m)
		}
		return DefaultPolicy(), msgs
	case err != nil:
		return DefaultPolicy(), []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return DefaultPolicy(), []string{"the file holds more than one document"}
	}
	if len(p.MCPServers) == 0 {
		p.MCPServers = nil
	}
	p.Prepare.tidy()
	if msgs := p.check(); msgs != nil {
		return DefaultPolicy(), msgs
	}
	return p, nil
}

// policies remembers what files say, by their text: every task, claim and
// budget asks for the policy of its repository, and hardly ever has that
// changed. Whoever gets one must not change what it points to.
type policies struct {
	mu    sync.Mutex
	known map[policyKey]Policy
}

// policyKey is the text of a file, and whether it is read for a repository with ai_first.
type policyKey struct {
	text    string
	aiFirst bool
}

var parsed policies

// maxParsed bounds how many are remembered; a file has at most maxPolicyBytes.
const maxParsed = 500

func (c *policies) of(k policyKey) Policy {
	c.mu.Lock()
	p, ok := c.known[k]
	c.mu.Unlock()
	if ok {
		return p
	}
	p, _ = parseOver(defaultsFor(k.aiFirst), []byte(k.text))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxParsed {
		c.known = map[policyKey]Policy{}
	}
	c.known[k] = p
	return p
}

// reviewBlocks are what may hold a merge, the least first.
var reviewBlocks = []string{"low", "medium", "high", "critical", "never"}

// Severity is how bad a finding is.
type Severity string

// Values lists all, the worst first.
func (Severity) Values() []string { return []string{"critical", "high", "medium", "low", "nit"} }

// Rank is the place of a severity, the worst being 0; below 0: there is no such one.
func (s Severity) Rank() int { return slices.Index(s.Values(), string(s)) }

// choices says which fields below v have a value that they may not have.
func choices(at string, v reflect.Value) (msgs []string) {
	for i := range v.NumField() {
		sf, f := v.Type().Field(i), v.Field(i)
		key, _, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		switch all := op.Values(sf); {
		case f.Kind() == reflect.Struct:
			msgs = append(msgs, choices(at+key+".", f)...)
		case f.Kind() == reflect.String && len(all) > 0 && !slices.Contains(all, f.String()):
			msgs = append(msgs, fmt.Sprintf("%s%s must be one of %s", at, key, strings.Join(all, ", ")))
		}
	}
	return msgs
}

func (p Policy) check() (msgs []string) {
	msgs = choices("", reflect.ValueOf(p))
	for key, v := range map[string]string{"agent.template": p.Agent.Template, "review.template": p.Review.Template,
		"checks.command": p.Checks.Command,
		"instructions":   p.Instructions, "issues.label": p.Issues.Label, "issues.webhook_ref": p.Issues.WebhookRef} {
		if strings.ContainsRune(v, 0) {
			msgs = append(msgs, key+" must not hold the character U+0000")
		}
	}
	if p.Version != 1 {
		msgs = append(msgs, "version must be 1")
	}
	if p.Agent.Template == "" {
		msgs = append(msgs, "agent.template must not be empty")
	}
	if n := len([]rune(p.Issues.Label)); n == 0 || n > maxLabel || strings.TrimSpace(p.Issues.Label) != p.Issues.Label {
		msgs = append(msgs, fmt.Sprintf("issues.label must have 1 to %d characters, and no blank at its ends", maxLabel))
	}
	if len([]rune(p.Issues.WebhookRef)) > maxWebhookRef {
		msgs = append(msgs, fmt.Sprintf("issues.webhook_ref must have at most %d characters", maxWebhookRef))
	}
	if p.Issues.Handoff == "auto" && p.Issues.WebhookRef == "" {
		msgs = append(msgs, "issues.webhook_ref must name a webhook, because issues.handoff is auto")
	}
	if p.Merge.Batch < 1 || p.Merge.Batch > maxBatch {
		msgs = append(msgs, fmt.Sprintf("merge.batch must be between 1 and %d", maxBatch))
	}
	if p.Merge.Grace < 0 || p.Merge.Grace > maxGrace {
		msgs = append(msgs, fmt.Sprintf("merge.grace must be between 0 and %d seconds", maxGrace))
	}
	if d, err := time.ParseDuration(p.Checks.Timeout); err != nil || d <= 0 || d > maxCheckTime {
		msgs = append(msgs, fmt.Sprintf("checks.timeout must be a duration of at most %s, such as 10m", maxCheckTime))
	}
	if d, err := time.ParseDuration(p.Checks.Missing); err != nil || d <= 0 || d > maxMissing {
		msgs = append(msgs, fmt.Sprintf("checks.missing_after must be a duration of at most %s, such as 1h", maxMissing))
	}
	for key, usd := range map[string]*float64{"budget.task_usd": p.Budget.TaskUSD, "budget.run_usd": p.Budget.RunUSD} {
		if usd != nil && !(*usd >= 0 && *usd <= maxBudget) {
			msgs = append(msgs, fmt.Sprintf("%s must be between 0 and %d", key, maxBudget))
		}
	}
	msgs = append(msgs, p.Checkout.check()...)
	msgs = append(msgs, p.Prepare.check()...)
	if len(p.MCPServers) > maxMCPServers {
		msgs = append(msgs, fmt.Sprintf("mcp_servers must have at most %d entries", maxMCPServers))
	}
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		if !mcpName.MatchString(name) {
			msgs = append(msgs, "mcp_servers: a name has lower-case letters, digits, hyphens and underscores")
		}
		msgs = append(msgs, p.MCPServers[name].check(name)...)
	}
	if len([]rune(p.Instructions)) > maxInstructions {
		msgs = append(msgs, fmt.Sprintf("instructions must have at most %d characters", maxInstructions))
	}
	return msgs
}
