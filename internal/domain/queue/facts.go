package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// facts are what decides whether the pending tasks of an account can be claimed.
type facts struct {
	Now       time.Time
	Seats     int64
	InFlight  int64     // tasks that occupy a seat
	LastClaim time.Time // the newest claim of those
	Boxes     []Box     // that serve the account
	Disabled  map[string]task.Repo
	Needs     map[string]Need       // by template; a template that is gone is missing
	Least     map[string]string     // by repository: the least isolation its policy accepts
	Conflicts map[string]string     // by repository: what its policy says about conflicts
	Behind    map[string][]obstacle // by task: the obstacles that it waits for

	repos   map[string]task.Repo  // by id, all that were read
	answers map[demand]*task.Hold // of fleet, whose boxes do not change meanwhile

	held int        // tasks that this claim held back
	wake time.Time  // when the first keys serve again without which this claim has passed over tasks; zero: none rest
	ask  []question // what the code host has to be asked before more can be said
}

// repoName is the owner/name of the repository of a task.
func (f *facts) repoName(t *task.Row) string {
	r := f.repos[t.RepoID]
	return r.FullName()
}

func (f *facts) need(t *task.Row) (Need, bool) {
	n, ok := Need{Agent: "command"}, true
	if t.Kind != task.KindCI {
		n, ok = f.Needs[t.Template]
	}
	n.Isolation = Stricter(n.Isolation, f.Least[t.RepoID])
	return n, ok
}

// byPerson tells whether it matters who asked for a task: a box of a member serves the account, or
// somebody has a key of their own that serves while the account's rest, as far as was learnt.
func (f *facts) byPerson() bool {
	for _, n := range f.Needs {
		if len(n.Own) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(f.Boxes, func(b Box) bool { return b.Target == "user" })
}

// passOver notes why a claim passes over a task, if that is so because keys rest.
func (f *facts) passOver(t *task.Row) bool {
	n, _ := f.need(t)
	r, ok := n.rests(t)
	if ok {
		f.waits(r)
	}
	return ok
}

// waits notes that a claim passes over tasks until a rest ends.
func (f *facts) waits(r Rest) {
	if f.wake.IsZero() || r.Until.Before(f.wake) {
		f.wake = r.Until
	}
}

// newFacts returns facts that hold only the number of seats.
func (s *Service) newFacts(tx *db.Tx, account string) (f *facts, err error) {
	f = &facts{
		Now: tx.Now, repos: map[string]task.Repo{}, Disabled: map[string]task.Repo{},
		Needs: map[string]Need{}, Least: map[string]string{}, Conflicts: map[string]string{},
	}
	if f.Seats, err = s.Related.Seats(tx, account); err != nil {
		return nil, fmt.Errorf("seats of account %s: %w", account, err)
	}
	return f, nil
}

// seatFacts returns facts that hold how the seats of the account are taken.
func (s *Service) seatFacts(tx *db.Tx, account string) (*facts, error) {
	f, err := s.newFacts(tx, account)
	if err != nil {
		return nil, err
	}
	use, err := selectSeatUse.One(tx, account)
	f.InFlight, f.LastClaim = use.N, timeOr(use.Newest)
	return f, err
}

// facts reads all facts that the pending tasks among rows need. repos are the
// repositories that the caller has read already.
func (s *Service) facts(tx *db.Tx, account string, repos map[string]task.Repo, rows []task.Row) (*facts, error) {
	f, err := s.newFacts(tx, account)
	if err != nil {
		return nil, err
	}
	maps.Copy(f.repos, repos)
	fleet, err := selectFleet.All(tx, account)
	if err != nil {
		return nil, err
	}
	busy := map[string]*fleetRow{}
	for i := range fleet {
		if u := &fleet[i]; !u.isBox() {
			busy[u.ID] = u
			f.InFlight, f.LastClaim = f.InFlight+u.Seats, latest(f.LastClaim, timeOr(u.Seated))
		}
	}
	for i := range fleet {
		if !fleet[i].isBox() {
			continue
		}
		b := fleet[i].box()
		if u := busy[b.ID]; u != nil {
			b.Busy, b.LastClaim = u.N, timeOr(u.Newest)
		}
		if err := b.lend(tx, account); err != nil {
			return nil, err
		}
		f.Boxes = append(f.Boxes, b)
	}
	return f, s.learn(tx, f, account, rows)
}

// learn adds the repositories and templates of rows to the facts.
func (s *Service) learn(tx *db.Tx, f *facts, account string, rows []task.Row) error {
	if err := task.AddRepos(tx, s.Repos, rows, f.repos); err != nil {
		return err
	}
	var unknown []string
	for i := range rows {
		t := &rows[i]
		if _, ok := f.Least[t.RepoID]; !ok {
			r := f.repos[t.RepoID]
			f.Least[t.RepoID], f.Conflicts[t.RepoID] = r.Isolation, r.Conflicts
			if !r.Enabled || r.Lacks != "" {
				f.Disabled[t.RepoID] = r
			}
		}
		if _, ok := f.Needs[t.Template]; !ok && t.Kind != task.KindCI && !slices.Contains(unknown, t.Template) {
			unknown = append(unknown, t.Template)
		}
	}
	if len(unknown) > 1 {
		found, err := s.Templates.Needs(tx, account, unknown)
		maps.Copy(f.Needs, found)
		return err
	}
	for _, name := range unknown {
		n, ok, err := s.Templates.Need(tx, account, name)
		if err != nil {
			return fmt.Errorf("template %s: %w", name, err)
		}
		if ok {
			f.Needs[name] = n
		}
	}
	return nil
}
