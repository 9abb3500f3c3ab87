package overview

import (
	"context"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
)

const (
	flowDays  = 30
	oneDay    = 24 * time.Hour
	queuePart = 15 * time.Minute
	queueSpan = oneDay
)

type flowIn struct {
	Days int    `json:"days,omitempty" minimum:"1" maximum:"90" example:"30" doc:"how many days, today among them; 30 unless sent"`
	Repo string `json:"repo,omitempty" maxLength:"200" example:"acme/web" doc:"owner/name of one repository; all unless sent"`
}

// Flow is how work flows through an account.
type Flow struct {
	_      struct{}    `doc:"How long work takes from filed to merged and where that goes, and how much waits for boxes." schema:"OverviewFlow"`
	From   time.Time   `json:"from" doc:"the first of the days, in UTC"`
	At     time.Time   `json:"at" doc:"the time of the answer"`
	Merged int64       `json:"merged" example:"31" doc:"pull requests that were merged in these days; of the newest 2,000 of tasks the times are told"`
	Failed int64       `json:"failed" example:"4" doc:"tasks that failed for good in these days"`
	Half   *int64      `json:"half_seconds" example:"6720" doc:"from filed to merged: half of them took no longer; null: none was merged"`
	Most   *int64      `json:"most_seconds" example:"22200" doc:"nine of ten took no longer; null: none was merged"`
	Days   []FlowDay   `json:"days" doc:"each day, the oldest first"`
	Queue  []FlowQueue `json:"queue" doc:"the last 24 hours in quarters of an hour, the oldest first"`
	Slots  int64       `json:"slots" example:"6" doc:"how many tasks the account's boxes can have at once, as of now"`

	Templates []FlowTemplate `json:"templates" doc:"how often runs of work succeeded, by template, the most used first; of the newest 20,000 of these days"`
}

// FlowTemplate is how often a template did what it was to do.
type FlowTemplate struct {
	_        struct{} `doc:"How often the runs of a template succeeded, of those that ended by themselves: what was stopped from outside or lost its box is not counted." schema:"FlowTemplate"`
	Template string   `json:"template" example:"default" doc:"its name"`
	N        int64    `json:"n" example:"33" doc:"runs of work that succeeded"`
	D        int64    `json:"d" example:"40" doc:"of how many that succeeded or failed"`
	Low      float64  `json:"low" example:"0.68" doc:"the true rate is hardly lower: the 95 % interval by Wilson"`
	High     float64  `json:"high" example:"0.91" doc:"nor higher"`
	CostUSD  *string  `json:"cost_usd" format:"decimal" example:"0.42" doc:"the mean of the runs that have a price, decimal US dollars; null: none has"`
	Priced   int64    `json:"priced" example:"38" doc:"of how many runs that is the mean"`
}

func ofTemplate(r measure.TemplateRate) FlowTemplate {
	out := FlowTemplate{Template: r.Template, N: r.N, D: r.D, Priced: r.Priced}
	out.Low, out.High = measure.Rate{N: r.N, D: r.D}.Wilson()
	if r.Micros != nil && r.Priced > 0 {
		mean := *r.Micros / r.Priced
		out.CostUSD = money.DollarsOrNone(&mean)
	}
	return out
}

// FlowDay is what came to its end on one day.
type FlowDay struct {
	_      struct{} `doc:"What was merged and failed on one day." schema:"FlowDay"`
	Day    string   `json:"day" format:"date" example:"2026-03-10" doc:"YYYY-MM-DD, in UTC"`
	Merged int64    `json:"merged" example:"4" doc:"pull requests that were merged"`
	Failed int64    `json:"failed" example:"1" doc:"tasks that failed for good"`
	Lead   *int64   `json:"lead_seconds" example:"6720" doc:"the mean from filed to merged; null: none was merged"`
	Parts  []Part   `json:"parts" doc:"where that mean went: each moment counts for one phase, and what no phase explains for none"`
}

