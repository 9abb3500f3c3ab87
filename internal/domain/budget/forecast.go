package budget

import (
	"math"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/money"
)

// Forecast is what a month will have cost, as far as the days before tell.
type Forecast struct {
	_    struct{} `doc:"What this month will have cost, as far as the days before tell." schema:"SpendForecast"`
	USD  string   `json:"usd" format:"decimal" example:"310.00" doc:"decimal US dollars: what was spent, and an average day for each that is left"`
	Low  string   `json:"low_usd" format:"decimal" example:"262.10" doc:"four of five months end between this"`
	High string   `json:"high_usd" format:"decimal" example:"357.90" doc:"and this, if days go on to differ as they did"`
	Days int64    `json:"days" example:"28" doc:"whole days that it is made of, at least 7"`
}

const (
	// leastDays is how many whole days a forecast needs, and mostDays how many it looks at.
	leastDays, mostDays = 7, 28
	// fourOfFive is how many deviations of a normal distribution hold four of five cases.
	fourOfFive = 1.2816
	cent       = 10_000 // micro-dollars
)

// forecast is what the month of a time will have cost, if so much of it was spent; nil: there are
// too few days to tell. spent are what the whole days before cost, each.
func forecast(now time.Time, soFar int64, spent []int64) *Forecast {
	n := float64(len(spent))
	if n < leastDays {
		return nil
	}
	var mean, spread float64
	for _, micros := range spent {
		mean += float64(micros) / n
	}
	for _, micros := range spent {
		spread += (float64(micros) - mean) * (float64(micros) - mean) / (n - 1)
	}
	begin := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	left := begin.AddDate(0, 1, 0).Sub(now).Hours() / 24
	// The days that are left differ from their mean, and the mean of a few days from the true one.
	off := fourOfFive * math.Sqrt(spread*(left+left*left/n))
	most := float64(soFar) + left*mean
	dollars := func(micros float64) string { return money.Dollars(int64(math.Round(micros/cent)) * cent) }
	return &Forecast{
		USD: dollars(most), Low: dollars(max(most-off, float64(soFar))), High: dollars(most + off), Days: int64(len(spent)),
	}
}

// Forecast is what this month will have cost tx.Account; nil: too little is known. Days without a
// call count from the first day of the ledger on.
func (s *Service) Forecast(tx *db.Tx) (*Forecast, error) {
	b, _, err := selectBalance.Maybe(tx, selectBalanceArgs{AccountID: tx.Account, Scope: Account, Ref: tx.Account, Period: month(tx.Now)})
	if err != nil {
		return nil, err
	}
	today := dayOf(tx.Now)
	first, err := firstDay.One(tx, tx.Account)
	if err != nil || first == nil {
		return nil, err
	}
	from := max(*first, today-mostDays)
	rows, err := spentByDay.All(tx, tx.Account, from, today)
	if err != nil || from >= today {
		return nil, err
	}
	spent := make([]int64, today-from)
	for _, r := range rows {
		spent[r.Day-from] = r.Spent
	}
	return forecast(tx.Now, b.Spent, spent), nil
}
