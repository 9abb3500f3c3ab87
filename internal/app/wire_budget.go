package app

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/money"
)

// budgets connects the budgets to the work that they hold up.
func (a *App) budgets(tasks *task.Service, runs *run.Service) *budget.Service {
	tasks.Stops = stops
	return &budget.Service{
		DB: a.db, Logger: a.log, Clock: time.Now, Node: id.New(),
		OfRepo: func(tx *db.Tx, repoID string) (budget.Defaults, error) {
			r, _, err := repo.ByIDAnywhere(tx, repoID)
			return limitsOf(r.Policy), err
		},
		Halt: func(tx *db.Tx, runID, why string) error { return runs.Halt(tx, runID, task.BudgetExhausted, why) },
		Release: func(tx *db.Tx, account, taskID string) error {
			t, ok, err := task.Lock(tx, account, taskID)
			if err != nil || !ok || t.Status != task.Held || t.FailureKind == nil || *t.FailureKind != task.BudgetExhausted {
				return err
			}
			return tasks.Release(tx, &t)
		},
		SetTask: task.SetBudget,
	}
}

// limitsOf are the limits that a policy file sets.
func limitsOf(p repo.Policy) budget.Defaults {
	return budget.Defaults{Task: money.Micros(p.Budget.TaskUSD), Run: money.Micros(p.Budget.RunUSD)}
}

// policyChanged lets go what the old policy file of a repository held up and
// the new one does not.
func policyChanged(budgets *budget.Service, tasks *task.Service) func(*db.Tx, repo.Ref) error {
	return func(tx *db.Tx, r repo.Ref) error {
		if err := tasks.PolicyChanged(tx, r.ID); err != nil {
			return err
		}
		return budgets.PolicyChanged(tx, r.ID, limitsOf(r.Policy))
	}
}

// stops tells of held tasks who can raise the limit that stopped them, and how.
func stops(tx *db.Tx, taskIDs []string) ([]task.Stop, error) {
	all, err := budget.Stops(tx, taskIDs)
	out := make([]task.Stop, len(all))
	for i, s := range all {
		when, call, args := "", "", map[string]string{}
		switch s.Scope {
		case budget.Account:
			when, call = "whoever may write billing raises the account's budget of the month, or the month ends", "billing.spend_cap_set"
			if s.Operator {
				when, call = "the platform's operator raises the account's budget of the month, or the month ends", ""
			}
		case budget.Member:
			when, call = "whoever may write billing raises the member's budget of the month, or the month ends", "billing.member_cap_set"
			args["userId"] = s.Ref
		case budget.Plan:
			when, call = "whoever may write tasks raises the plan's budget", "plan.budget_set"
			args["planId"] = s.Ref
		case budget.Task:
			when, call = "whoever may write tasks raises the task's budget", "task.budget_set"
			args["id"] = s.TaskID
		case budget.Run:
			when, call = "the policy file allows a run more, or whoever may write tasks sets the task's budget: its next run begins at nothing", "task.budget_set"
			args["id"] = s.TaskID
		}
		out[i] = task.Stop{TaskID: s.TaskID, ClearsWhen: when}
		if call != "" {
			out[i].Clear = &task.TaskClear{Capability: call, Args: args}
		}
	}
	return out, err
}