// FlowQueue is how much waited in a quarter of an hour.
type FlowQueue struct {
	_       struct{}  `doc:"How much waited for boxes in a quarter of an hour." schema:"FlowQueue"`
	At      time.Time `json:"at" doc:"when it begins"`
	Waiting int64     `json:"waiting" example:"3" doc:"the most tasks that waited at once for a box, of those that got one or wait still"`
	Busy    int64     `json:"busy" example:"6" doc:"the most tasks that were on boxes at once"`
}

func (s *Service) flow(ctx context.Context, in flowIn) (out Flow, err error) {
	if in.Days == 0 {
		in.Days = flowDays
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		repoID := ""
		if in.Repo != "" {
			owner, name, _ := strings.Cut(in.Repo, "/")
			id, ok, err := selectNamed.Maybe(tx, tx.Account, owner, name)
			if err != nil || !ok {
				if err == nil {
					err = fault.Field("repo", "is no repository of the account")
				}
				return err
			}
			repoID = id
		}
		span := measure.Span{From: tx.Now.UTC().Truncate(oneDay).Add(-time.Duration(in.Days-1) * oneDay), To: tx.Now}
		out = Flow{From: span.From, At: tx.Now, Days: make([]FlowDay, in.Days), Templates: []FlowTemplate{}}
		for i := range out.Days {
			out.Days[i] = FlowDay{Day: span.From.Add(time.Duration(i) * oneDay).Format(time.DateOnly), Parts: []Part{}}
		}
		merged, legs, err := measure.Leads(tx, span, repoID)
		if err != nil {
			return err
		}
		out.lead(merged, legs)
		for _, c := range []struct {
			what measure.What
			add  func(i int, n int64)
		}{
			{measure.PullsMerged, func(i int, n int64) { out.Days[i].Merged, out.Merged = n, out.Merged+n }},
			{measure.TasksFailed, func(i int, n int64) { out.Days[i].Failed, out.Failed = n, out.Failed+n }},
		} {
			all, err := measure.Series(tx, c.what, span, oneDay, repoID)
			if err != nil {
				return err
			}
			for _, b := range all {
				c.add(int(b.At), b.N)
			}
		}
		recent := measure.Span{From: tx.Now.Truncate(queuePart).Add(queuePart - queueSpan), To: tx.Now}
		turns, err := measure.Turns(tx, recent, repoID)
		if err != nil {
			return err
		}
		out.Queue = depths(recent, turns)
		templates, err := measure.ByTemplate(tx, span, repoID)
		if err != nil {
			return err
		}
		for _, r := range templates {
			out.Templates = append(out.Templates, ofTemplate(r))
		}
		out.Slots, err = measure.SlotsOf(tx)
		return err
	})
	return out, err
}

// interval is a time in which a phase went on. The lower its rank, the sooner it counts.
type interval struct {
	from, to time.Time
	rank     int
}

// ranks are the phases in the order in which a moment counts for them: what works before what
// waits, since a person is asked while checks run.
var ranks = []PhaseName{"agent", "repair", "checks", "review", "prepare", "person", "queue"}

