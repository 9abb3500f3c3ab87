package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"yardmaster/internal/client"
)

// priced gives the scripted model a price: a call may write 2,000 tokens for 20
// cents, and reserves at least the cost of 1,024.
func priced(t *testing.T) (flags []string) {
	t.Helper()
	f, err := os.CreateTemp(root, "prices-*.yml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("as_of: \"2026-01-01\"\nprices:\n  - {provider: scripted, family: \"*\", input: 0, output: 100, max_output: 2000}\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return []string{"--prices", f.Name()}
}

// spender is an agent that makes five calls of 15 cents each. It skips the parts of
// its work that it finds done.
var spender = `scenarios:
  - name: spend
    match: Spend
    steps:
` + strings.Repeat(`      - shell: |
          if [ -e first ] && [ ! -e .git/begun ]; then echo >resumed; fi; echo >.git/begun; echo >first
        usage: {input: 10, output: 1500}
`, 3) + `      - shell: |
          rm -f first; [ -e resumed ] || echo >unbroken
          ` + deliver + `
        usage: {input: 10, output: 1500}
      - text: Done.
        usage: {input: 10, output: 1500}
`

// money is the budget of a task, and what the task has spent.
func (st *stack) money(task string) (limit, spent float64) {
	st.t.Helper()
	var t struct {
		Budget struct{ USD, Reserved, Spent *string }
	}
	st.call(http.MethodGet, "/v1/tasks/"+task, nil, &t)
	of := func(s *string) float64 {
		if s == nil {
			return 0
		}
		n, err := strconv.ParseFloat(*s, 64)
		if err != nil {
			st.t.Fatal(err)
		}
		return n
	}
	if limit, spent = of(t.Budget.USD), of(t.Budget.Spent); limit > 0 && spent+of(t.Budget.Reserved) > limit+1e-9 {
		st.t.Errorf("a task that may spend %v has spent %v and set %v aside", limit, spent, of(t.Budget.Reserved))
	}
	return limit, spent
}

// heldBy waits until a task is held for lack of budget, checks its spending all the
// while, and then checks which capability would help.
func (st *stack) heldBy(task, capability string, args map[string]string) {
	st.t.Helper()
	st.until("the task is held", func() bool {
		st.money(task)
		now := st.task(task)
		if now.Ended() {
			st.t.Fatalf("the task ended as %s after %s", now.Status, st.outcomes(task))
		}
		return now.Status == "held"
	})
	holds := st.holds(task)
	var clear struct {
		Capability string
		Args       map[string]string
	}
	if len(holds) == 1 && holds[0].Clear != nil {
		clear = *holds[0].Clear
	}
	if len(holds) != 1 || holds[0].Reason != "budget_exhausted" || clear.Capability != capability ||
		fmt.Sprint(clear.Args) != fmt.Sprint(args) {
		st.t.Errorf("the task is held for %+v, %+v", holds, clear)
	}
}

// operator signs Ada in as an operator of the platform.
func (st *stack) operator() *client.Client {
	st.t.Helper()
	minted, err := client.OperatorToken(st.ctx, st.c.URL, "ada", password, "caps", []string{"admin:accounts"})
	if err != nil {
		st.t.Fatal(err)
	}
	return &client.Client{URL: st.c.URL, Token: minted.Token}
}

// spend files a task for the spender.
func (st *stack) spend(budget float64) string {
	st.t.Helper()
	body := map[string]any{"repo": owner + "/" + repoName, "title": "Spend money", "problem": "Spend it."}
	if budget > 0 {
		body["budget_usd"] = budget
	}
	var out struct {
		TaskID string `json:"task_id"`
	}
	st.call(http.MethodPost, "/v1/tasks", body, &out)
	return out.TaskID
}

// went checks that a task was stopped so often, continued from its saved work, and
// that its spending is recorded.
func (st *stack) went(task string, stops int) {
	st.t.Helper()
	st.merges(task)
	if got, want := st.outcomes(task), strings.Repeat("interrupted(budget_exhausted) ", stops)+"succeeded"; got != want {
		st.t.Errorf("the tries: %s, want %s", got, want)
	}
	if tries := st.tries(task); tries[len(tries)-1].ResumeSHA == "" {
		st.t.Error("the last try did not begin from the saved work")
	}
	for path, want := range map[string]bool{"resumed": true, "unbroken": false, "first": false} {
		if got := strings.Contains(st.git(st.bare(), "ls-tree", "--name-only", "main"), path); got != want {
			st.t.Errorf("the main branch has the file %s: %v", path, got)
		}
	}
}

func spending(t *testing.T) *stack {
	st := newStack(t, append(withModel(t, spender), priced(t)...)...)
	st.call(http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted"}, nil)
	st.join("box")
	return st
}

func TestBudgetOfATaskStopsItUntilItIsRaised(t *testing.T) {
	st := spending(t)
	id := st.spend(0.6) // a quarter of it is kept for reviews and repairs
	st.heldBy(id, "task.budget_set", map[string]string{"id": id})
	if _, spent := st.money(id); spent != 0.45 {
		t.Errorf("%v dollars are spent, three calls cost 0.45", spent)
	}
	if w := st.tries(id)[0]; !strings.Contains(w.EndedReason, "The task's budget, of which a quarter is kept for reviews and repairs, has no room for another call.") {
		t.Errorf("the reason: %q", w.EndedReason)
	}
	set := func(usd any) error {
		return st.c.Call(st.ctx, http.MethodPut, "/v1/tasks/"+id+"/budget", map[string]any{"usd": usd}, nil)
	}
	for _, usd := range []any{0.2, 0.6} {
		if err := set(usd); err != nil || st.task(id).Status != "held" {
			t.Errorf("with %v dollars the task is %s, %v", usd, st.task(id).Status, err)
		}
	}
	if err := set(2); err != nil {
		t.Fatal(err)
	}
	st.went(id, 1)
	if _, spent := st.money(id); spent != 1.2 {
		t.Errorf("%v dollars are spent, eight calls cost 1.2", spent)
	}
	if err := set(3); err == nil || !strings.Contains(err.Error(), "merged") {
		t.Errorf("the budget of a merged task: %v", err)
	}
	st.verify()
}

// A budget is enough for what calls cost, however much they could: an agent that names no cap on
// the output may write 128,000 tokens, for more than the whole budget.
func TestSmallBudgetIsEnough(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices.yml")
	text := "as_of: \"2026-01-01\"\nprices:\n  - {provider: scripted, family: \"*\", input: 3, output: 15}\n"
	if err := os.WriteFile(prices, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	scenario := "scenarios:\n  - name: spend\n    match: Spend\n    steps:\n" +
		strings.Repeat("      - shell: echo >>file\n        usage: {input: 1000, output: 60}\n", 9) +
		"      - shell: |\n          " + deliver + "\n        usage: {input: 1000, output: 60}\n" +
		"      - text: Done.\n        usage: {input: 1000, output: 60}\n"
	st := newStack(t, append(withModel(t, scenario), "--prices", prices)...)
	st.call(http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted"}, nil)
	st.join("box")
	id := st.spend(1)
	st.merges(id)
	if got := st.outcomes(id); got != "succeeded" {
		t.Errorf("the tries: %s", got)
	}
	if _, spent := st.money(id); spent != 0.0429 {
		t.Errorf("%v dollars are spent, eleven calls cost 0.0429", spent)
	}
}

// The monthly caps of the account and of the member stop a task that the limits of
// the policy file permit; raising each one lets the task continue.
func TestOneLimitAfterTheOther(t *testing.T) {
	st := spending(t)
	limits := func(task, run float64) {
		st.push("main", map[string]string{".svc/policy.yml": fmt.Sprintf("version: 1\nreview: {mode: off}\nmerge: {mode: auto}\nbudget: {task_usd: %v, run_usd: %v}\n", task, run)})
	}
	limits(0.6, 9)
	operator := st.operator()
	var me struct{ User, Account struct{ ID string } }
	st.call(http.MethodGet, "/v1/me", nil, &me)
	id := st.spend(0)
	st.heldBy(id, "task.budget_set", map[string]string{"id": id}) // 0.45 spent

	// A task without a budget of its own still has the other limits.
	st.call(http.MethodPut, "/v1/tasks/"+id+"/budget", map[string]any{"usd": nil}, nil)
	if s := st.task(id).Status; s != "held" {
		t.Errorf("without a budget of its own the task is %s", s)
	}
	limits(9, 0.2)
	st.until("the next try has ended", func() bool { return len(st.tries(id)) == 2 })
	st.heldBy(id, "task.budget_set", map[string]string{"id": id}) // 0.60 spent; stopped by the run's limit

	st.call(http.MethodPut, "/v1/billing/spend-cap/members/"+me.User.ID, map[string]any{"usd": 0.8}, nil)
	limits(9, 9)
	st.until("the next try has ended", func() bool { return len(st.tries(id)) == 3 })
	st.heldBy(id, "billing.member_cap_set", map[string]string{"userId": me.User.ID}) // 0.75 spent

	st.call(http.MethodPut, "/v1/billing/spend-cap", map[string]any{"usd": 1}, nil)
	st.call(http.MethodPut, "/v1/billing/spend-cap/members/"+me.User.ID, map[string]any{"usd": nil}, nil)
	st.until("the next try has ended", func() bool { return len(st.tries(id)) == 4 })
	st.heldBy(id, "billing.spend_cap_set", map[string]string{}) // 0.90 spent

	cap := func(usd float64) {
		t.Helper()
		if err := operator.Call(st.ctx, http.MethodPut, "/v1/admin/accounts/"+me.Account.ID+"/spend-cap",
			map[string]any{"usd": usd, "confirm": true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	cap(1.1)
	st.call(http.MethodPut, "/v1/billing/spend-cap", map[string]any{"usd": 100}, nil)
	st.until("the next try has ended", func() bool { return len(st.tries(id)) == 5 })
	st.heldBy(id, "", nil) // 1.05 spent; no call of the account itself helps
	cap(50)
	st.went(id, 5)
	st.verify()
}
