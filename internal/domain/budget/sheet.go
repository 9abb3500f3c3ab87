package budget

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
)

// mostRows is how many rows a sheet has at most. One with more is refused, never cut.
const mostRows = 1_000_000

// sheet is what was spent on each day of a month, by one kind of parts, as CSV.
func (s *Service) sheet(tx *db.Tx, by string, from, to int64) (string, error) {
	rows := []partRow{}
	if by == "day" {
		days, err := callsByDay.All(tx, tx.Account, from, to)
		if err != nil {
			return "", err
		}
		for _, d := range days {
			rows = append(rows, partRow{Day: d.Day, Calls: d.Calls, Unpriced: d.Unpriced, Spent: d.Spent, Sessions: d.Sessions})
		}
	} else {
		for day := from; day < to; day++ {
			more, err := s.dailyBy(tx, by, day, day+1)
			if err != nil {
				return "", err
			}
			if rows = append(rows, more...); len(rows) > s.mostRows {
				return "", fault.Field("csv", fmt.Sprintf("makes a sheet of more than %d rows; choose parts of which there are fewer", s.mostRows))
			}
		}
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	all := [][]string{{"day", by + "_id", by, "spent_usd", "sessions", "calls", "unpriced_calls"}}
	if by == "day" {
		all[0] = append(all[0][:1], all[0][3:]...)
	}
	if by == "model" {
		all[0][1] = "provider"
	}
	for _, r := range rows {
		cells := []string{dateOf(r.Day)}
		if by != "day" {
			cells = append(cells, cell(r.ID), cell(r.Name))
		}
		all = append(all, append(cells, money.Dollars(r.Spent), strconv.FormatInt(r.Sessions, 10), strconv.FormatInt(r.Calls, 10),
			strconv.FormatInt(r.Unpriced, 10)))
	}
	err := w.WriteAll(all)
	return out.String(), err
}

// cell is a text that no program of sheets takes for a formula: models and titles are named by
// whoever calls.
func cell(text *string) string {
	if text == nil {
		return ""
	}
	if strings.ContainsAny((*text + " ")[:1], "=+-@\t\r") {
		return "'" + *text
	}
	return *text
}
