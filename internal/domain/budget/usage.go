package budget

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
)

type usageIn struct {
	Month string `json:"month,omitempty" pattern:"^[0-9]{4}-(0[1-9]|1[0-2])$" says:"must have the form YYYY-MM" example:"2026-03" doc:"YYYY-MM in UTC; the current one unless given"`
	By    string `json:"days_by,omitempty" enum:"model,repo,kind,member,key" doc:"have series say what each of these cost on each day"`
	CSV   string `json:"csv,omitempty" enum:"day,model,repo,kind,member,task,plan,key,gift" doc:"answer with text/csv instead: a row for each day and each of these"`
}

// BillingUsage is the cost of models to an account in a month.
type BillingUsage struct {
	_        struct{}      `doc:"What models cost an account in a month." schema:"BillingUsage"`
	Period   string        `json:"period" example:"2026-03" doc:"the month, YYYY-MM in UTC"`
	Spent    string        `json:"spent_usd" format:"decimal" example:"112.40" doc:"decimal US dollars; of calls with a known price"`
	Reserved string        `json:"reserved_usd" format:"decimal" example:"1.20" doc:"decimal US dollars; set aside for calls under way"`
	Given    *string       `json:"given_usd" format:"decimal" example:"0.80" doc:"decimal US dollars that others paid, beside spent_usd, for calls over keys they have given; null as for calls"`
	Sessions *int64        `json:"sessions" example:"84" doc:"sessions that called a model; kept for about three months, null before"`
	Calls    *int64        `json:"calls" example:"1310" doc:"calls of models; kept for about three months, null before"`
	Unpriced *int64        `json:"unpriced_calls" example:"0" doc:"calls of models without a known price"`
	Days     []UsageDay    `json:"days" doc:"by the day in UTC, oldest first, those with a call only; kept for about three months, empty before"`
	Members  []MemberUsage `json:"members" doc:"by login; what nobody asked for is in the account's sum only"`
	Models   []UsagePart   `json:"models" doc:"by the model that answered, dearest first; of this and the following at most 100, kept for about three months"`
	Repos    []UsagePart   `json:"repos" doc:"by the repository of the work"`
	Kinds    []UsagePart   `json:"kinds" doc:"by the kind of session"`
	Keys     []UsagePart   `json:"keys" doc:"by the key of the account, those of members as one, and those that others have given; no name: not known"`
	Tasks    []UsagePart   `json:"tasks" doc:"by the task; no name: work of no task"`
	Plans    []UsagePart   `json:"plans" doc:"by the plan; no name: work of no plan"`
	Gifts    []UsagePart   `json:"gifts" doc:"of calls that others made over what the account gives, by the gift, named for its repository"`
	Caps     []RepoCap     `json:"repo_caps" doc:"the repositories that have a cap, by name, with the month so far"`
	Series   []UsageSeries `json:"series" doc:"of what days_by asks for, dearest first, at most 100; else empty"`
	KeyCaps  []KeyCap      `json:"key_caps" doc:"the keys of the pool that have a cap, with the month so far"`
	Forecast *Forecast     `json:"forecast" doc:"of the current month; null: of another one, or of fewer than 7 whole days"`

	sheet string
}

// Text is the sheet that was asked for instead.
func (u BillingUsage) Text() (contentType, text string) {
	if u.sheet == "" {
		return "", ""
	}
	return "text/csv; charset=utf-8", u.sheet
}

// UsageDay is the cost of the calls of one day.
type UsageDay struct {
	_        struct{} `doc:"What the calls of one day cost." schema:"UsageDay"`
	Day      string   `json:"day" format:"date" example:"2026-03-10" doc:"YYYY-MM-DD, in UTC"`
	Spent    string   `json:"spent_usd" format:"decimal" example:"4.10" doc:"decimal US dollars; of calls with a known price"`
	Given    string   `json:"given_usd" format:"decimal" example:"0.00" doc:"decimal US dollars that others paid beside that"`
	Calls    int64    `json:"calls" example:"31" doc:"calls of models"`
	Unpriced int64    `json:"unpriced_calls" example:"0" doc:"calls without a known price"`
}

// UsageSeries is the cost of the calls of one part, day by day.
type UsageSeries struct {
	_     struct{}   `doc:"What the calls of one part cost, day by day." schema:"UsageSeries"`
	ID    *string    `json:"id" example:"anthropic" doc:"as parts have it; of a member the id of the person"`
	Name  *string    `json:"name" example:"claude-opus-4-5" doc:"as parts have it; of a member the login"`
	Spent string     `json:"spent_usd" format:"decimal" example:"41.10" doc:"decimal US dollars; of calls with a known price"`
	Days  []UsageDay `json:"days" doc:"by the day in UTC, oldest first, those with a call only"`
}

