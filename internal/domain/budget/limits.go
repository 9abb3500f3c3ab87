package budget

import (
	"slices"

	"yardmaster/internal/db"
)

// Limit is what an account, or the work that one member asked for, may spend on models in
// a month, and has spent.
type Limit struct {
	_           struct{} `doc:"What an account, or the work of one member, may spend in a month, and has spent."`
	ID          string   `json:"id" format:"uuid" doc:"id of the account, or of the member"`
	Scope       string   `json:"scope" enum:"account,member" doc:"whose limit it is"`
	USD         *float64 `json:"usd" example:"500" doc:"the limit, in US dollars a month; null: none"`
	OperatorUSD *float64 `json:"operator_usd" example:"null" doc:"the limit of an account that the platform's operator set; null: none"`
	Period      string   `json:"period" example:"2026-03" doc:"the month, YYYY-MM in UTC"`
	Spent       string   `json:"spent_usd" format:"decimal" example:"112.40" doc:"decimal US dollars, of calls with a known price"`
	Reserved    string   `json:"reserved_usd" format:"decimal" example:"1.20" doc:"decimal US dollars, set aside for calls under way"`
	Left        *string  `json:"left_usd" format:"decimal" example:"386.40" doc:"decimal US dollars, under the lower limit of an account; null without one, and for members"`
}

// Rows lists at most limit limits of tx.Account, its own first and then those of members
// by login: those of users with the ids, and the
// account's for its id or the word account, or all for nil.
func (s *Service) Rows(tx *db.Tx, ids []string, limit int) (out []Limit, err error) {
	wanted := func(id string) bool { return ids == nil || slices.Contains(ids, id) }
	period := month(tx.Now)
	if wanted(tx.Account) || wanted(Account) {
		c, err := spendCap(tx)
		if err != nil {
			return nil, err
		}
		out = append(out, Limit{
			ID: tx.Account, Scope: Account, USD: c.USD, OperatorUSD: c.OperatorUSD, Period: c.Period, Spent: c.Spent, Reserved: c.Reserved,
			Left: c.Left,
		})
	}
	if !slices.ContainsFunc(ids, func(id string) bool { return id != Account && id != tx.Account }) && ids != nil {
		return out, nil
	}
	members, err := usageOfMembers(tx, period)
	for _, m := range members {
		if wanted(m.UserID) && len(out) < limit {
			out = append(out, Limit{
				ID: m.UserID, Scope: Member, USD: m.CapUSD, Period: period, Spent: m.Spent, Reserved: m.Reserved,
			})
		}
	}
	return out, err
}
