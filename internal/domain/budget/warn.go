package budget

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/money"
)

// NearlySpent is the data of NearlySpentEvent.
type NearlySpent struct {
	Scope  string  `json:"scope" enum:"account,member,repo,plan,key" doc:"whose limit it is"`
	USD    float64 `json:"usd" doc:"the limit, in US dollars"`
	Spent  string  `json:"spent_usd" format:"decimal" doc:"decimal US dollars"`
	Period string  `json:"period" doc:"the month, YYYY-MM in UTC; empty: a plan's has none"`
}

// NearlySpentEvent is recorded once for each limit and period, when four fifths of it are spent. Its
// object is the account, the member, the repository, the plan or the key.
var NearlySpentEvent = event.Declare[NearlySpent]("budget.nearly_spent", Topic, "Four fifths of a limit are spent.")

// nearOperator is the scope of the limit that an operator has set for an account.
const nearOperator = "operator"

// nearly is a limit of which four fifths are spent and nobody was told.
type nearly struct {
	AccountID, Scope, Ref, Period string
	Micros, Spent                 int64
}

// warn tells of limits that are nearly spent.
func (s *Service) warn(ctx context.Context) error {
	var all []nearly
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = nearLimits.All(tx, month(tx.Now))
		return err
	}); err != nil || len(all) == 0 {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		for _, n := range all {
			told, err := noteWarning.Exec(tx, n)
			if err != nil {
				return err
			}
			if told == 0 {
				continue // another node was faster
			}
			d := NearlySpent{Scope: n.Scope, USD: *money.USD(&n.Micros), Spent: money.Dollars(n.Spent), Period: n.Period}
			if n.Scope == nearOperator {
				d.Scope = Account
			}
			if err := NearlySpentEvent.Record(tx, event.Subject{ID: n.Ref, Account: n.AccountID}, d); err != nil {
				return err
			}
		}
		return nil
	})
}
