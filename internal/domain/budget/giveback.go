package budget

import (
	"context"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
)

// topic is notified when money came back, and when a session has ended whose calls another node
// may have.
const topic = "budgets.room"

// freeze keeps calls from a reserve until the next one has read what is left of it in the
// database. The caller has locked the reservation.
func (r *reserve) freeze() held {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = true
	r.freezes++
	return r.holds()
}

// lastCalls tells whether a session has ended, and has that many calls and no other.
func (r *reserve) lastCalls(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended && r.calls == n
}

// giveBack gives back what no call has of a reservation of this node, which the caller has
// locked, and returns the amount. What calls have stays set aside until they end.
func (s *Service) giveBack(tx *db.Tx, stored reservation, r *reserve) (int64, error) {
	h := r.freeze()
	if h.promised == 0 {
		tx.AfterCommit(func() { r.count(h) })
		return max(stored.left()-h.abandoned, 0), stored.close(tx, h.abandoned)
	}
	if err := stored.undoWriteOff(tx); err != nil {
		return 0, err
	}
	rest := stored.left() - h.promised - h.abandoned
	if rest <= 0 {
		return 0, nil
	}
	if _, err := setAmount.Exec(tx, stored.SessionID, stored.Node, stored.Amount-rest); err != nil {
		return 0, err
	}
	return rest, addToMeters(tx, stored.AccountID, stored.Meters.V, -rest, 0)
}

// SessionEnded gives back what was set aside for a session that ends in the transaction, but
// for calls that are under way: their rest comes back as they end. What another node has set
// aside comes back as soon as that node is told.
func (s *Service) SessionEnded(tx *db.Tx, session string) error {
	r := s.known(session)
	if r != nil {
		stored, ok, err := selectReservation.Maybe(tx, session, s.Node)
		if err != nil {
			return err
		}
		if ok {
			if _, err := s.giveBack(tx, stored, r); err != nil {
				return err
			}
		}
		tx.AfterCommit(func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = true
		})
	}
	s.Hub.Notify(tx, topic)
	return nil
}

// reclaim gives back what sessions of the account of a reserve have set aside on this node and
// do not use, but for its own session, and returns the amount.
func (s *Service) reclaim(ctx context.Context, own *reserve) (given int64, err error) {
	own.mu.Lock()
	account := own.account
	own.mu.Unlock()
	return s.reclaimOf(ctx, account, own)
}

// reclaimOf is reclaim for all sessions of an account but that of a reserve, which may be nil.
func (s *Service) reclaimOf(ctx context.Context, account string, but *reserve) (given int64, err error) {
	idle := s.idle(func(r *reserve) bool {
		return r != but && r.account == account && !r.frozen && r.amount > r.promised+sumOf(r.abandoned)
	})
	if len(idle) == 0 {
		return 0, nil
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		given = 0
		for _, session := range slices.Sorted(maps.Keys(idle)) {
			stored, ok, err := selectReservation.Maybe(tx, session, s.Node)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			n, err := s.giveBack(tx, stored, idle[session])
			if given += n; err != nil {
				return err
			}
		}
		return nil
	})
	return given, err
}

// idle are the reserves of this node for which which is true, by session.
func (s *Service) idle(which func(*reserve) bool) map[string]*reserve {
	s.mu.Lock()
	all := maps.Clone(s.reserves)
	s.mu.Unlock()
	maps.DeleteFunc(all, func(_ string, r *reserve) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !which(r)
	})
	return all
}

// releaseIdle gives back the reserves that no call has and that were last used at
// the time before or earlier, and those of sessions that have ended.
func (s *Service) releaseIdle(ctx context.Context, before time.Time) error {
	if err := s.noteEnded(ctx); err != nil {
		return err
	}
	unused := s.idle(func(r *reserve) bool { return r.ended || r.calls == 0 && !r.used.After(before) })
	for session, r := range unused {
		if err := s.release(ctx, session, r); err != nil {
			return err
		}
	}
	return nil
}

// noteEnded marks the reserves of this node whose sessions have ended, wherever that was.
func (s *Service) noteEnded(ctx context.Context) error {
	if len(s.idle(func(r *reserve) bool { return !r.ended })) == 0 {
		return nil
	}
	var over []string
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		over, err = selectEnded.All(tx, s.Node)
		return err
	})
	for _, session := range over {
		if r := s.known(session); r != nil {
			r.mu.Lock()
			r.ended = true
			r.mu.Unlock()
		}
	}
	return err
}

// release gives back the rest of a reserve, and forgets it unless a call has a part.
func (s *Service) release(ctx context.Context, session string, r *reserve) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		stored, ok, err := selectReservation.Maybe(tx, session, s.Node)
		if err != nil || !ok {
			return err
		}
		_, err = s.giveBack(tx, stored, r)
		return err
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.released || r.calls > 0 {
		return nil
	}
	r.released = true
	s.forget(session, r)
	return nil
}

// forget takes a reserve out of Service.reserves.
func (s *Service) forget(session string, r *reserve) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserves[session] == r {
		delete(s.reserves, session)
	}
}
