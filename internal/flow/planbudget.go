package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
)

// PlanBudgets is plan.Budgets.
type PlanBudgets struct{}

// PlanCap is plan.Budgets.PlanCap.
func (PlanBudgets) PlanCap(tx *db.Tx, planID string) (*int64, error) {
	return budget.PlanLimit(tx, planID)
}
