package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
)

// view makes the wire form of tasks of tx.Account.
func (s *Service) view(tx *db.Tx, rows []Row) ([]Task, error) {
	depth, err := countQueue(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	var f *Facts
	place := map[string]int64{}
	var pending []Row
	for i := range rows {
		if rows[i].Status == Pending {
			pending = append(pending, rows[i])
		}
	}
	if len(pending) > 0 {
		if f, err = s.facts(tx, tx.Account, pending); err != nil {
			return nil, err
		}
		order, err := selectQueue.All(tx, tx.Account)
		if err != nil {
			return nil, err
		}
		for i, id := range order {
			place[id] = int64(i + 1)
		}
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	deps, err := upstreams(tx, ids)
	if err != nil {
		return nil, err
	}
	paid, err := spendings(tx, ids)
	if err != nil {
		return nil, err
	}
	repos := map[string]Repo{}
	out := make([]Task, len(rows))
	for i := range rows {
		t := &rows[i]
		if _, ok := repos[t.RepoID]; !ok {
			if repos[t.RepoID], err = s.RepoByID(tx, t.RepoID); err != nil {
				return nil, fmt.Errorf("repository of task %s: %w", t.ID, err)
			}
		}
		w := wire(t)
		w.Repo = repos[t.RepoID].FullName()
		w.QueueDepth, w.QueueDepthCap = depth, s.QueueCap
		switch t.Status {
		case Pending:
			at := place[t.ID]
			w.QueuePosition = &at
			w.Holds = append(w.Holds, f.holds(t)...)
			w.Stuck = t.Stuck || stuckBehind(w.Holds, tx.Now)
		case Held:
			w.Holds = heldFor(t)
			w.Stuck = t.Stuck || tx.Now.Sub(t.UpdatedAt) > stuckBehindPerson
		}
		for j := range w.Holds {
			w.Holds[j].Since = w.Holds[j].Since.Truncate(time.Millisecond)
		}
		w.DependsOn = append(w.DependsOn, deps[t.ID]...)
		if micros, ok := paid[t.ID]; ok {
			w.Budget.Spent = Dollars(&micros)
		}
		out[i] = w
	}
	return out, nil
}

// wire copies what needs no further reading.
func wire(t *Row) Task {
	w := Task{
		ID: t.ID, Kind: t.Kind, Sink: t.Sink, Title: t.Title, Problem: t.Problem, Status: t.Status, Attempt: t.Attempt,
		MaxAttempts: t.MaxAttempts, FailureKind: t.FailureKind, Failure: t.Failure, Holds: []TaskHold{}, Stuck: t.Stuck,
		Priority: t.Priority, RunID: t.RunID, BoxID: t.BoxID, Branch: t.Branch, BaseSHA: t.BaseSHA, PRID: t.PRID, AskID: t.AskID,
		DependsOn: []string{}, Files: t.Files.V, Guidance: t.Guidance, Template: t.Template,
		Budget: TaskBudget{USD: Dollars(t.BudgetMicros)}, Labels: t.Labels.V, CreatedBy: t.CreatedBy, CreatedAt: t.CreatedAt.Truncate(time.Millisecond),
		ClaimedAt: millis(t.ClaimedAt), StartedAt: millis(t.StartedAt), FinishedAt: millis(t.FinishedAt),
	}
	if t.Status == Claimed {
		w.RunID = nil // until the box has started it
	}
	if t.WIPSHA != nil {
		w.WIP = &TaskWIP{*t.WIPSHA, t.WIPPaths.V, millis(t.WIPAt)}
	}
	return w
}

func millis(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	m := t.Truncate(time.Millisecond)
	return &m
}

// Dollars prints micro-dollars as a decimal with at least two places.
func Dollars(micros *int64) *string {
	if micros == nil {
		return nil
	}
	s := fmt.Sprintf("%d.%06d", *micros/1e6, *micros%1e6)
	for range 4 {
		s = strings.TrimSuffix(s, "0")
	}
	return &s
}

// TaskStall is one reason that holds pending tasks back.
type TaskStall struct {
	Reason     string     `json:"reason"`
	Count      int64      `json:"count" doc:"pending tasks it holds"`
	Since      time.Time  `json:"since" doc:"when it began to hold the first of them"`
	ClearsWhen string     `json:"clears_when"`
	Clear      *TaskClear `json:"clear" doc:"the call that clears it; null when it clears by itself"`
	TaskIDs    []string   `json:"task_ids" doc:"the first few of the tasks, in queue order"`
}

const stallExamples = 5

// stalls groups the holds of pending tasks. Holds of one reason that are
// cleared differently (two disabled repositories) are told apart.
func stalls(rows []Row, f *Facts) (out []TaskStall, claimable int64) {
	index := map[string]int{}
	for i := range rows {
		holds := f.holds(&rows[i])
		if len(holds) == 0 {
			claimable++
		}
		for _, h := range holds {
			key := h.Reason
			if h.Clear != nil {
				for _, k := range slices.Sorted(maps.Keys(h.Clear.Args)) {
					key += "\x00" + h.Clear.Args[k]
				}
			} else if h.Reason == HoldAgent || h.Reason == HoldIsolation {
				key += "\x00" + h.ClearsWhen
			}
			n, ok := index[key]
			if !ok {
				n = len(out)
				index[key] = n
				out = append(out, TaskStall{Reason: h.Reason, Since: h.Since, ClearsWhen: h.ClearsWhen, Clear: h.Clear})
			}
			st := &out[n]
			st.Count++
			if h.Since.Before(st.Since) {
				st.Since = h.Since
			}
			if len(st.TaskIDs) < stallExamples {
				st.TaskIDs = append(st.TaskIDs, rows[i].ID)
			}
		}
	}
	for i := range out {
		out[i].Since = out[i].Since.Truncate(time.Millisecond)
	}
	slices.SortStableFunc(out, func(a, b TaskStall) int { return int(b.Count - a.Count) })
	return out, claimable
}