// UsagePart is the cost of the calls of one model, for one repository, or of another part.
type UsagePart struct {
	_        struct{} `doc:"What the calls of one model, for one repository, or of another part, cost in the month." schema:"UsagePart"`
	ID       *string  `json:"id" example:"anthropic" doc:"of a model its provider; null: it has none"`
	Name     *string  `json:"name" example:"claude-opus-4-5" doc:"the model, owner/name, the kind, the label of a key, or a title; null: none was named"`
	Spent    string   `json:"spent_usd" format:"decimal" example:"41.10" doc:"decimal US dollars; of calls with a known price"`
	Given    string   `json:"given_usd" format:"decimal" example:"0.00" doc:"decimal US dollars that others paid beside that"`
	Sessions int64    `json:"sessions" example:"12" doc:"sessions that called a model"`
	Calls    int64    `json:"calls" example:"310" doc:"calls of models"`
	Unpriced int64    `json:"unpriced_calls" example:"0" doc:"calls without a known price"`
}

// MemberUsage is the cost of the work that a member asked for, and of all that
// followed from it.
type MemberUsage struct {
	_        struct{} `doc:"What the work that one member filed cost in the month." schema:"MemberUsage"`
	UserID   string   `json:"user_id" format:"uuid" doc:"id of the member"`
	Login    string   `json:"login" example:"ada" doc:"login of the member"`
	Spent    string   `json:"spent_usd" format:"decimal" example:"41.10" doc:"decimal US dollars"`
	Reserved string   `json:"reserved_usd" format:"decimal" example:"0.30" doc:"decimal US dollars, set aside for calls under way"`
	CapUSD   *float64 `json:"cap_usd" example:"50" doc:"the member's cap, in US dollars a month; null: none"`
}

func (s *Service) usage(ctx context.Context, in usageIn) (out BillingUsage, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		from := firstOf(tx.Now)
		if in.Month != "" {
			if from, err = time.Parse("2006-01", in.Month); err != nil {
				return fault.Field("month", "is not a month such as 2026-01")
			}
		}
		if in.CSV != "" {
			out.sheet, err = s.sheet(tx, in.CSV, dayOf(from), dayOf(from.AddDate(0, 1, 0)))
			return err
		}
		if out, err = s.usageOf(tx, from); err == nil && out.Period == month(tx.Now) {
			out.Forecast, err = s.Forecast(tx)
		}
		if err == nil && in.By != "" && tx.Now.Sub(from) < minutesTime {
			out.Series, err = s.series(tx, in.By, dayOf(from), dayOf(from.AddDate(0, 1, 0)))
		}
		return err
	})
	return out, err
}

// firstOf is the beginning of a time's month.
func firstOf(now time.Time) time.Time {
	return time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
}

// usageOf is what models cost tx.Account in the month that begins at a time.
func (s *Service) usageOf(tx *db.Tx, from time.Time) (out BillingUsage, err error) {
	out = BillingUsage{Period: month(from), Members: []MemberUsage{}, Days: []UsageDay{}, Series: []UsageSeries{}}
	b, _, err := selectBalance.Maybe(tx, selectBalanceArgs{AccountID: tx.Account, Scope: Account, Ref: tx.Account, Period: out.Period})
	if err != nil {
		return out, err
	}
	out.Spent, out.Reserved = money.Dollars(b.Spent), money.Dollars(b.Reserved)
	known := tx.Now.Sub(from) < minutesTime
	var l ledgerOf
	if known {
		if l, err = addUp(tx, dayOf(from), dayOf(from.AddDate(0, 1, 0))); err != nil {
			return out, err
		}
		out.addDays(l)
	}
	for _, part := range []struct {
		by   string
		into *[]UsagePart
	}{
		{"model", &out.Models}, {"repo", &out.Repos}, {"kind", &out.Kinds}, {"key", &out.Keys}, {"task", &out.Tasks},
		{"plan", &out.Plans}, {"gift", &out.Gifts},
	} {
		if *part.into, err = l.first(s, tx, part.by); err != nil {
			return out, err
		}
	}
	members, err := usageOfMembers(tx, out.Period)
	out.Members = append(out.Members, members...)
	if err == nil {
		out.Caps, err = repoCaps(tx, out.Period)
	}
	if err == nil {
		out.KeyCaps, err = s.keyCaps(tx, out.Period)
	}
	return out, err
}

