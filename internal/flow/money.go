package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/operator"
)

// LiftCap lets go on what an operator's lower cap of an account held up and the
// new one does not.
func LiftCap(budgets *budget.Service) func(*db.Tx, operator.Cap) error {
	return func(tx *db.Tx, c operator.Cap) error { return budgets.Recheck(tx, c.AccountID) }
}
