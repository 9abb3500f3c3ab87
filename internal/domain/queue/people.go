package queue

import (
	"cmp"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// StuckAfter is how long a task may wait for a person before it counts as stuck.
const StuckAfter = task.StuckAfter

// NarrowStuck appends to a query of tasks of tx.Account, in whose text the table has no
// other name, the condition that a task is shown as stuck.
func (s *Service) NarrowStuck(tx *db.Tx, b *db.Builder) error {
	return s.narrow(tx, b, tx.Now.Add(-StuckAfter), nil)
}

// NarrowPeople is NarrowStuck for the condition that a task waits for a person: it is
// held, its run is parked, its pull request needs somebody, or it is pending with a hold
// of task.PersonReasons.
func (s *Service) NarrowPeople(tx *db.Tx, b *db.Builder) error {
	parked, err := s.Related.Parked(tx)
	if err != nil {
		return err
	}
	if parked == nil {
		parked = []string{}
	}
	return s.narrow(tx, b, tx.Now.Add(time.Second), parked)
}

// Stuck counts the tasks of tx.Account that are shown as stuck.
func (s *Service) Stuck(tx *db.Tx) (int64, error) {
	b := countTasks(tx.Account)
	if err := s.NarrowStuck(tx, b); err != nil {
		return 0, err
	}
	n, err := db.Select[int64](tx, b)
	return n[0], err
}

// crew are the pending tasks of a repository and a template that one person has asked
// for. RequestedBy counts only if ByPerson is set.
type crew struct {
	RepoID, Template string
	RequestedBy      *string
	ByPerson         bool
}

// crews lists the crews of the pending tasks of tx.Account. Their tasks are told apart by
// person only if that matters, see facts.byPerson.
func crews(tx *db.Tx, byPerson bool) ([]crew, error) {
	if byPerson {
		return crewsByPerson.All(tx, tx.Account)
	}
	out, err := waitingCrews.All(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	lanes, err := lanesOf(tx, tx.Account)
	for _, l := range lanes {
		out = append(out, crew{RepoID: l.RepoID, Template: l.Template})
	}
	slices.SortFunc(out, func(a, b crew) int {
		return cmp.Or(cmp.Compare(a.Template, b.Template), cmp.Compare(a.RepoID, b.RepoID))
	})
	return slices.Compact(out), err
}

// heldCrews lists the crews of tx.Account that have waited for a person since before a
// time, whenever their tasks were queued.
func (s *Service) heldCrews(tx *db.Tx, before time.Time) ([]crew, error) {
	f, err := s.facts(tx, tx.Account, nil, nil)
	if err != nil {
		return nil, err
	}
	byPerson := f.byPerson()
	all, rows, err := s.crewsOf(tx, f, byPerson)
	if err == nil && !byPerson && f.byPerson() {
		all, rows, err = s.crewsOf(tx, f, true)
	}
	if err != nil {
		return nil, err
	}
	var out []crew
	for i := range rows {
		if slices.ContainsFunc(f.holds(&rows[i]), func(h task.Hold) bool {
			return h.ForPeople() && h.Since.Before(before)
		}) {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// crewsOf lists crews, each with a row that stands for its tasks, and what decides about those.
func (s *Service) crewsOf(tx *db.Tx, f *facts, byPerson bool) ([]crew, []task.Row, error) {
	all, err := crews(tx, byPerson)
	if err != nil {
		return nil, nil, err
	}
	rows := make([]task.Row, len(all))
	for i, c := range all {
		rows[i] = sample(task.Lane{AccountID: tx.Account, RepoID: c.RepoID, Template: c.Template})
		if rows[i].RequestedBy = c.RequestedBy; byPerson && c.RequestedBy == nil {
			rows[i].RequestedBy = new(string) // nobody
		}
	}
	return all, rows, s.learn(tx, f, tx.Account, rows)
}

// narrow appends the condition that a task has waited for a person since before a time,
// or is marked as stuck. With parked it is the condition that a task waits for a person,
// and parked are the tasks whose runs do.
func (s *Service) narrow(tx *db.Tx, b *db.Builder, before time.Time, parked []string) error {
	held, err := s.heldCrews(tx, before)
	if err != nil {
		return err
	}
	all, err := s.obstacles(tx, tx.Account)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(o obstacle) bool { return !o.hold.Since.Before(before) })
	whoWait{account: tx.Account, before: before, crews: held, obstacles: all, parked: parked}.narrow(b)
	return nil
}
