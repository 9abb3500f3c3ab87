package task

import (
	"fmt"
	"slices"
	"time"

	"yardmaster/internal/db"
)

// seatFacts reads how the account's seats are taken.
func (s *Service) seatFacts(tx *db.Tx, account string) (*Facts, error) {
	f := &Facts{Now: tx.Now, Disabled: map[string]Repo{}, Needs: map[string]Need{}, Least: map[string]string{}}
	var err error
	if f.Seats, err = s.Seats(tx, account); err != nil {
		return nil, fmt.Errorf("seats of account %s: %w", account, err)
	}
	use, err := selectSeatUse.One(tx, account)
	f.InFlight, f.LastClaim = use.N, timeOr(use.Newest)
	return f, err
}

// facts reads what decides whether the pending tasks among rows can be claimed.
func (s *Service) facts(tx *db.Tx, account string, rows []Row) (*Facts, error) {
	f, err := s.seatFacts(tx, account)
	if err != nil {
		return nil, err
	}
	boxes, err := selectFleet.All(tx, account)
	if err != nil {
		return nil, err
	}
	busy, err := selectBoxUse.All(tx)
	if err != nil {
		return nil, err
	}
	for _, r := range boxes {
		b := r.box()
		if i := slices.IndexFunc(busy, func(u boxUse) bool { return u.BoxID == b.ID }); i >= 0 {
			b.Busy, b.LastClaim = busy[i].N, timeOr(busy[i].Newest)
		}
		f.Boxes = append(f.Boxes, b)
	}
	return f, s.learn(tx, f, account, rows)
}

// learn adds the repositories and templates of rows to the facts.
func (s *Service) learn(tx *db.Tx, f *Facts, account string, rows []Row) error {
	repos := map[string]bool{}
	for i := range rows {
		t := &rows[i]
		if !repos[t.RepoID] {
			repos[t.RepoID] = true
			r, err := s.RepoByID(tx, t.RepoID)
			if err != nil {
				return fmt.Errorf("repository of task %s: %w", t.ID, err)
			}
			f.Least[t.RepoID] = r.Isolation
			if !r.Enabled {
				f.Disabled[t.RepoID] = r
			}
		}
		if _, ok := f.Needs[t.Template]; ok || t.Kind == KindCI {
			continue
		}
		n, ok, err := s.Template(tx, account, t.Template)
		if err != nil {
			return fmt.Errorf("template of task %s: %w", t.ID, err)
		}
		if ok {
			f.Needs[t.Template] = n
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
		return queueTopic(b.OwnerID)
	}
	return AnyQueue
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
func (s *Service) Claimable(tx *db.Tx, boxID string) (*Row, error) {
	if _, ok, err := lockBox.Maybe(tx, boxID); err != nil || !ok {
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
		if t, err := s.claimableIn(tx, account, box, true); err != nil || t != nil {
			return t, err
		}
	}
	return nil, nil
}

// free reads a box and tells whether it may take a task now.
func free(tx *db.Tx, boxID string) (Box, bool, error) {
	box, ok, err := FindBox(tx, boxID)
	if err != nil || !ok || !box.Enrolled {
		return box, false, err
	}
	box.Busy, err = countHeld.One(tx, boxID)
	return box, box.Busy < box.Slots, err
}

// claimableIn looks through the queue of an account that the box serves. It
// reads no more of the fleet than this box, and of the queue a few rows first:
// most often the head is it.
func (s *Service) claimableIn(tx *db.Tx, account string, box Box, lock bool) (*Row, error) {
	if lock {
		if _, err := lockAccount.One(tx, account); err != nil {
			return nil, err
		}
	}
	f, err := s.seatFacts(tx, account)
	if err != nil {
		return nil, err
	}
	const aboveAll = 1 << 30
	after := Row{Priority: aboveAll, QueuedAt: time.UnixMicro(0)}
	for limit := 2; ; limit = 64 {
		rows, err := selectReady.All(tx, account, tx.Now, after.Priority, after.QueuedAt, after.ID, f.InFlight < f.Seats, limit)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		if err := s.learn(tx, f, account, rows); err != nil {
			return nil, err
		}
		for j := range rows {
			if !f.fits(&box, &rows[j]) {
				continue
			}
			if !lock {
				return &rows[j], nil
			}
			t, ok, err := Lock(tx, account, rows[j].ID)
			if err != nil {
				return nil, err
			}
			if ok && t.Status == Pending {
				return &t, nil
			}
		}
		after = rows[len(rows)-1]
	}
}

// Outlook is what a box without work may know: why there is none, and when the
// first wait that is over by itself ends.
type Outlook struct {
	Work    bool // there is a task for the box after all
	Reasons []string
	Wait    time.Duration // 0 if nothing ends by itself
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
	accounts, err := box.served(tx)
	if err != nil {
		return Outlook{}, err
	}
	var out Outlook
	for _, account := range accounts {
		if t, err := s.claimableIn(tx, account, box, false); err != nil || t != nil {
			return Outlook{Work: t != nil}, err
		}
		next, err := selectNextWake.One(tx, account, tx.Now)
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
// work, as far as the heads of the queues show them.
func (s *Service) WhyNot(tx *db.Tx, boxID string) ([]string, error) {
	box, ok, err := FindBox(tx, boxID)
	if err != nil || !ok {
		return []string{"box_unknown"}, err
	}
	if !box.Enrolled {
		return []string{HoldDraining}, nil
	}
	accounts, err := box.served(tx)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, account := range accounts {
		rows, err := selectFirst.All(tx, account)
		if err != nil {
			return nil, err
		}
		f, err := s.facts(tx, account, rows)
		if err != nil {
			return nil, err
		}
		// The question is about this box, as if it were the only one.
		f.Boxes = slices.DeleteFunc(f.Boxes, func(b Box) bool { return b.ID != boxID })
		for i := range f.Boxes {
			f.Boxes[i].Online = true
		}
		for i := range rows {
			for _, h := range f.holds(&rows[i]) {
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

func timeOr(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
