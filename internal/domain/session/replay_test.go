package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
)

func some[T any](v T) *T { return &v }

// TestReplay: the policy that was decides as it did, whatever the record holds;
// of another each key is told about or unknown.
func TestReplay(t *testing.T) {
	was := Candidate{Template: "default", Isolation: "best", CheckCommand: "make check", CheckTimeout: 10 * time.Minute, MergeMode: "ask", MergeMethod: "merge",
		DeleteBranch: true, OnCancel: "close", Conflicts: "hold", RunMicros: some[int64](2_000_000), Instructions: "a", MCPServers: "b"}
	policy := &db.JSON[Candidate]{V: was}
	full := facts{Policy: policy, Template: some("default"), Isolation: some("bubblewrap"), CostMicros: some[int64](900_000), TaskCost: some[int64](900_000),
		PRID: some("pr"), MergedAt: some[int64](1), Asked: 1, Command: some("make check"), CheckMicros: some[int64](1_000_000)}
	byPolicy := full
	byPolicy.Asked, byPolicy.ByPolicy = 0, 1
	unpriced := full
	unpriced.CostMicros, unpriced.Unpriced, unpriced.TaskCost, unpriced.TaskUnpriced = nil, 3, nil, 3
	unpriced.Policy = &db.JSON[Candidate]{V: func() Candidate { c := was; c.RunMicros = nil; return c }()}
	stopped := full
	stopped.FailureKind = some("budget_exhausted")
	own := full
	own.OwnBudget = some[int64](5)
	for name, x := range map[string]struct {
		facts   facts
		change  func(*Candidate)
		diff    string // key recorded candidate
		unknown string
	}{
		"the same":                       {full, func(*Candidate) {}, "", ""},
		"the same, of next to nothing":   {facts{Policy: policy}, func(*Candidate) {}, "", ""},
		"merged by the policy":           {byPolicy, func(c *Candidate) { c.MergeMode = "never" }, "merge.mode auto never", ""},
		"asked, and would not have been": {full, func(c *Candidate) { c.MergeMode = "auto" }, "merge.mode ask auto", ""},
		"nobody was asked yet":           {facts{Policy: policy}, func(c *Candidate) { c.MergeMode = "auto" }, "", "merge.mode"},
		"a check that took longer":       {full, func(c *Candidate) { c.CheckTimeout = 10 * time.Millisecond }, "checks.timeout 1s 10ms", ""},
		"a check that took less":         {full, func(c *Candidate) { c.CheckTimeout = time.Minute }, "", ""},
		"nobody knows how long":          {facts{Policy: policy, Command: some("make check")}, func(c *Candidate) { c.CheckTimeout = time.Minute }, "", "checks.timeout"},
		"another method":                 {full, func(c *Candidate) { c.MergeMethod = "squash" }, "merge.method merge squash", ""},
		"another method, not merged":     {facts{Policy: policy}, func(c *Candidate) { c.MergeMethod = "squash" }, "", "merge.method"},
		"the branch stays":               {full, func(c *Candidate) { c.DeleteBranch = false }, "merge.delete_branch true false", ""},
		"kept when cancelled":            {facts{Policy: policy}, func(c *Candidate) { c.OnCancel = "keep" }, "", "merge.on_cancel"},
		"kept when cancelled, merged":    {full, func(c *Candidate) { c.OnCancel = "keep" }, "", ""},
		"words, tools and others' work":  {full, func(c *Candidate) { c.Conflicts, c.Instructions, c.MCPServers = "ignore", "", "" }, "", "conflicts instructions mcp_servers"},
		"too dear":                       {full, func(c *Candidate) { c.RunMicros = some[int64](500_000) }, "budget.run_usd 0.90 0.50", ""},
		"a limit less":                   {full, func(c *Candidate) { c.RunMicros = nil }, "", ""},
		"a limit less, that stopped it":  {stopped, func(c *Candidate) { c.RunMicros = nil }, "", "budget.run_usd"},
		"no price, and a limit of 0":     {unpriced, func(c *Candidate) { c.RunMicros = some[int64](0) }, "budget.run_usd <nil> 0.00", ""},
		"a budget of its own":            {own, func(c *Candidate) { c.TaskMicros = some[int64](1) }, "", ""},
		"another template":               {full, func(c *Candidate) { c.Template = "x" }, "agent.template default x", ""},
		"stricter":                       {facts{Policy: policy, Isolation: some("none")}, func(c *Candidate) { c.Isolation = "landlock" }, "agent.isolation none landlock", ""},
		"no policy on record": {facts{}, func(*Candidate) {}, "",
			"agent.template agent.isolation checks.command checks.timeout merge.mode merge.method merge.delete_branch merge.on_cancel conflicts instructions mcp_servers"},
	} {
		c := was
		if x.facts.Policy != nil {
			c = x.facts.Policy.V
		}
		x.change(&c)
		got := x.facts.replay(c)
		diff, unknown := "", ""
		for _, d := range got.Diff {
			of := func(s *string) any {
				if s == nil {
					return nil
				}
				return *s
			}
			diff += fmt.Sprint(d.Key, " ", of(d.Recorded), " ", of(d.Candidate))
		}
		for i, u := range got.Unknown {
			if i > 0 {
				unknown += " "
			}
			unknown += u
		}
		if diff != x.diff || unknown != x.unknown || got.Same != (diff == "" && unknown == "") || slices.Contains(got.Unknown, "") {
			t.Errorf("%s: diff %q, unknown %q, same %v; want %q, %q", name, diff, unknown, got.Same, x.diff, x.unknown)
		}
	}
}
