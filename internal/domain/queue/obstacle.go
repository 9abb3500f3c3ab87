package queue

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// obstacle is a task that others wait for and that itself waits for a person:
// it is held or stuck, its run is parked, or its pull request asks for a
// decision.
type obstacle struct {
	ID   string
	hold task.Hold // of the tasks that wait for it
}

// obstacles lists the obstacles of an account, at most maxObstacles.
func (s *Service) obstacles(tx *db.Tx, account string) ([]obstacle, error) {
	rows, err := selectObstacles.All(tx, account, maxObstacles)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	wants, err := s.Related.Wants(tx, ids)
	if err != nil {
		return nil, err
	}
	stops, err := s.Related.Stops(tx, ids)
	if err != nil {
		return nil, err
	}
	needs, err := s.pullNeeds(tx, rows)
	if err != nil {
		return nil, err
	}
	var out []obstacle
	for i := range rows {
		if h, ok := rows[i].hold(wants, stops, needs); ok {
			out = append(out, obstacle{rows[i].ID, h})
		}
	}
	return out, nil
}

// hold returns the hold of the tasks that wait for this one; false if they wait for no
// person.
func (r *obstacleRow) hold(wants []task.Want, stops []task.Stop, needs map[string]task.PullNeed) (task.Hold, bool) {
	t := task.Row{ID: r.ID, FailureKind: r.FailureKind, UpdatedAt: r.UpdatedAt}
	own := task.ParkedFor(&t, wants)
	if r.Status == task.Held {
		own = task.HeldFor(&t, wants, stops)
	}
	h := task.Hold{Reason: task.HoldPerson, Since: r.UpdatedAt, Blocking: true}
	var need *task.PullNeed
	if r.PRID != nil && r.Status.Shipped() {
		if n, ok := needs[*r.PRID]; ok {
			need = &n
		}
	}
	switch {
	case len(own) > 0:
		h.Since, h.Clear = own[0].Since, own[0].Clear
		h.ClearsWhen = "the task " + r.ID + ", which it waits for, goes on: " + own[0].ClearsWhen
	case need != nil:
		h.Since, h.Clear = need.Since, need.Clear
		h.ClearsWhen = "the pull request of the task " + r.ID + ", which it waits for, is merged: " + need.Words()
	case !r.Stuck:
		return h, false
	case r.PRID != nil && r.Status.Shipped():
		h.Clear = &task.Clear{Capability: "pr.rearm_babysit", Args: map[string]string{"id": *r.PRID}}
		h.ClearsWhen = "the pull request of the task " + r.ID + ", which it waits for and which is stuck, is repaired and merged"
	default:
		h.Clear = &task.Clear{Capability: "task.redispatch", Args: map[string]string{"id": r.ID}}
		h.ClearsWhen = "the task " + r.ID + ", which it waits for and which is stuck, moves on or is redispatched"
	}
	return h, true
}

// pullNeeds returns the needs of the tasks' pull requests, by pull request.
func (s *Service) pullNeeds(tx *db.Tx, rows []obstacleRow) (map[string]task.PullNeed, error) {
	var prs []string
	for i := range rows {
		if rows[i].PRID != nil && rows[i].Status.Shipped() {
			prs = append(prs, *rows[i].PRID)
		}
	}
	if len(prs) == 0 {
		return nil, nil
	}
	return s.Related.PullNeeds(tx, prs)
}

// holdFrom returns the hold of a task that was queued at a time.
func (o *obstacle) holdFrom(queued time.Time) task.Hold {
	h := o.hold
	h.Since = latest(queued, h.Since)
	return h
}

// behind adds to the facts which obstacles the pending tasks among rows wait for.
func (f *facts) behind(tx *db.Tx, all []obstacle, rows []task.Row) error {
	f.Behind = map[string][]obstacle{}
	var waiting []string
	for i := range rows {
		if t := &rows[i]; t.Status == task.Pending && (t.WaitingDeps > 0 || t.ConflictWith != nil) {
			waiting = append(waiting, t.ID)
		}
	}
	if len(all) == 0 || len(waiting) == 0 {
		return nil
	}
	found, err := selectFollowers(tx, all, waiting)
	for i := range all {
		for _, w := range found {
			if w.Root == all[i].ID {
				f.Behind[w.ID] = append(f.Behind[w.ID], all[i])
			}
		}
	}
	return err
}
