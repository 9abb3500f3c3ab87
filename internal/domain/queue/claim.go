package queue

import (
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
)

// FindBox reads a box. It returns false for a box that is unknown or revoked.
func FindBox(tx *db.Tx, boxID string) (Box, bool, error) {
	r, ok, err := selectBox.Maybe(tx, boxID)
	if !ok {
		return Box{}, false, err
	}
	return r.box(), true, nil
}

// Topic is the topic that is notified when there may be work for the box.
func (b *Box) Topic() string {
	if b.Target == "org" {
		return event.QueueTopic(b.AccountID)
	}
	return task.AnyQueue
}

// Claimable returns the task that the box is to get now, locked, out of the accounts
// that it serves; nil if there is none. Call it in the transaction that calls
// task.Service.MarkClaimed: until that transaction ends, no other one claims for the
// same box or in the same account.
func (s *Service) Claimable(tx *db.Tx, boxID string) (*task.Row, error) {
	if err := LockBox(tx, boxID); err != nil {
		return nil, err
	}
	box, free, err := free(tx, boxID)
	if err != nil || !free {
		return nil, err
	}
	accounts, err := fleet.Served(tx, box.ID, box.Target, box.AccountID)
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

// claimableIn returns the first task of an account that the box can take. It reads a
// few lanes first, because the box can mostly take a task of the next one. With lock
// the task is locked, and tasks that conflict with open work are held back. Without
// lock a task means that a claim is worth trying, and the facts say what the code host has
// to be asked before that is known, and when keys serve again.
func (s *Service) claimableIn(tx *db.Tx, account string, box Box, lock bool) (*task.Row, *facts, error) {
	if lock {
		if _, err := people.LockAccount(tx, account); err != nil {
			return nil, nil, err
		}
		if err := task.Wake(tx, account); err != nil {
			return nil, nil, err
		}
	}
	f, err := s.seatFacts(tx, account)
	if err == nil {
		err = box.lend(tx, account)
	}
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
				return t, f, err
			}
		}
		if seen = len(lanes); seen < limit {
			break
		}
	}
	return nil, f, nil
}

// heads is how many tasks at the head of a lane are read. A claim does not wait for a
// task that another transaction has locked; it takes the next one.
const heads = 2

// headsAtRest is how many are where the keys of the first ones rest.
const headsAtRest = 50

// head returns the next task of the lane if the box can take it, else nil.
func (s *Service) head(tx *db.Tx, f *facts, l lane, box *Box, lock bool) (*task.Row, error) {
	one := sample(l.Lane)
	if box.Target == "user" {
		one.RequestedBy = &box.OwnerID
	}
	if err := s.learn(tx, f, l.AccountID, []task.Row{one}); err != nil {
		return nil, err
	}
	if !f.fits(box, &one) {
		f.passOver(&one)
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
		held, resting := f.held, 0
		for i := range rows {
			if f.passOver(&rows[i]) {
				resting++
				continue
			}
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
		if resting == heads && args.Limit == heads { // behind them may be one of a person with a key
			args.Limit = headsAtRest
			continue
		}
		if f.held == held || f.held >= maxHeldBack {
			return nil, nil
		}
	}
}

// Outlook tells whether there is work for a box, and if not, why, and when the first
// wait of a task ends by itself.
type Outlook struct {
	Work    bool // a claim is worth trying
	Reasons []string
	Wait    time.Duration // 0 if nothing ends by itself

	questions []question
}

// Asks tells whether there is work only after the code host has been asked, see Ask.
func (o Outlook) Asks() bool { return len(o.questions) > 0 }

// wait notes that a wait ends at a time; zero: none does.
func (o *Outlook) wait(until, now time.Time) {
	if d := until.Sub(now); !until.IsZero() && (o.Wait == 0 || d < o.Wait) {
		o.Wait = d
	}
}

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
	accounts, err := fleet.Served(tx, box.ID, box.Target, box.AccountID)
	if err != nil {
		return Outlook{}, err
	}
	var out Outlook
	for _, account := range accounts {
		t, f, err := s.claimableIn(tx, account, box, false)
		if err != nil {
			return Outlook{}, err
		}
		if t != nil || len(f.ask) > 0 {
			return Outlook{Work: t != nil, questions: f.ask}, nil
		}
		out.wait(f.wake, tx.Now)
		due, err := task.Due(tx, account)
		if err != nil || len(due) > 0 {
			return Outlook{Work: true}, err // a claim wakes them first
		}
		next, err := task.NextWake(tx, account)
		if err != nil {
			return Outlook{}, err
		}
		out.wait(timeOr(next), tx.Now)
	}
	return out, nil
}

// WhyNot lists the reasons why the queues that a box serves give it no work, sorted.
// It looks at the first 20 accounts.
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
	accounts, err := fleet.Served(tx, box.ID, box.Target, box.AccountID)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, account := range accounts[:min(len(accounts), mostAccounts)] {
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

// mostAccounts is how many accounts WhyNot looks at.
const mostAccounts = 20

func timeOr(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
