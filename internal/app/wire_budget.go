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
	return &budget.Service{
		DB: a.db, Logger: a.log, Clock: time.Now, Node: id.New(),
		OfRepo: func(tx *db.Tx, repoID string) (budget.Defaults, error) {
			r, _, err := repo.ByIDAnywhere(tx, repoID)
			return budget.Defaults{Task: money.Micros(r.Policy.Budget.TaskUSD), Run: money.Micros(r.Policy.Budget.RunUSD)}, err
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
