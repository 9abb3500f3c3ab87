package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/operator"
	"yardmaster/internal/domain/payment"
)

// LiftCap lets go on what an operator's lower cap of an account held up and the
// new one does not.
func LiftCap(budgets *budget.Service) func(*db.Tx, operator.Cap) error {
	return func(tx *db.Tx, c operator.Cap) error { return budgets.Recheck(tx, c.AccountID) }
}

// Spending knows what models cost an account. It is payment.Spending.
type Spending struct{ Budgets *budget.Service }

// Spent returns what tx.Account has spent in this month.
func (s Spending) Spent(tx *db.Tx) (payment.Spent, error) {
	c, err := s.Budgets.Cap(tx)
	return payment.Spent{Period: c.Period, Spent: c.Spent, Reserved: c.Reserved, Left: c.Left}, err
}
