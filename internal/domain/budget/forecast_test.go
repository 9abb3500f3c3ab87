package budget

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
)

// TestForecast: an average day for each that is left, and a range by how much days differ.
func TestForecast(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 4, 20, 12, 0, 0, 0, time.UTC) // 10.5 days are left
	const dollar = 1_000_000
	for _, c := range []struct {
		name  string
		spent []int64
		want  *Forecast
	}{
		{"too few days", slices.Repeat([]int64{dollar}, 6), nil},
		{"all alike", slices.Repeat([]int64{2 * dollar}, 20), &Forecast{USD: "61.00", Low: "61.00", High: "61.00", Days: 20}},
		{"nothing", slices.Repeat([]int64{0}, 7), &Forecast{USD: "40.00", Low: "40.00", High: "40.00", Days: 7}},
		// 10.5 days of 1 dollar; the variance is 8/7, so 1.2816 × √(8/7 × (10.5 + 10.5²/8)) = 6.75 to each side
		{"different", []int64{0, 2 * dollar, 0, 2 * dollar, 0, 2 * dollar, 0, 2 * dollar},
			&Forecast{USD: "50.50", Low: "43.75", High: "57.25", Days: 8}},
	} {
		got := forecast(noon, 40*dollar, c.spent)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestForecastOfTheLedger counts the days without a call, and today's not.
func TestForecastOfTheLedger(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *world) {
		s := w.node()
		w.write(func(tx *db.Tx) error {
			tx.Account = "acme"
			if f, err := s.Forecast(tx); err != nil || f != nil {
				t.Errorf("of nothing: %+v, %v", f, err)
			}
			today := dayOf(tx.Now)
			for _, day := range []int64{today - 8, today - 1, today} {
				one := addDayArgs{AccountID: "acme", Day: day, SessionID: "s", Calls: 1, CostMicros: 4_000_000}
				if _, err := addDay.Exec(tx, one); err != nil {
					return err
				}
			}
			f, err := s.Forecast(tx)
			if err == nil && (f == nil || f.Days != 8) {
				t.Errorf("%+v", f)
			}
			return err
		})
	})
}

// warned reads what was said of limits.
var warned = db.Q[string](`SELECT data FROM audit WHERE account_id = $1 AND kind = 'budget.nearly_spent' ORDER BY seq`)

// TestNearlySpent: people are told once of each limit and month, by whichever node is first, and
// again of another limit.
func TestNearlySpent(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Account: 10_000_000, "operator": 100_000_000}, func(t *testing.T, w *world) {
		on := func(scope, ref string, micros int64) {
			w.write(func(tx *db.Tx) error {
				of := openMeterArgs{AccountID: "acme", Scope: scope, Ref: ref, Period: month(tx.Now)}
				if scope == Plan {
					of.Period = ""
				}
				_, err := openMeter.Exec(tx, of)
				_, err1 := moveMeter.Exec(tx, moveMeterArgs{AccountID: "acme", Scope: scope, Ref: ref, Period: of.Period, Spent: micros})
				return errors.Join(err, err1)
			})
		}
		spend := func(micros int64) { on(Account, "acme", micros) }
		told := func(want int, words string) {
			t.Helper()
			for _, node := range []*Service{w.node(), w.node()} {
				if err := node.warn(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			w.write(func(tx *db.Tx) error {
				all, err := warned.All(tx, "acme")
				if len(all) != want || want > 0 && !strings.Contains(all[want-1], words) {
					t.Errorf("told %q, want %d with %s", all, want, words)
				}
				return err
			})
		}
		spend(7_999_999)
		told(0, "")
		spend(1)
		told(1, `"usd":10}`)
		spend(3_000_000)
		told(1, `"usd":10}`)
		w.write(func(tx *db.Tx) error { return storeLimit(tx, Account, "acme", new(int64(12_000_000))) })
		told(2, `"usd":12}`)
		spend(70_000_000)
		told(3, `"usd":100}`)
		for i, scope := range []string{Member, Plan} {
			w.write(func(tx *db.Tx) error { return storeLimit(tx, scope, "x", new(int64(5_000_000))) })
			on(scope, "x", 4_000_000)
			told(4+i, `"scope":"`+scope+`"`)
		}
	})
}
