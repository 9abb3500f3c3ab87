package dashboard

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
	"yardmaster/internal/policy"
)

// Value is a number of a widget.
type Value struct {
	_        struct{} `doc:"A number of a widget: a count, a rate or an amount." schema:"DashboardValue"`
	N        *int64   `json:"n" example:"12" doc:"how many; of a rate, how many went well; null for amounts"`
	D        *int64   `json:"d" example:"15" doc:"of how many, for rates; null for others. 0: there was nothing"`
	USD      *string  `json:"usd" format:"decimal" example:"3.15" doc:"amount; null: none, or unknown since no call has a price"`
	Unpriced *int64   `json:"unpriced" example:"0" doc:"of amounts: calls without a known price, which are not in usd; null for others"`
}

// Point is a number at a time.
type Point struct {
	_  struct{}  `doc:"A number of a part of the time." schema:"DashboardPoint"`
	At time.Time `json:"at" doc:"the beginning of the part"`
	Value
}

// Row is a row of a table or of a feed.
type Row struct {
	_     struct{}   `doc:"A row of a widget." schema:"DashboardRow"`
	Kind  string     `json:"kind" enum:"repo,measure,pr,task,approval,blocker,escalation,plan" doc:"what it is about; measure: of health and waiting"`
	ID    *string    `json:"id" format:"uuid" doc:"its id; null for repo and measure"`
	Label string     `json:"label" example:"acme/web" doc:"what it is called"`
	Repo  *string    `json:"repo" example:"acme/web" doc:"owner/name; null: of none"`
	Why   *string    `json:"why" example:"null" doc:"why it failed, or waits; null for others"`
	At    *time.Time `json:"at" doc:"when it happened, or since when it waits; null in tables"`
	Value
}

// Data is what a widget shows.
type Data struct {
	_          struct{}  `doc:"What a widget shows." schema:"DashboardData"`
	Missing    []string  `json:"missing_scopes" example:"[]" doc:"scopes that the credential lacks: nothing is shown then"`
	AsOf       time.Time `json:"as_of" doc:"the time of the numbers, and the end of the window"`
	Value      *Value    `json:"value" doc:"of stat; null for others"`
	Points     []Point   `json:"points" doc:"of series, the oldest first"`
	Rows       []Row     `json:"rows" doc:"of table and feed"`
	NextCursor *string   `json:"next_cursor" doc:"of the rows that follow; null: none do"`
}

// Rows of a page, and the most rows that a list is read for.
const (
	firstRows = 10
	mostRows  = 100
	listed    = 500
)

// page is which rows are wanted.
type page struct {
	after *string // key of the last row before; nil: it is the first page
	most  int
}

func count(n int64) Value       { return Value{N: &n} }
func rate(r measure.Rate) Value { return Value{N: &r.N, D: &r.D} }

// value is a counted part in the form of a source.
func (s source) value(n, d int64, micros *int64, unpriced int64) Value {
	switch {
	case s.money && micros == nil && unpriced == 0:
		micros = new(int64) // nothing was called, which costs nothing
		fallthrough
	case s.money:
		return Value{USD: money.DollarsOrNone(micros), Unpriced: &unpriced}
	case s.rate:
		return rate(measure.Rate{N: n, D: d})
	}
	return count(n)
}

// data reads what a widget shows the actor of the transaction.
func (s *Service) data(tx *db.Tx, w Spec, p page) (out Data, err error) {
	out = Data{Missing: []string{}, AsOf: tx.Now, Points: []Point{}, Rows: []Row{}}
	from, ok := sourceOf(w.Source)
	if !ok { // markdown, or what another version knows
		return out, nil
	}
	if missing := from.scopes &^ policy.From(tx.Context()).Scopes; missing != 0 {
		out.Missing = missing.Names()
		return out, nil
	}
	long, width := window(w.Window)
	span := measure.Span{From: tx.Now.Add(-long), To: tx.Now.Add(time.Microsecond)}
	var all []keyed
	switch w.Kind {
	case Stat:
		v, err := stat(tx, from, span, w.RepoID)
		out.Value = &v
		return out, err
	case Series:
		out.Points, err = points(tx, from, span, width, int(long/width), w.RepoID)
		return out, err
	case Table:
		all, err = table(tx, from, span, w.RepoID)
	case Feed:
		all, err = feed(tx, from, span)
	}
	out.Rows, out.NextCursor = cut(all, p)
	return out, err
}

func stat(tx *db.Tx, from source, span measure.Span, repoID string) (v Value, err error) {
	switch from.name {
	case "pulls_open":
		n, err := measure.OpenIn(tx)
		return count(n.Pulls), err
	case "tasks_running":
		n, err := measure.RunningTasks(tx, span)
		return count(n.Running), err
	case "boxes_online":
		r, err := measure.BoxesOnline(tx)
		return rate(r), err
	case "waiting":
		n, err := measure.WaitingFor(tx)
		return count(total(n)), err
	}
	b, err := measure.Total(tx, from.what, span, repoID)
	return from.value(b.N, b.D, b.Micros, b.Unpriced), err
}

