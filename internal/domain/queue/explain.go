package queue

import (
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// Place is the place, from 1, of a task that tx has just created: the last of its
// lane.
func (s *Service) Place(tx *db.Tx, t *task.Row) (int64, error) {
	lanes, err := lanesOf(tx, t.AccountID)
	if err != nil {
		return 0, err
	}
	q := lineOf(lanes)
	if err := q.admit(tx, t.AccountID, t.RepoID); err != nil {
		return 0, err
	}
	return q.at(t, q.ready(t.Lane())), nil
}

// Explain returns the places and the holds of pending tasks of tx.Account, by id.
// repos are the repositories of the tasks, by id. newest tells that rows include the
// newest pending tasks of the account.
func (s *Service) Explain(tx *db.Tx, rows []task.Row, repos map[string]task.Repo, newest bool) (map[string]task.Wait, error) {
	f, err := s.facts(tx, tx.Account, repos, rows)
	if err != nil {
		return nil, err
	}
	lanes, err := lanesOf(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	places, err := lineOf(lanes).positions(tx, tx.Account, rows, newest)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(rows, func(t task.Row) bool { return t.WaitingDeps > 0 || t.ConflictWith != nil }) {
		all, err := s.obstacles(tx, tx.Account)
		if err == nil {
			err = f.behind(tx, all, rows)
		}
		if err != nil {
			return nil, err
		}
	}
	out := make(map[string]task.Wait, len(rows))
	for i := range rows {
		t := &rows[i]
		out[t.ID] = task.Wait{Place: places[t.ID], Holds: f.holds(t)}
	}
	return out, nil
}
