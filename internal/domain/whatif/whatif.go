// Package whatif plays a recorded queue with other boxes or another policy, and tells what that
// would have meant beside what was. It reads and changes nothing.
//
// Files: whatif.go what is found, ops.go the capability.
package whatif

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/money"
)

// Try is a try as task.history answers it.
type Try = queue.Try

// Machines are what a queue is played with.
type Machines = queue.Machines

// Found is what a simulation found.
type Found struct {
	_         struct{} `doc:"What was, and what would have been." schema:"Simulation"`
	Tries     int64    `json:"tries" example:"812" doc:"that were played"`
	Slots     int64    `json:"slots" example:"8" doc:"that they were played with"`
	Seats     int64    `json:"seats" example:"0" doc:"agents at once; 0: as many as there are slots"`
	SameOrder int64    `json:"same_order" example:"803" doc:"tries that began in the place that they had"`
	Waits     []Wait   `json:"waits" doc:"by kind of task"`
	Cost      Cost     `json:"cost" doc:"by known prices"`
	Approvals Counts   `json:"approvals" doc:"how often people were asked about merges"`
}

// Wait is how long tries of a kind waited.
type Wait struct {
	_    struct{}       `doc:"How long tries waited, from when they were ready." schema:"SimulatedWait"`
	Kind queue.TaskKind `json:"kind" doc:"kind of their task"`
	N    int64          `json:"n" example:"120" doc:"tries"`
	P50  Seconds        `json:"p50_s" doc:"half of them waited no longer"`
	P90  Seconds        `json:"p90_s" doc:"nine of ten waited no longer"`
}

// Seconds are a time as it was, and as it would have been.
type Seconds struct {
	_     struct{} `doc:"Seconds, as it was and as it would have been." schema:"SimulatedSeconds"`
	Was   float64  `json:"was" example:"340.5" doc:"seconds, as it was"`
	Would float64  `json:"would" example:"12" doc:"seconds, as it would have been"`
}

// Counts are a number as it was, and as it would have been.
type Counts struct {
	_     struct{} `doc:"A number, as it was and as it would have been." schema:"SimulatedCounts"`
	Was   int64    `json:"was" example:"41" doc:"as it was"`
	Would int64    `json:"would" example:"7" doc:"as it would have been"`
}

// Cost is what tries cost.
type Cost struct {
	_             struct{} `doc:"What the tries cost, and would have cost." schema:"SimulatedCost"`
	Was           *string  `json:"was" format:"decimal" example:"61.20" doc:"decimal US dollars; null: no call had a price"`
	Would         *string  `json:"would" format:"decimal" example:"48.00" doc:"decimal US dollars; null: no call had a price"`
	UnpricedCalls int64    `json:"unpriced_calls" example:"0" doc:"calls that are in neither"`
}

// Simulate plays tries in the order of their claims, and compares. policy is a policy file; nil:
// what was in force. now is when those end that go on. wrong are the faults of the file.
func Simulate(all []Try, policy []byte, m Machines, now time.Time) (out Found, wrong []string) {
	var p *repo.Policy
	if policy != nil {
		read, wrong := repo.ParsePolicy(policy)
		if len(wrong) > 0 {
			return out, wrong
		}
		p = &read
	}

	waiting := make([]queue.Waiting, len(all))
	for i, t := range all {
		end := now
		if t.EndedAt != nil {
			end = *t.EndedAt
		}
		waiting[i] = queue.Waiting{
			ID: t.RunID, TaskID: t.TaskID, Repo: t.Repo, Template: t.Template, Priority: t.Priority, CreatedAt: t.CreatedAt,
			ReadyAt: t.ReadyAt, Takes: max(end.Sub(t.ClaimedAt), 0),
		}
	}
	if m.Slots == 0 {
		m.Slots = max(atOnce(all, now), 1) // one that has just begun, by a clock that is behind
	}
	played := queue.Play(waiting, m)
	out = Found{Tries: int64(len(all)), Slots: int64(m.Slots), Seats: int64(m.Seats), Cost: spent(all, p), Approvals: asked(all, p)}
	began := map[string]time.Time{}
	for i, one := range played {
		began[one.ID] = one.BeganAt
		if one.ID == all[i].RunID {
			out.SameOrder++
		}
	}
	out.Waits = waits(all, began)
	return out, nil
}

// atOnce is how many tries went on at the same time at most.
func atOnce(all []Try, now time.Time) (most int) {
	type turn struct {
		at time.Time
		by int
	}
	var turns []turn
	for _, t := range all {
		end := now
		if t.EndedAt != nil {
			end = *t.EndedAt
		}
		turns = append(turns, turn{t.ClaimedAt, 1}, turn{end, -1})
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	n := 0
	for _, t := range turns {
		n += t.by
		most = max(most, n)
	}
	return most
}

func waits(all []Try, began map[string]time.Time) []Wait {
	was, would := map[string][]time.Duration{}, map[string][]time.Duration{}
	var kinds []string
	for _, t := range all {
		if was[string(t.Kind)] == nil {
			kinds = append(kinds, string(t.Kind))
		}
		was[string(t.Kind)] = append(was[string(t.Kind)], t.ClaimedAt.Sub(t.ReadyAt))
		would[string(t.Kind)] = append(would[string(t.Kind)], began[t.RunID].Sub(t.ReadyAt))
	}
	slices.Sort(kinds)
	out := []Wait{}
	for _, k := range kinds {
		out = append(out, Wait{
			Kind: queue.TaskKind(k), N: int64(len(was[k])),
			P50: Seconds{Was: quantile(was[k], 50), Would: quantile(would[k], 50)},
			P90: Seconds{Was: quantile(was[k], 90), Would: quantile(would[k], 90)},
		})
	}
	return out
}

// quantile is the smallest wait, in seconds, that so many of a hundred do not exceed.
func quantile(all []time.Duration, percent int) float64 {
	slices.Sort(all)
	return all[(len(all)*percent+99)/100-1].Seconds()
}

// spent is what tries cost, and what they would have cost under the limits of a policy.
func spent(all []Try, p *repo.Policy) (out Cost) {
	var was, would int64
	priced, ofTask := false, map[string]int64{}
	for _, t := range all {
		out.UnpricedCalls += t.UnpricedCalls
		usd, err := strconv.ParseFloat(textOr(t.CostUSD), 64)
		if err != nil {
			continue
		}
		priced = true
		micros := *money.Micros(&usd)
		was += micros
		if p != nil {
			if most := money.Micros(p.Budget.RunUSD); most != nil {
				micros = min(micros, *most)
			}
			if most := money.Micros(p.Budget.TaskUSD); most != nil {
				micros = min(micros, max(*most-ofTask[t.TaskID], 0))
			}
		}
		ofTask[t.TaskID] += micros
		would += micros
	}
	if priced {
		out.Was, out.Would = new(money.Dollars(was)), new(money.Dollars(would))
	}
	return out
}

func textOr(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// asked is how often people were asked about merges, and would have been by the mode of a policy.
func asked(all []Try, p *repo.Policy) (out Counts) {
	seen := map[string]bool{}
	for _, t := range all {
		if seen[t.TaskID] {
			continue // the numbers are of the task
		}
		seen[t.TaskID] = true
		was := t.Asked
		out.Was += was
		switch {
		case p == nil || textOr(t.MergeMode) == string(p.Merge.Mode):
			out.Would += was
		case p.Merge.Mode == "auto":
			out.Would += t.Protected
		case p.Merge.Mode == "ask" && t.Merged:
			out.Would += max(was, 1)
		case p.Merge.Mode == "ask":
			out.Would += was
		}
	}
	return out
}
