package task

import (
	"fmt"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/money"
)

// view makes the wire form of tasks of tx.Account.
func (s *Service) view(tx *db.Tx, rows []Row) ([]Task, error) {
	depth, err := countQueue(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	var f *Facts
	var lanes []lane
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
		if lanes, err = lanesOf(tx, tx.Account); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(pending, func(t Row) bool { return t.WaitingDeps > 0 || t.ConflictWith != nil }) {
			all, err := s.obstacles(tx, tx.Account)
			if err == nil {
				err = f.behind(tx, all, pending)
			}
			if err != nil {
				return nil, err
			}
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
	var flying, asking []string
	for i := range rows {
		if rows[i].Status.InFlight() {
			flying = append(flying, rows[i].ID)
		}
		if rows[i].Status == Held || rows[i].Status == Running {
			asking = append(asking, rows[i].ID)
		}
	}
	var wants []Want
	if s.Wants != nil && len(asking) > 0 {
		if wants, err = s.Wants(tx, asking); err != nil {
			return nil, err
		}
	}
	reserved, err := reservations(tx, flying)
	if err != nil {
		return nil, err
	}
	var stops []Stop
	if s.Stops != nil && len(asking) > 0 {
		if stops, err = s.Stops(tx, asking); err != nil {
			return nil, err
		}
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
			at, err := position(tx, lanes, t)
			if err != nil {
				return nil, err
			}
			w.QueuePosition = &at
			w.Holds = append(w.Holds, f.holds(t)...)
			w.Stuck = t.Stuck || stuckBehind(w.Holds, tx.Now)
		case Running:
			w.Holds = parkedFor(t, wants)
		case Held:
			w.Holds = heldFor(t, wants, stops)
			w.Stuck = t.Stuck || tx.Now.Sub(t.UpdatedAt) > stuckBehindPerson
		}
		for j := range w.Holds {
			w.Holds[j].Since = w.Holds[j].Since.Truncate(time.Millisecond)
		}
		w.DependsOn = append(w.DependsOn, deps[t.ID]...)
		if micros, ok := paid[t.ID]; ok {
			w.Budget.Spent = money.DollarsOrNone(&micros)
		}
		if micros, ok := reserved[t.ID]; ok {
			w.Budget.Reserved = money.DollarsOrNone(&micros)
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
		Priority: t.Priority, RunID: t.RunID, BoxID: t.BoxID, Branch: t.Branch, BaseSHA: t.BaseSHA, PRID: t.PRID, AskID: t.AskID, PlanID: t.PlanID, GroupID: t.GroupID,
		DependsOn: []string{}, Files: t.Files.V, Guidance: t.Guidance, Template: t.Template,
		Budget: TaskBudget{USD: money.DollarsOrNone(t.BudgetMicros)}, Labels: t.Labels.V, CreatedBy: t.CreatedBy, CreatedAt: t.CreatedAt.Truncate(time.Millisecond),
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
