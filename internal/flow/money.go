package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/operator"
	"yardmaster/internal/domain/payment"
	"yardmaster/internal/domain/people"
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
	if err != nil {
		return payment.Spent{}, err
	}
	f, err := s.Budgets.Forecast(tx)
	return payment.Spent{Period: c.Period, Spent: c.Spent, Reserved: c.Reserved, Left: c.Left, Forecast: f}, err
}

// MayGive tells whether an account may give keys and boxes without paying for it: it is of the
// tier self_hosted, or an operator has given it something free that stands in for the subscription.
func (Spending) MayGive(tx *db.Tx, account string) (bool, error) {
	a, err := people.AccountByID(tx, account)
	if err != nil || a.Tier == people.TierSelfHosted {
		return err == nil, err
	}
	return grant.Counts(tx, account)
}
