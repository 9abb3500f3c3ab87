package budget

import (
	"cmp"
	"context"
	"slices"

	"yardmaster/internal/db"
)

// glance is what one look over stopped work has found so far.
type glance struct {
	// full is, by meter, the least amount for which it had no room.
	full map[place]int64
	// given is, by meter, what the work needs that this look lets go on.
	given map[place]int64
}

// place is a meter without its limit.
type place struct{ account, scope, ref, period string }

func newGlance() glance { return glance{map[place]int64{}, map[place]int64{}} }

// mayGoOn tells whether what was stopped may make its next call: the limits leave room for the
// call that was refused, or its model has a price, or no limit holds it any more.
func (s *Service) mayGoOn(tx *db.Tx, b stopped, g glance) (bool, error) {
	if b.Reason == "" || b.SessionID == nil {
		return true, nil // its next call tells
	}
	if b.Scope == Key {
		return s.keysGoOn(tx, b, g)
	}
	at := place{b.AccountID, b.Scope, b.Ref, b.Period}
	least, full := g.full[at]
	if full && b.Reason == SlugExhausted && max(b.Need, 1) >= least && (b.Period == "" || b.Period == month(tx.Now)) {
		return false, nil
	}
	sub, ok, err := selectSubject.Maybe(tx, *b.SessionID)
	if err != nil || !ok {
		return err == nil, err
	}
	meters, err := s.meters(tx, sub)
	if err != nil {
		return false, err
	}
	if b.Reason == SlugUnpriced {
		if limited(meters) == nil {
			return true, nil
		}
		return s.Prices.Priced(tx, b.AccountID, Model{b.Provider, b.Model, b.KeyID})
	}
	if b.Scope != Run { // the next run has a meter of its own
		meters = slices.DeleteFunc(meters, func(m Meter) bool { return m.Scope == Run })
	}
	balances, err := readBalances(tx, sub.AccountID, meters)
	if err != nil {
		return false, err
	}
	for i, m := range meters {
		balances[i].Reserved += g.given[place{b.AccountID, m.Scope, m.Ref, m.Period}]
	}
	left := roomOn(meters, balances)
	if !left.fits(b.Need) {
		t := left.tightest
		at := place{b.AccountID, t.Scope, t.Ref, t.Period}
		g.full[at] = min(cmp.Or(g.full[at], max(b.Need, 1)), max(b.Need, 1))
		return false, nil
	}
	for _, m := range meters {
		g.given[place{b.AccountID, m.Scope, m.Ref, m.Period}] += b.Need
	}
	return true, nil
}

// look frees the held work that may make its next call. What sessions of its accounts have set
// aside on this node and do not use comes back for it.
func (s *Service) look(ctx context.Context) error {
	all, err := s.stopped(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	going, kept, err := s.sift(ctx, all)
	if err != nil {
		return err
	}
	back := int64(0)
	for account := range kept {
		given, err := s.reclaimOf(ctx, account, nil)
		if err != nil {
			return err
		}
		back += given
	}
	if back > 0 {
		if going, _, err = s.sift(ctx, all); err != nil {
			return err
		}
	}
	for _, b := range going {
		err := s.DB.Write(ctx, func(tx *db.Tx) error {
			ok, err := s.mayGoOn(tx, b, newGlance())
			if err != nil || !ok {
				return err
			}
			return s.free(tx, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stopped reads the held work at which Loop looks next.
func (s *Service) stopped(ctx context.Context) (all []stopped, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		tasks, err := selectHeld.All(tx, s.from)
		if err != nil {
			return err
		}
		if s.from = ""; len(tasks) == maxLook {
			s.from = tasks[maxLook-1].ID
		}
		sessions, err := selectSessions.All(tx)
		all = append(tasks, sessions...)
		return err
	})
	return all, err
}

// sift reads which of the stopped may go on, and the accounts of those that a limit keeps.
func (s *Service) sift(ctx context.Context, all []stopped) (going []stopped, kept map[string]bool, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		g := newGlance()
		going, kept = nil, map[string]bool{}
		for _, b := range all {
			ok, err := s.mayGoOn(tx, b, g)
			if err != nil {
				return err
			}
			if ok {
				going = append(going, b)
			} else if b.Reason == SlugExhausted {
				kept[b.AccountID] = true
			}
		}
		return nil
	})
	return going, kept, err
}

// Recheck frees the work of an account that was stopped and may make its next call: a limit or
// a price has changed. An empty account is every account, whose work is looked at after the
// transaction.
func (s *Service) Recheck(tx *db.Tx, account string) error {
	s.Hub.Notify(tx, topic) // for what is held only after this
	if account == "" {
		return nil
	}
	all, err := stopsOf.All(tx, account)
	if err != nil {
		return err
	}
	g := newGlance()
	for _, b := range all {
		ok, err := s.mayGoOn(tx, b, g)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := s.free(tx, b); err != nil {
			return err
		}
	}
	return nil
}

// freeRun frees a task that the limit of one run has stopped.
func (s *Service) freeRun(tx *db.Tx, account, taskID string) error {
	stops, err := stopOfRun.All(tx, account, taskID)
	for _, b := range stops {
		if err := s.free(tx, b); err != nil {
			return err
		}
	}
	return err
}

// free deletes a stop and sends TaskFreed or SessionFreed.
func (s *Service) free(tx *db.Tx, b stopped) error {
	if _, err := dropStop.Exec(tx, b.ID); err != nil {
		return err
	}
	if b.TaskID != nil {
		return TaskFreed.Send(tx, Freed{Account: b.AccountID, ID: *b.TaskID})
	}
	return SessionFreed.Send(tx, Freed{Account: b.AccountID, ID: b.ID})
}