// keyCaps are the caps of keys of tx.Account, with a month of each.
func (s *Service) keyCaps(tx *db.Tx, period string) ([]KeyCap, error) {
	all, err := s.keysOf(tx, tx.Account, period)
	out := []KeyCap{}
	for _, k := range all {
		if k.Micros != nil {
			out = append(out, k.wire())
		}
	}
	return out, err
}

// repoCaps are the caps of repositories of tx.Account, with a month of each.
func repoCaps(tx *db.Tx, period string) ([]RepoCap, error) {
	rows, err := cappedRepos.All(tx, tx.Account, period)
	out := make([]RepoCap, len(rows))
	for i, r := range rows {
		out[i] = RepoCap{RepoID: r.ID, Repo: r.Name, MonthCap: monthCap(&r.Micros, r.Spent, r.Reserved)}
	}
	return out, err
}

// dailyBy adds the ledger up by the day and one kind of parts.
func (s *Service) dailyBy(tx *db.Tx, by string, from, to int64) ([]partRow, error) {
	rows, err := parts[by].All(tx, tx.Account, from, to)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	switch by {
	default:
		return rows, nil
	case "key":
		names, err = s.keyNames(tx)
	case "member":
		var all []people.Member
		all, err = people.Roster(tx, tx.Account)
		for _, m := range all {
			names[m.UserID] = m.Login
		}
	}
	return withNames(rows, names), err
}

// series adds the ledger up by one kind of parts and the day, for the dearest of the month.
func (s *Service) series(tx *db.Tx, by string, from, to int64) ([]UsageSeries, error) {
	rows, err := s.dailyBy(tx, by, from, to)
	if err != nil {
		return nil, err
	}
	months, days := map[partID]*tally{}, map[partID][]UsageDay{}
	for _, r := range rows { // by the day
		id := partID{text(r.ID), text(r.Name)}
		t := months[id]
		if t == nil {
			t = &tally{partID: id}
			months[id] = t
		}
		t.calls, t.spent = t.calls+r.Calls, t.spent+r.Spent
		days[id] = append(days[id], dayRow{Day: r.Day, Calls: r.Calls, Unpriced: r.Unpriced, Spent: r.Spent, Given: r.Given}.show())
	}
	dearest := slices.SortedFunc(maps.Values(months), dearer)
	out := make([]UsageSeries, min(len(dearest), mostParts))
	for i, t := range dearest[:len(out)] {
		out[i] = UsageSeries{ID: named(&t.id), Name: named(&t.name), Spent: money.Dollars(t.spent), Days: days[t.partID]}
	}
	return out, nil
}

func (d dayRow) show() UsageDay {
	return UsageDay{Day: dateOf(d.Day), Spent: money.Dollars(d.Spent), Given: money.Dollars(d.Given), Calls: d.Calls, Unpriced: d.Unpriced}
}

// keyNames are the labels of keys, and what keys that others have given are called.
func (s *Service) keyNames(tx *db.Tx) (map[string]string, error) {
	names, err := s.Prices.KeyLabels(tx)
	out := maps.Clone(names)
	if out != nil {
		out[GivenKey] = theirs
	}
	return out, err
}

// withNames names parts by their ids. Those whose name is empty are one part.
func withNames(rows []partRow, names map[string]string) []partRow {
	out, one := make([]partRow, 0, len(rows)), map[int64]int{} // by day
	for _, r := range rows {
		name, known := names[*cmp.Or(r.ID, new(string))]
		if known && name != "" {
			r.Name = &name
		}
		if !known || name != "" {
			out = append(out, r)
			continue
		}
		if i, ok := one[r.Day]; ok {
			o := &out[i]
			o.Calls, o.Unpriced, o.Spent, o.Sessions = o.Calls+r.Calls, o.Unpriced+r.Unpriced, o.Spent+r.Spent, o.Sessions+r.Sessions
			o.Given += r.Given
			continue
		}
		one[r.Day] = len(out)
		r.ID, r.Name = nil, new(ownKeys)
		out = append(out, r)
	}
	return out
}

func usageParts(rows []partRow) []UsagePart {
	out := make([]UsagePart, len(rows))
	for i, r := range rows {
		out[i] = UsagePart{
			ID: named(r.ID), Name: named(r.Name), Spent: money.Dollars(r.Spent), Given: money.Dollars(r.Given),
			Sessions: r.Sessions, Calls: r.Calls, Unpriced: r.Unpriced,
		}
	}
	return out
}

// named is a text, or nil for an empty one.
func named(text *string) *string {
	if text == nil || *text == "" {
		return nil
	}
	return text
}
