package flow

import (
	"fmt"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/llm"
	"yardmaster/internal/money"
)

// BudgetWork is the work that budgets hold up. It is budget.Work; the transcripts
// of package budget show it.
type BudgetWork struct{}

// Limits returns the limits that the policy of a repository sets.
func (BudgetWork) Limits(tx *db.Tx, repoID string) (budget.Defaults, error) {
	r, _, err := repo.ByIDAnywhere(tx, repoID)
	return limitsOf(r.Policy), err
}

// SetTaskBudget gives a task of tx.Account another budget; nil is none. It answers
// the one before; fault.NotFound if there is no such task.
func (BudgetWork) SetTaskBudget(tx *db.Tx, taskID string, micros *int64) (*int64, error) {
	return task.SetBudget(tx, taskID, micros)
}

// Repo finds a repository of tx.Account.
func (BudgetWork) Repo(tx *db.Tx, owner, name string) (id, full string, ok bool, err error) {
	r, ok, err := repo.ByName(tx, owner, name)
	return r.ID, r.FullName(), ok, err
}

// HasPlan tells whether an id is a plan of tx.Account.
func (BudgetWork) HasPlan(tx *db.Tx, planID string) (bool, error) { return plan.Exists(tx, planID) }

// Prices implements budget.Prices: whether models have a price.
type Prices struct {
	Server *llm.Prices // for what an account sets none
}

// Priced tells whether a model that had no price has one by now.
func (p Prices) Priced(tx *db.Tx, account string, m budget.Model) (bool, error) {
	return modelkey.Priced(tx, account, m.Key, llm.Provider(m.Provider), m.Name, p.Server)
}

// ReleaseFreed puts a task back into the queue that is held for want of money or
// of a price.
func ReleaseFreed(tasks *task.Service) func(*db.Tx, budget.Freed) error {
	return func(tx *db.Tx, f budget.Freed) error {
		t, ok, err := task.Lock(tx, f.Account, f.ID)
		if err != nil || !ok || t.Status != task.Held || t.FailureKind == nil ||
			*t.FailureKind != task.BudgetExhausted && *t.FailureKind != task.UnpricedModel {
			return err
		}
		return tasks.Release(tx, &t)
	}
}

// RejudgeBudgets lets go what the budget of the old policy file held up and that of
// the new one does not.
func RejudgeBudgets(budgets *budget.Service) func(*db.Tx, repo.Ref) error {
	return func(tx *db.Tx, r repo.Ref) error { return budgets.Recheck(tx, r.AccountID) }
}

// limitsOf are the limits that a policy file sets.
func limitsOf(p repo.Policy) budget.Defaults {
	return budget.Defaults{Task: money.Micros(p.Budget.TaskUSD), Run: money.Micros(p.Budget.RunUSD)}
}

// JudgeStops tells asks what stopped the sessions of their judges.
type JudgeStops struct{}

// Stops tells of sessions what their budgets lack, who can let them go on, and
// how.
func (JudgeStops) Stops(tx *db.Tx, sessionIDs []string) ([]ask.Stop, error) {
	all, err := stopsOf(tx, sessionIDs)
	out := make([]ask.Stop, len(all))
	for i, s := range all {
		when, call, args := clears(s)
		out[i] = ask.Stop{SessionID: s.ID, Reason: s.Reason, At: s.At, ClearsWhen: when}
		if call != "" {
			out[i].Clear = &ask.Clear{Capability: call, Args: args}
		}
	}
	return out, err
}

// clears says what lets something go on that a limit stopped, and the call that
// does; no call of the account's members if it is empty.
func clears(s budget.Stop) (when, call string, args map[string]string) {
	args = map[string]string{}
	if s.Reason == budget.SlugUnpriced {
		args["provider"], args["model"] = s.Provider, s.Model
		return fmt.Sprintf("whoever may write billing says what the model %s of %s costs (0 is a price), for the model or for the key, "+
			"or no limit in dollars holds any more: now %s does",
			s.Model, s.Provider, limitNames[s.Scope]), "billing.price_set", args
	}
	switch s.Scope {
	case budget.Account:
		when, call = "whoever may write billing raises the account's budget of the month, or the month ends", "billing.spend_cap_set"
		if s.Operator {
			when, call = "the platform's operator raises the account's budget of the month, or the month ends", ""
		}
	case budget.Member:
		when, call = "whoever may write billing raises the member's budget of the month, or the month ends", "billing.member_cap_set"
		args["userId"] = s.Ref
	case budget.Repo:
		when, call = "whoever may write billing raises the repository's budget of the month, or the month ends", "project.budget_set"
		args["owner"], args["repo"], _ = strings.Cut(s.Title, "/")
	case budget.Key:
		when = fmt.Sprintf("whoever may write billing raises the budget of the key “%s” or adds another key, or the month ends", s.Title)
		call = "billing.key_budget_set"
		args["id"] = s.Ref
	case budget.Plan:
		when, call = "whoever may write tasks raises the plan's budget", "plan.budget_set"
		args["planId"] = s.Ref
	case budget.Task:
		when, call = "whoever may write tasks raises the task's budget", "task.budget_set"
		args["id"] = s.Ref
		if s.Ref != s.ID {
			when = fmt.Sprintf("whoever may write tasks raises the budget of the task “%s”, whose pull request this one looks after", s.Title)
		}
	case budget.OwnWork:
		when = "whoever may write tasks raises the task's budget, of which a quarter is kept for reviews and repairs"
		call = "task.budget_set"
		args["id"] = s.Ref
	case budget.Run:
		when = "the policy file allows a run more, or whoever may write tasks sets the task's budget: its next run begins at nothing"
		call = "task.budget_set"
		args["id"] = s.ID
	}
	return when, call, args
}

// limitNames are how limits are called within a sentence.
var limitNames = map[string]string{
	budget.Account: "the account's budget of the month", budget.Member: "the member's budget of the month",
	budget.Repo: "the repository's budget of the month",
	budget.Plan: "the plan's budget", budget.Key: "the key's budget of the month",
	budget.Task: "the task's budget", budget.OwnWork: "the task's budget", budget.Run: "the budget of each run",
}

// KeyLabels implements budget.Prices.
func (Prices) KeyLabels(tx *db.Tx) (map[string]string, error) { return modelkey.Labels(tx) }

// PoolKeys implements budget.Prices.
func (Prices) PoolKeys(tx *db.Tx, account string) (out []budget.PoolKey, err error) {
	all, err := modelkey.Pool(tx, account)
	for _, k := range all {
		out = append(out, budget.PoolKey(k))
	}
	return out, err
}

// stopsOf are the stops of work, with the label of the key whose budget it is.
func stopsOf(tx *db.Tx, ids []string) ([]budget.Stop, error) {
	all, err := budget.Stops(tx, ids)
	var labels map[string]string
	for i := range all {
		if all[i].Scope != budget.Key {
			continue
		}
		if labels == nil && err == nil {
			labels, err = modelkey.Labels(tx)
		}
		all[i].Title = labels[all[i].Ref]
	}
	return all, err
}
