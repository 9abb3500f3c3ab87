package task

import (
	"yardmaster/internal/db"
	"yardmaster/internal/money"
)

// view returns the wire form of tasks of tx.Account. newest tells that no pending
// task of the account that is not among rows is as new as one that is.
func (s *Service) view(tx *db.Tx, rows []Row, newest bool) ([]Task, error) {
	depth, err := s.Queue.Depth(tx)
	if err != nil {
		return nil, err
	}
	repos := map[string]Repo{}
	if err := AddRepos(tx, s.Repos, rows, repos); err != nil {
		return nil, err
	}
	var waits map[string]Wait
	if pending := pendingOf(rows); len(pending) > 0 {
		if waits, err = s.Queue.Explain(tx, pending, repos, newest); err != nil {
			return nil, err
		}
	}
	ids := make([]string, len(rows))
	var tried []string // the others have no session
	for i := range rows {
		if ids[i] = rows[i].ID; rows[i].Attempt > 0 {
			tried = append(tried, rows[i].ID)
		}
	}
	deps, err := upstreams(tx, ids)
	if err != nil {
		return nil, err
	}
	paid, err := s.Related.Spent(tx, tried)
	if err != nil {
		return nil, err
	}
	var flying, asking, running []string
	for i := range rows {
		if rows[i].Status.InFlight() || rows[i].PRID != nil { // a round may be under way
			flying = append(flying, rows[i].ID)
		}
		if rows[i].Status == Running {
			running = append(running, rows[i].ID)
		}
		if rows[i].Status == Held || rows[i].Status == Running {
			asking = append(asking, rows[i].ID)
		}
	}
	var wants []Want
	if len(asking) > 0 {
		if wants, err = s.Related.Wants(tx, asking); err != nil {
			return nil, err
		}
	}
	var doing map[string]string
	if len(running) > 0 {
		if doing, err = s.Related.Activities(tx, running); err != nil {
			return nil, err
		}
	}
	reserved, err := s.Related.SetAside(tx, flying)
	if err != nil {
		return nil, err
	}
	var stops []Stop
	if len(asking) > 0 {
		if stops, err = s.Related.Stops(tx, asking); err != nil {
			return nil, err
		}
	}
	prs := shippedPulls(rows)
	needs, err := s.pullNeeds(tx, prs)
	if err != nil {
		return nil, err
	}
	waited, err := s.pullWaits(tx, prs)
	if err != nil {
		return nil, err
	}
	out := make([]Task, len(rows))
	for i := range rows {
		t := &rows[i]
		w := wire(t)
		w.Repo = repos[t.RepoID].FullName()
		w.QueueDepth, w.QueueDepthCap = depth, s.Queue.Cap()
		switch t.Status {
		case Pending:
			wait := waits[t.ID]
			w.QueuePosition = &wait.Place
			w.Holds = append(w.Holds, wait.Holds...)
			w.Stuck = t.Stuck || stuckBehind(w.Holds, tx.Now)
		case AwaitingCI, AwaitingReview, Mergeable:
			if n, ok := needs[deref(t.PRID)]; ok && t.PRID != nil {
				w.Holds = append(w.Holds, n.hold())
			}
			if wait, ok := waited[deref(t.PRID)]; ok && t.PRID != nil {
				w.Holds = append(w.Holds, wait.hold())
			}
			if t.Status == Mergeable && t.StackedOn != nil {
				on, _, err := Unmerged(tx, t.ID)
				if err != nil {
					return nil, err
				}
				if on != "" {
					w.Holds = append(w.Holds, Hold{
						Reason: HoldDependencies, Since: t.UpdatedAt, Blocking: true,
						ClearsWhen: "the task " + on + ", on whose work it was begun, is merged",
					})
				}
			}
			w.Stuck = t.Stuck || stuckBehind(w.Holds, tx.Now)
		case Running:
			w.Holds = ParkedFor(t, wants)
			if title, ok := doing[t.ID]; ok {
				w.Activity = &title
			}
		case Held:
			w.Holds = HeldFor(t, wants, stops)
			w.Stuck = t.Stuck || tx.Now.Sub(t.UpdatedAt) > StuckAfter
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

// shippedPulls are the pull requests of shipped tasks.
func shippedPulls(rows []Row) (prs []string) {
	for i := range rows {
		if rows[i].PRID != nil && rows[i].Status.Shipped() {
			prs = append(prs, *rows[i].PRID)
		}
	}
	return prs
}

// pullNeeds returns what pull requests need of people, by pull request.
func (s *Service) pullNeeds(tx *db.Tx, prs []string) (map[string]PullNeed, error) {
	if len(prs) == 0 {
		return nil, nil
	}
	return s.Related.PullNeeds(tx, prs)
}

// pullWaits returns which pull requests wait for a limit of their code host, or for room in the
// queue.
func (s *Service) pullWaits(tx *db.Tx, prs []string) (map[string]PullWait, error) {
	if len(prs) == 0 {
		return nil, nil
	}
	return s.Related.PullWaits(tx, prs)
}

// pendingOf returns the pending tasks among rows.
func pendingOf(rows []Row) []Row {
	n := 0
	for i := range rows {
		if rows[i].Status == Pending {
			n++
		}
	}
	if n == len(rows) {
		return rows
	}
	out := make([]Row, 0, n)
	for i := range rows {
		if rows[i].Status == Pending {
			out = append(out, rows[i])
		}
	}
	return out
}

// wire returns the wire form of a task without the members that other tables decide.
func wire(t *Row) Task {
	w := Task{
		ID: t.ID, Kind: Kind(t.Kind), Sink: t.Sink, Title: t.Title, Problem: t.Problem, Status: t.Status, Attempt: t.Attempt,
		MaxAttempts: t.MaxAttempts, FailureKind: t.FailureKind, Failure: t.Failure, Holds: []Hold{}, Stuck: t.Stuck,
		Priority: t.Priority, RunID: t.RunID, BoxID: t.BoxID, Branch: t.Branch, BaseSHA: t.BaseSHA, PRID: t.PRID, AskID: t.AskID,
		PlanID: t.PlanID, GroupID: t.GroupID,
		DependsOn: []string{}, Files: t.Files.V, Guidance: t.Guidance, Template: t.Template,
		Budget: Budget{USD: money.DollarsOrNone(t.BudgetMicros)}, Labels: t.Labels.V, CreatedBy: t.CreatedBy, RequestedBy: t.RequestedBy,
		CreatedAt: t.CreatedAt,
		ClaimedAt: t.ClaimedAt, StartedAt: t.StartedAt, FinishedAt: t.FinishedAt,
	}
	if t.Status == Claimed {
		w.RunID = nil // until the box has started it
	}
	if t.WIPSHA != nil {
		w.WIP = &WIP{SHA: *t.WIPSHA, Paths: t.WIPPaths.V, At: t.WIPAt}
	}
	return w
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
