package budget

import (
	"cmp"
	"maps"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/money"
)

// GivenKey stands in the ledger of days for a key that another account has given: whose it is and
// what it is called is that account's alone.
const GivenKey = "given"

// GivenCall is a call that another account has paid for.
type GivenCall struct {
	Account, Session string // of who made it
	Provider, Model  string
	Micros           *int64 // what it has cost; nil: it had no price
}

// NoteGiven counts a call that another account has paid for in the days of who made it. It counts
// for none of their limits.
func NoteGiven(tx *db.Tx, c GivenCall) error {
	day := addDayArgs{
		AccountID: c.Account, Day: dayOf(tx.Now), SessionID: c.Session, KeyID: GivenKey, Provider: c.Provider, Model: c.Model, Calls: 1,
	}
	if c.Micros == nil {
		day.Unpriced = 1
	} else {
		day.GivenMicros = *c.Micros
	}
	_, err := addDay.Exec(tx, day)
	return err
}

// mostParts is how many parts of a kind an answer has.
const mostParts = 100

// ledgerRow is a row of the ledger of days with what its session was for.
type ledgerRow struct {
	Day                               int64
	SessionID, KeyID, Provider, Model string
	Calls, Unpriced, Spent, Given     int64
	RepoID, Kind, TaskID, PlanID      *string
}

// ledgerOf are the sums of a month, by the kind of part and its id.
type ledgerOf struct {
	days     map[int64]*dayRow
	sessions map[string]bool
	parts    map[string]map[partID]*tally
}

// partID tells a part from the others of its kind.
type partID struct{ id, name string }

// tally is the calls of one part.
type tally struct {
	partID
	calls, unpriced, spent, given int64
	sessions                      map[string]bool
	last                          string // the session of the last row
	n                             int64
}

// add counts a row.
func (t *tally) add(r *ledgerRow) {
	t.calls, t.unpriced, t.spent, t.given = t.calls+r.Calls, t.unpriced+r.Unpriced, t.spent+r.Spent, t.given+r.Given
	if r.SessionID == t.last || t.sessions[r.SessionID] {
		return
	}
	if t.sessions == nil {
		t.sessions = map[string]bool{}
	}
	t.last, t.sessions[r.SessionID] = r.SessionID, true
	t.n++
}

// dearer orders parts, the dearest first.
func dearer(a, b *tally) int {
	return cmp.Or(cmp.Compare(b.spent, a.spent), cmp.Compare(b.calls, a.calls), cmp.Compare(a.id, b.id), cmp.Compare(a.name, b.name))
}

// partKinds are the parts of an answer, and the id and name of each that are in a row.
var partKinds = map[string]func(*ledgerRow) partID{
	"model": func(r *ledgerRow) partID { return partID{r.Provider, r.Model} },
	"repo":  func(r *ledgerRow) partID { return partID{id: text(r.RepoID)} },
	"kind":  func(r *ledgerRow) partID { return partID{name: text(r.Kind)} },
	"key":   func(r *ledgerRow) partID { return partID{id: r.KeyID} },
	"task":  func(r *ledgerRow) partID { return partID{id: text(r.TaskID)} },
	"plan":  func(r *ledgerRow) partID { return partID{id: text(r.PlanID)} },
}

// addUp reads the ledger of tx.Account from a day up to another one, once, and adds it up by every
// kind of part.
func addUp(tx *db.Tx, from, to int64) (ledgerOf, error) {
	out := ledgerOf{days: map[int64]*dayRow{}, sessions: map[string]bool{}, parts: map[string]map[partID]*tally{"gift": {}}}
	rows, err := ledger.All(tx, tx.Account, from, to)
	if err != nil {
		return out, err
	}
	gifts, err := giftNames.All(tx, tx.Account)
	if err != nil {
		return out, err
	}
	given := map[string]string{}
	for _, g := range gifts {
		given[g.ID] = g.Name
	}
	for kind := range partKinds {
		out.parts[kind] = map[partID]*tally{}
	}
	for i := range rows {
		r := &rows[i]
		d := out.days[r.Day]
		if d == nil {
			d = &dayRow{Day: r.Day}
			out.days[r.Day] = d
		}
		d.Calls, d.Unpriced, d.Spent, d.Given = d.Calls+r.Calls, d.Unpriced+r.Unpriced, d.Spent+r.Spent, d.Given+r.Given
		out.sessions[r.SessionID] = true
		for kind, of := range partKinds {
			out.count(kind, of(r), r)
		}
		if name, ok := given[r.SessionID]; ok {
			out.count("gift", partID{r.SessionID, name}, r)
		}
	}
	return out, nil
}

func (l *ledgerOf) count(kind string, part partID, r *ledgerRow) {
	t := l.parts[kind][part]
	if t == nil {
		t = &tally{partID: part}
		l.parts[kind][part] = t
	}
	t.add(r)
}

// first are the dearest parts of a kind, with their names. Parts whose object is gone are one with
// what belongs to none.
func (l *ledgerOf) first(s *Service, tx *db.Tx, kind string) ([]UsagePart, error) {
	all := slices.SortedFunc(maps.Values(l.parts[kind]), dearer)
	if kind != "key" {
		all = all[:min(len(all), mostParts)]
	}
	rows := make([]partRow, len(all))
	for i, t := range all {
		rows[i] = partRow{
			ID: named(&t.id), Name: named(&t.name), Calls: t.calls, Unpriced: t.unpriced, Spent: t.spent, Given: t.given, Sessions: t.n,
		}
	}
	var err error
	switch kind {
	case "key":
		var names map[string]string
		if names, err = s.keyNames(tx); err == nil {
			rows = withNames(rows, names)
		}
	case "repo", "task", "plan":
		rows, err = withTitles(tx, kind, rows)
	}
	return usageParts(rows[:min(len(rows), mostParts)]), err
}

// withTitles names parts by what is stored of them.
func withTitles(tx *db.Tx, kind string, rows []partRow) ([]partRow, error) {
	var ids []string
	for _, r := range rows {
		if r.ID != nil {
			ids = append(ids, *r.ID)
		}
	}
	found, err := titles(tx, kind, ids)
	if err != nil {
		return nil, err
	}
	out, none := rows[:0], -1
	for _, r := range rows {
		if r.ID != nil {
			if name, ok := found[*r.ID]; ok {
				r.Name = &name
				out = append(out, r)
				continue
			}
			r.ID = nil
		}
		if none < 0 {
			none = len(out)
			out = append(out, r)
			continue
		}
		o := &out[none]
		o.Calls, o.Unpriced, o.Spent, o.Given = o.Calls+r.Calls, o.Unpriced+r.Unpriced, o.Spent+r.Spent, o.Given+r.Given
		o.Sessions += r.Sessions
	}
	return out, nil
}

// addDays adds the sums of each day, oldest first, and of all of them.
func (u *BillingUsage) addDays(l ledgerOf) {
	sessions, given := int64(len(l.sessions)), int64(0)
	u.Sessions, u.Calls, u.Unpriced = &sessions, new(int64), new(int64)
	for _, day := range slices.Sorted(maps.Keys(l.days)) {
		d := l.days[day]
		*u.Calls, *u.Unpriced, given = *u.Calls+d.Calls, *u.Unpriced+d.Unpriced, given+d.Given
		u.Days = append(u.Days, d.show())
	}
	text := money.Dollars(given)
	u.Given = &text
}