// total is how much waits, without what is in two places.
func total(w measure.Waiting) int64 {
	return w.Approvals + w.Pulls + w.Plans + w.Questions + w.Forms + w.Escalations - w.Doubles + w.Tasks
}

// points are n parts of a span, each as long as width. What is a little beyond the last one, as costs are whose minutes
// begin before the span, is in it.
func points(tx *db.Tx, from source, span measure.Span, width time.Duration, n int, repoID string) ([]Point, error) {
	if from.money {
		span.From = span.From.Truncate(time.Minute) // as it is kept
	}
	parts, err := measure.Series(tx, from.what, span, width, repoID)
	if err != nil {
		return nil, err
	}
	out := make([]Point, n)
	for i := range out {
		out[i] = Point{At: span.From.Add(time.Duration(i) * width), Value: from.value(0, 0, nil, 0)}
	}
	var last measure.Bucket
	for _, b := range parts {
		if b.At >= int64(n)-1 {
			last = last.Plus(b)
			b = last
		}
		out[min(b.At, int64(n)-1)].Value = from.value(b.N, b.D, b.Micros, b.Unpriced)
	}
	return out, nil
}

// keyed is a row with its place in the order of its widget.
type keyed struct {
	key string
	Row
}

func table(tx *db.Tx, from source, span measure.Span, repoID string) (out []keyed, err error) {
	add := func(label string, v Value) {
		out = append(out, keyed{fmt.Sprintf("%03d", len(out)), Row{Kind: "measure", Label: label, Value: v}})
	}
	switch from.name {
	case "health":
		for _, name := range []string{"tasks_ended", "pulls_ended", "checks_ended"} {
			of, _ := sourceOf(name)
			b, err := measure.Total(tx, of.what, span, "")
			if err != nil {
				return nil, err
			}
			add(name, rate(measure.Rate{N: b.N, D: b.D}))
		}
		return out, nil
	case "waiting":
		w, err := measure.WaitingFor(tx)
		add("approvals", count(w.Approvals))
		add("pulls", count(w.Pulls))
		add("plans", count(w.Plans))
		add("blockers", count(w.Questions+w.Forms))
		add("escalations", count(w.Escalations-w.Doubles))
		add("tasks", count(w.Tasks))
		return out, err
	}
	shares, err := measure.ByRepoOf(tx, from.what, span, repoID)
	for _, r := range shares {
		row := Row{Kind: "repo", Label: r.Repo, Value: from.value(r.N, r.D, r.Micros, r.Unpriced)}
		if r.Repo != "" {
			row.Repo = &r.Repo
		}
		out = append(out, keyed{r.Repo, row})
	}
	return out, err
}

func feed(tx *db.Tx, from source, span measure.Span) (out []keyed, err error) {
	add := func(falls bool, kind, id, label string, repo, why *string, at time.Time) {
		n := at.UnixMicro()
		if falls {
			n = 1<<62 - n
		}
		out = append(out, keyed{fmt.Sprintf("%019d/%s", n, id), Row{Kind: kind, ID: &id, Label: label, Repo: repo, Why: why, At: &at}})
	}
	switch from.name {
	case "pulls_merged":
		rows, err := measure.Merges(tx, span, listed)
		for _, r := range rows {
			add(true, "pr", r.PRID, fmt.Sprintf("#%d %s", r.Number, r.Title), &r.Repo, nil, r.MergedAt)
		}
		return out, err
	case "tasks_failed":
		rows, err := measure.Failures(tx, span, listed)
		for _, r := range rows {
			add(true, "task", r.TaskID, r.Title, &r.Repo, &r.Why, r.FailedAt)
		}
		return out, err
	}
	rows, _, err := measure.Waits(tx, listed)
	for _, r := range rows {
		add(false, r.Kind, r.ID, r.Title, r.Repo, &r.Why, r.Since)
	}
	return out, err
}

// cut is a page of rows, in the order of their keys, no two of which are the same.
func cut(all []keyed, p page) ([]Row, *string) {
	slices.SortFunc(all, func(a, b keyed) int { return strings.Compare(a.key, b.key) }) // a database may sort texts otherwise
	out := []Row{}
	last := ""
	for _, r := range all {
		if p.after != nil && r.key <= *p.after {
			continue
		}
		if len(out) == p.most {
			next := base64.RawURLEncoding.EncodeToString([]byte("w" + last))
			return out, &next
		}
		out, last = append(out, r.Row), r.key
	}
	return out, nil
}

// from reads a cursor of cut.
func from(cursor string) (*string, error) {
	if cursor == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	key, ok := strings.CutPrefix(string(text), "w")
	if err != nil || !ok {
		return nil, fault.Field("cursor", "is not a cursor of this widget")
	}
	return &key, nil
}
