package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
)

// begun are facts of which only the number of seats is known.
func (s *Service) begun(tx *db.Tx, account string) (f *facts, err error) {
	f = &facts{Now: tx.Now, repos: map[string]task.Repo{}, Disabled: map[string]task.Repo{}, Needs: map[string]Need{}, Least: map[string]string{}, Conflicts: map[string]string{}}
	if f.Seats, err = s.Related.Seats(tx, account); err != nil {
		return nil, fmt.Errorf("seats of account %s: %w", account, err)
	}
	return f, nil
}

// seatFacts reads how the account's seats are taken.
func (s *Service) seatFacts(tx *db.Tx, account string) (*facts, error) {
	f, err := s.begun(tx, account)
	if err != nil {
		return nil, err
	}
	use, err := selectSeatUse.One(tx, account)
	f.InFlight, f.LastClaim = use.N, timeOr(use.Newest)
	return f, err
}

// facts reads what decides whether the pending tasks among rows can be claimed;
// repos are those that are known.
func (s *Service) facts(tx *db.Tx, account string, repos map[string]task.Repo, rows []task.Row) (*facts, error) {
	f, err := s.begun(tx, account)
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
			if !r.Enabled {
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

// FindBox reads a box; one that is unknown or revoked is not found.
func FindBox(tx *db.Tx, boxID string) (Box, bool, error) {
	r, ok, err := selectBox.Maybe(tx, boxID)
	if !ok {
		return Box{}, false, err
	}
	return r.box(), true, nil
}

// Topic is where a box learns that there may be work for it.
func (b *Box) Topic() string {
	if b.Target == "org" {
		return event.QueueTopic(b.OwnerID)
	}
	return task.AnyQueue
}

// served lists the accounts whose queues the box serves.
func (b *Box) served(tx *db.Tx) ([]string, error) {
	switch b.Target {
	case "org":
		return []string{b.OwnerID}, nil
	case "user":
		return selectServedByUser.All(tx, b.OwnerID)
	}
	return selectServedByAll.All(tx)
}

// Claimable picks the task that the box is to get now, locked, from the
// accounts it serves; nil if there is none. Call it in the transaction that
// calls MarkClaimed: it keeps others from claiming for the same box or in the
// same account until that ends.
func (s *Service) Claimable(tx *db.Tx, boxID string) (*task.Row, error) {
	if err := LockBox(tx, boxID); err != nil {
		return nil, err
	}
	box, free, err := free(tx, boxID)
	if err != nil || !free {
		return nil, err
	}
	accounts, err := box.served(tx)
	if err != nil {
		return nil, err
	}
	for _, account := range accounts {
		if t, _, err := s.claimableIn(tx, account, box, true); err != nil || t != nil {
			return t, err
		}
	}
	return nil, nil
}

// free reads a box and tells whether it may take a task now.
func free(tx *db.Tx, boxID string) (Box, bool, error) {
	box, ok, err := FindBox(tx, boxID)
	if err != nil || !ok || !box.takesWork() {
		return box, false, err
	}
	box.Busy, err = countHeld.One(tx, boxID)
	return box, box.Busy < box.Slots, err
}

// claimableIn looks through the lanes of an account's queue for one that the
// box can serve: a few first, for most often the next is it.
//
// Without lock it tells whether a claim is worth trying, or what has to be
// asked before that is known.
func (s *Service) claimableIn(tx *db.Tx, account string, box Box, lock bool) (*task.Row, []question, error) {
	if lock {
		if _, err := people.LockAccount(tx, account); err != nil {
			return nil, nil, err
		}
		if err := task.Wake(tx, account); err != nil {
			return nil, nil, err
		}
	}
	f, err := s.seatFacts(tx, account)
	if err != nil {
		return nil, nil, err
	}
	seen := 0
	for _, limit := range []int{4, 1 << 20} {
		lanes, err := selectLanes.All(tx, account, f.InFlight < f.Seats, limit)
		if err != nil {
			return nil, nil, err
		}
		lanes = withUnwritten(tx, account, lanes, false)
		for _, l := range lanes[min(seen, len(lanes)):] {
			if t, err := s.head(tx, f, l, &box, lock); err != nil || t != nil || len(f.ask) > 0 && !lock || f.held >= maxHeldBack {
				return t, f.ask, err
			}
		}
		if seen = len(lanes); seen < limit {
			break
		}
	}
	return nil, nil, nil
}

// heads is how many tasks at the head of a lane are looked at: only one that
// somebody else has just now is passed over, for a claim waits for no task.
const heads = 2

// head is the next task of the lane, if the box can take it.
func (s *Service) head(tx *db.Tx, f *facts, l lane, box *Box, lock bool) (*task.Row, error) {
	one := sample(l.Lane)
	if box.Target == "user" {
		one.RequestedBy = &box.OwnerID
	}
	if err := s.learn(tx, f, l.AccountID, []task.Row{one}); err != nil {
		return nil, err
	}
	if !f.fits(box, &one) {
		return nil, nil
	}
	args := headArgs{l.AccountID, l.RepoID, l.Template, l.Priority, heads}
	for {
		var rows []task.Row
		var err error
		if box.Target == "user" {
			rows, err = selectHeadBy.All(tx, headByArgs{args, box.OwnerID})
		} else {
			rows, err = selectHead.All(tx, args)
		}
		if err != nil {
			return nil, err
		}
		held := f.held
		for i := range rows {
			t, ok := rows[i], true
			if lock {
				if t, ok, err = task.TryLock(tx, l.AccountID, t.ID); err != nil {
					return nil, err
				}
			}
			if !ok || !t.Ready() {
				continue
			}
			c, err := s.forecast(tx, f, &t)
			switch f.ask = c.ask; {
			case err != nil || len(c.ask) > 0:
				return nil, err
			case c.with == nil || !lock:
				return &t, nil
			case c.tip != "":
				t.StackedOn, t.StartSHA = &c.with.ID, &c.tip
				return &t, nil
			}
			f.held++
			if err := task.HoldBack(tx, s.Hub, &t, c.with.ID, c.paths[:min(len(c.paths), maxNamed)]); err != nil {
				return nil, err
			}
		}
		if f.held == held || f.held >= maxHeldBack {
			return nil, nil
		}
	}
}

// Outlook is what a box without work may know: why there is none, and when the
// first wait that is over by itself ends.
type Outlook struct {
	Work    bool // there is a task for the box after all
	Reasons []string
	Wait    time.Duration // 0 if nothing ends by itself

	questions []question
}

// Asks tells whether the code host has to be asked, with Ask, before it is
// known whether there is work.
func (o Outlook) Asks() bool { return len(o.questions) > 0 }

// Look tells whether there is work for a box, without claiming it.
func (s *Service) Look(tx *db.Tx, boxID string) (Outlook, error) {
	box, free, err := free(tx, boxID)
	if err != nil {
		return Outlook{}, err
	}
	if box.ID == "" {
		return Outlook{Reasons: []string{"box_unknown"}}, nil
	}
	if !free {
		return Outlook{}, nil // no wait that ends changes that
	}
	accounts, err := box.served(tx)
	if err != nil {
		return Outlook{}, err
	}
	var out Outlook
	for _, account := range accounts {
		if t, ask, err := s.claimableIn(tx, account, box, false); err != nil || t != nil || len(ask) > 0 {
			return Outlook{Work: t != nil, questions: ask}, err
		}
		due, err := task.Due(tx, account)
		if err != nil || len(due) > 0 {
			return Outlook{Work: true}, err // once they are woken
		}
		next, err := task.NextWake(tx, account)
		if err != nil {
			return Outlook{}, err
		}
		if next != nil {
			if d := next.Sub(tx.Now); out.Wait == 0 || d < out.Wait {
				out.Wait = d
			}
		}
	}
	return out, nil
}

// WhyNot lists the reasons that keep the queues a box serves from giving it
// work.
func (s *Service) WhyNot(tx *db.Tx, boxID string) ([]string, error) {
	box, ok, err := FindBox(tx, boxID)
	if err != nil || !ok {
		return []string{"box_unknown"}, err
	}
	if box.Left {
		return []string{"box_left"}, nil
	}
	if !box.Enrolled {
		return []string{task.HoldDraining}, nil
	}
	if box.Unfit != "" {
		return []string{task.HoldUnfit}, nil
	}
	accounts, err := box.served(tx)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, account := range accounts[:min(len(accounts), accountsToldOf)] {
		f, groups, err := s.cohorts(tx, account)
		if err != nil {
			return nil, err
		}
		// The question is about this box, as if it were the only one.
		f.Boxes = slices.DeleteFunc(f.Boxes, func(b Box) bool { return b.ID != boxID })
		for i := range f.Boxes {
			f.Boxes[i].Online = true
		}
		for i := range groups {
			for _, h := range f.holds(&groups[i].Row) {
				reasons = append(reasons, h.Reason)
			}
		}
	}
	if len(reasons) == 0 {
		return []string{"queue_empty"}, nil
	}
	slices.Sort(reasons)
	return slices.Compact(reasons), nil
}

// accountsToldOf is how many queues a box that serves several is told about.
const accountsToldOf = 20

func timeOr(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