// lead adds up how long tasks took, by the day on which they were merged.
func (f *Flow) lead(merged []measure.Lead, legs []measure.Leg) {
	of := map[string][]interval{}
	for _, l := range legs {
		all := []Phase{ofPerson(l.Stay)}
		if l.Kind != "person" {
			all = ofRun(l.Stay)
		}
		for _, p := range all {
			i := interval{from: p.BeganAt, rank: slices.Index(ranks, p.Phase)}
			if p.EndedAt != nil {
				i.to = *p.EndedAt
			}
			of[l.PullID] = append(of[l.PullID], i)
		}
	}
	took, sums, counts := []int64{}, make([]map[PhaseName]time.Duration, len(f.Days)), make([]int64, len(f.Days))
	leads := make([]time.Duration, len(f.Days))
	for _, m := range merged {
		day := int(m.MergedAt.Sub(f.From) / oneDay)
		if sums[day] == nil {
			sums[day] = map[PhaseName]time.Duration{}
		}
		whole := max(0, m.MergedAt.Sub(m.FiledAt))
		took, counts[day], leads[day] = append(took, int64(whole/time.Second)), counts[day]+1, leads[day]+whole
		for rank, d := range split(m.FiledAt, m.MergedAt, of[m.PullID]) {
			sums[day][ranks[rank]] += d
		}
	}
	for i := range f.Days {
		if counts[i] == 0 {
			continue
		}
		mean := func(d time.Duration) int64 { return int64(d/time.Second) / counts[i] }
		whole := mean(leads[i])
		f.Days[i].Lead = &whole
		for _, name := range PhaseName("").Values() {
			p := PhaseName(name)
			if d := mean(sums[i][p]); d > 0 {
				f.Days[i].Parts = append(f.Days[i].Parts, Part{Phase: p, Seconds: d})
			}
		}
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		f.Half, f.Most = &took[(n-1)/2], &took[(n*9-1)/10]
	}
}

// split is how much of a time each rank of the intervals has, each moment counted once.
func split(from, to time.Time, all []interval) []time.Duration {
	cuts := []time.Time{from, to}
	for i, v := range all {
		if v.to.IsZero() || v.to.After(to) {
			all[i].to = to
		}
		for _, t := range []time.Time{all[i].from, all[i].to} {
			if t.After(from) && t.Before(to) {
				cuts = append(cuts, t)
			}
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	out := make([]time.Duration, len(ranks))
	for i := 1; i < len(cuts); i++ {
		least := len(ranks)
		for _, v := range all {
			if !v.from.After(cuts[i-1]) && !v.to.Before(cuts[i]) {
				least = min(least, v.rank)
			}
		}
		if least < len(ranks) {
			out[least] += cuts[i].Sub(cuts[i-1])
		}
	}
	return out
}

// depths are the most that waited, and were busy, at once in each part of a span.
func depths(s measure.Span, all []measure.Turn) []FlowQueue {
	n := int(queueSpan / queuePart)
	out := make([]FlowQueue, n)
	var waiting, busy []step
	for _, w := range all {
		claimed := s.To
		if w.ClaimedAt != nil {
			claimed = *w.ClaimedAt
			ended := s.To
			if w.EndedAt != nil {
				ended = *w.EndedAt
			}
			busy = append(busy, step{claimed, 1}, step{ended, -1})
		}
		waiting = append(waiting, step{w.From(), 1}, step{claimed, -1})
	}
	for i := range out {
		out[i].At = s.From.Add(time.Duration(i) * queuePart)
	}
	most(waiting, s, func(i int, v int64) { out[i].Waiting = max(out[i].Waiting, v) })
	most(busy, s, func(i int, v int64) { out[i].Busy = max(out[i].Busy, v) })
	return out
}

// step is a change of a level.
type step struct {
	at time.Time
	by int64
}

// most tells how high a level is in each part of a span: as it begins, and after each change in it.
func most(steps []step, s measure.Span, tell func(part int, level int64)) {
	slices.SortStableFunc(steps, func(a, b step) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return int(a.by - b.by) // what leaves goes first
	})
	level, next, n := int64(0), 0, int(queueSpan/queuePart)
	for i := range n {
		from, to := s.From.Add(time.Duration(i)*queuePart), s.From.Add(time.Duration(i+1)*queuePart)
		for ; next < len(steps) && !steps[next].at.After(from); next++ {
			level += steps[next].by
		}
		tell(i, level)
		for ; next < len(steps) && steps[next].at.Before(to) && steps[next].at.Before(s.To); next++ {
			level += steps[next].by
			tell(i, level)
		}
	}
}
