package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/seed"
)

func some[T any](v T) *T { return &v }

// TestReplay: the policy that was decides as it did, whatever the record holds;
// of another each key is told about or unknown.
func TestReplay(t *testing.T) {
	t.Parallel()
	was := Candidate{Template: "default", Isolation: "best", CheckCommand: "make check", CheckTimeout: 10 * time.Minute, MergeMode: "ask",
		MergeMethod:  "merge",
		DeleteBranch: true, OnCancel: "close", Conflicts: "hold", RunMicros: some[int64](2_000_000), Instructions: "a", MCPServers: "b"}
	policy := &db.JSON[Candidate]{V: was}
	full := facts{Policy: policy, Run: RunRecord{Template: some("default"), Isolation: some("bubblewrap")},
		CostMicros: some[int64](900_000), TaskCost: some[int64](900_000),
		PRID: some("pr"), MergedAt: some[int64](1), Asked: 1, Applied: 1, Command: some("make check"), CheckMicros: some[int64](1_000_000)}
	byPolicy := full
	byPolicy.Asked, byPolicy.ByPolicy = 0, 1
	byHand := full
	byHand.Applied = 0
	unpriced := full
	unpriced.CostMicros, unpriced.Unpriced, unpriced.TaskCost, unpriced.TaskUnpriced = nil, 3, nil, 3
	unpriced.Policy = &db.JSON[Candidate]{V: func() Candidate { c := was; c.RunMicros = nil; return c }()}
	stopped := full
	stopped.Run.FailureKind = some("budget_exhausted")
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
		"a check that took longer": {full, func(c *Candidate) { c.CheckTimeout = 10 * time.Millisecond },
			"checks.timeout 1s 10ms", ""},
		"a check that took less": {full, func(c *Candidate) { c.CheckTimeout = time.Minute }, "", ""},
		"nobody knows how long": {facts{Policy: policy, Command: some("make check")},
			func(c *Candidate) { c.CheckTimeout = time.Minute }, "", "checks.timeout"},
		"another method":              {full, func(c *Candidate) { c.MergeMethod = "squash" }, "merge.method merge squash", ""},
		"another method, not merged":  {facts{Policy: policy}, func(c *Candidate) { c.MergeMethod = "squash" }, "", "merge.method"},
		"another method, by hand":     {byHand, func(c *Candidate) { c.MergeMethod, c.DeleteBranch = "squash", false }, "", ""},
		"the branch stays":            {full, func(c *Candidate) { c.DeleteBranch = false }, "merge.delete_branch true false", ""},
		"kept when cancelled":         {facts{Policy: policy}, func(c *Candidate) { c.OnCancel = "keep" }, "", "merge.on_cancel"},
		"kept when cancelled, merged": {full, func(c *Candidate) { c.OnCancel = "keep" }, "", ""},
		"words, tools and others' work": {full, func(c *Candidate) { c.Conflicts, c.Instructions, c.MCPServers = "ignore", "", "" }, "",
			"conflicts instructions mcp_servers"},
		"too dear":                      {full, func(c *Candidate) { c.RunMicros = some[int64](500_000) }, "budget.run_usd 0.90 0.50", ""},
		"a limit less":                  {full, func(c *Candidate) { c.RunMicros = nil }, "", ""},
		"a limit less, that stopped it": {stopped, func(c *Candidate) { c.RunMicros = nil }, "", "budget.run_usd"},
		"no price, and a limit of 0":    {unpriced, func(c *Candidate) { c.RunMicros = some[int64](0) }, "budget.run_usd <nil> 0.00", ""},
		"a budget of its own":           {own, func(c *Candidate) { c.TaskMicros = some[int64](1) }, "", ""},
		"another template":              {full, func(c *Candidate) { c.Template = "x" }, "agent.template default x", ""},
		"stricter": {facts{Policy: policy, Run: RunRecord{Isolation: some("none")}},
			func(c *Candidate) { c.Isolation = "landlock" }, "agent.isolation none landlock", ""},
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

var (
	addMerged = db.S(`INSERT INTO sessions (id, account_id, repo_id, task_id, trigger, kind, started_at, ended_at, policy)
		VALUES ($1, 'acme', 'repo', $1, 'task', 'work', 0, 1, $2)`)
)

// Whether a person was asked about a merge, ordered it, or made it by hand, is
// told apart.
func TestReplayOfMerges(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		for i, c := range []struct {
			name, by, mode string
			decided        int64 // 1: as it was written
			candidate      Candidate
			diff, unknown  string
		}{
			{"asked", "user:ann", "ask", 2, Candidate{MergeMode: "auto"}, "merge.mode", ""},
			{"ordered", "user:ann", "never", 1, Candidate{MergeMode: "ask"}, "", "merge.mode"},
			{"by the policy", "policy", "auto", 1, Candidate{MergeMode: "ask"}, "merge.mode", ""},
			{"the other way", "user:ann", "ask", 2, Candidate{MergeMode: "ask", MergeMethod: "squash"}, "merge.method", ""},
			{"by hand", "", "never", 0, Candidate{MergeMode: "never", MergeMethod: "squash"}, "", ""},
		} {
			of := id.New()
			f.write(func(tx *db.Tx) error {
				err1 := seed.Add(tx, seed.Pull{ID: of, Account: "acme", Repo: "repo", Number: i + 1, State: "merged", Task: &of,
					Merged: new(int64(3))})
				err2 := seed.Add(tx, seed.Task{ID: of, Account: "acme", Repo: "repo", Status: "merged", Pull: &of})
				_, err3 := addMerged.Exec(tx, of, db.JSON[Candidate]{V: Candidate{MergeMode: c.mode}})
				var err4 error
				if c.by != "" {
					err4 = seed.Add(tx, seed.Action{ID: of, Account: "acme", Pull: of, Kind: "merge", State: "applied", By: new(c.by),
						Decided: new(c.decided)})
				}
				return errors.Join(err1, err2, err3, err4)
			})
			f.candidate = c.candidate
			var got PolicyReplay
			f.call(200, "acme", "POST", "/v1/sessions/"+of+"/replay", `{"yml": ""}`, &got)
			diff := ""
			for _, d := range got.Diff {
				diff += d.Key
			}
			if unknown := strings.Join(got.Unknown, " "); diff != c.diff || unknown != c.unknown {
				t.Errorf("%s: diff %q, unknown %q; want %q, %q", c.name, diff, unknown, c.diff, c.unknown)
			}
		}
	})
}
