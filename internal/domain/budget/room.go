package budget

import (
	"context"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// room is what the limits of meters leave, and the meter that leaves least.
type room struct {
	left     int64
	tightest *Meter // nil: no meter has a limit
}

// fits tells whether there is room for a call that costs need at least. It is the one rule for
// calls and for work that was stopped.
func (m room) fits(need int64) bool { return m.tightest == nil || m.left > 0 && m.left >= need }

// plus is the room for calls of a session that has that much set aside for none.
func (m room) plus(free int64) room {
	m.left += free
	return m
}

// amount is how much to set aside for a call that lacks that much.
func (m room) amount(lack int64) int64 {
	switch {
	case lack <= 0:
		return 0
	case m.tightest == nil:
		return lack + spare
	case m.left <= lack:
		return max(m.left, 0)
	}
	return lack + min(spare, (m.left-lack)/spareShare)
}

// roomOn is the least amount that is left on any of the meters with a limit.
func roomOn(meters []Meter, balances []balance) (out room) {
	for i := range meters {
		m := &meters[i]
		if m.limit == nil {
			continue
		}
		if n := *m.limit - balances[i].Reserved - balances[i].Spent; out.tightest == nil || n < out.left {
			out = room{n, m}
		}
	}
	return out
}

// roomOf reads what the limits leave for the calls of a session, besides what it has set aside
// itself. It locks nothing.
func (s *Service) roomOf(tx *db.Tx, session string) (subject, room, error) {
	sub, err := selectSubject.One(tx, session)
	if err != nil {
		return sub, room{}, err
	}
	meters, err := s.meters(tx, sub)
	if err != nil {
		return sub, room{}, err
	}
	balances, err := readBalances(tx, sub.AccountID, meters)
	if err != nil {
		return sub, room{}, err
	}
	return sub, roomOn(meters, balances), nil
}

// errEnded is the refusal of a call of a session that has ended.
func errEnded() error {
	return fault.New(fault.Unauthenticated, "", "The token belongs to no live attempt.")
}

// extend sets more aside in the reserve of a session, whose turn the caller has, so that between
// least and most is free for another call. The call may have top of it. It returns a lack if the
// limits leave too little.
func (s *Service) extend(ctx context.Context, r *reserve, session string, least, most int64) (top int64, short *lack, err error) {
	var before held
	var account string
	var amount int64
	closed := false // what was abandoned counts as spent
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		short, closed = nil, false
		stored, known, err := selectReservation.Maybe(tx, session, s.Node)
		if err != nil {
			return err
		}
		sub, err := selectSubject.One(tx, session)
		if err != nil {
			return err
		}
		if sub.Ended {
			return errEnded()
		}
		account = sub.AccountID
		meters, err := s.meters(tx, sub)
		if err != nil {
			return err
		}
		before = r.held()
		switch {
		case known && before.promised > 0:
			// Calls that have not ended count on the meters on which they began; calls
			// that begin meanwhile count on the same.
			meters = withLimits(stored.Meters.V, meters)
		case known && !sameMeters(stored.Meters.V, meters): // for instance in another month
			if err := stored.close(tx, before.abandoned); err != nil {
				return err
			}
			stored, known, closed = reservation{}, false, true
		}
		switch {
		case known:
			if err := stored.undoWriteOff(tx); err != nil {
				return err
			}
			amount = stored.left()
		case before.promised > 0:
			amount = before.amount
		default:
			amount, closed = 0, true
		}
		balances, err := lockBalances(tx, sub.AccountID, meters)
		if err != nil {
			return err
		}
		free := amount - before.promised
		if !closed {
			free -= before.abandoned
		}
		left := roomOn(meters, balances)
		if !left.plus(free).fits(least) {
			short = &lack{others: onceOver(meters, balances).fits(least)}
			return nil
		}
		if top = most; left.tightest != nil {
			top = left.left + free
		}
		more := left.amount(most - free)
		if more == 0 {
			return nil
		}
		amount += more
		if err := addToMeters(tx, sub.AccountID, meters, more, 0); err != nil {
			return err
		}
		// Where calls have cost more than was set aside, nothing of the amount before is left.
		_, err = putReservation.Exec(tx, putReservationArgs{
			SessionID: session, Node: s.Node, AccountID: sub.AccountID, Amount: max(stored.Amount, stored.Used) + more, Used: stored.Used,
			Meters: db.JSON[[]Meter]{V: meters}, ExpiresAt: tx.Now.Add(leaseTime),
		})
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account = account
	r.amount += amount - before.amount // calls may have ended meanwhile
	if closed {
		r.counts(before)
	}
	r.frozen = r.freezes != before.freezes
	return top, short, nil
}

// onceOver is the room when all calls under way are over, if they cost nothing.
func onceOver(meters []Meter, balances []balance) room {
	spent := slices.Clone(balances)
	for i := range spent {
		spent[i].Reserved = 0
	}
	return roomOn(meters, spent)
}

// refuse refuses a call for which the limits leave too little, and stops the session's run. With
// again it looks once more, and returns nil if there is room after all.
func (s *Service) refuse(ctx context.Context, r *reserve, session string, need int64, again bool) (refused *fault.Error, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		refused = nil
		sub, left, err := s.roomOf(tx, session)
		switch {
		case err != nil:
			return err
		case sub.Ended:
			return errEnded()
		case left.tightest == nil, again && left.plus(r.free()).fits(need):
			return nil
		}
		refused = exhausted(left.tightest.Scope)
		return s.stop(tx, session, sub, left.tightest, need, Model{})
	})
	return refused, err
}

// withLimits returns meters, each with the limit of the one in now that has its
// scope and ref.
func withLimits(meters, now []Meter) []Meter {
	out := slices.Clone(meters)
	for i := range out {
		for _, m := range now {
			if m.Scope == out[i].Scope && m.Ref == out[i].Ref {
				out[i].limit = m.limit
			}
		}
	}
	return out
}

// sameMeters compares meters without their limits.
func sameMeters(a, b []Meter) bool {
	return slices.EqualFunc(a, b, func(a, b Meter) bool { return a.Scope == b.Scope && a.Ref == b.Ref && a.Period == b.Period })
}
