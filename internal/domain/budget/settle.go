package budget

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
)

// Call is a call that has ended: the amount that Reserve set aside, and the cost.
type Call struct {
	Session  string
	Account  string
	Reserved int64
	Cost     *int64 // micro-dollars; nil: it had no price

	Key, Provider, Model string // over which key, and who answered

	Capped bool // the key has a limit: the call is there for it, too
	OfKey  bool // it is that one: Session is the key, and the ledgers have the other
}

// Settle stores the cost of calls, in the transaction that counts them in their
// sessions. Once that has committed, the rest of the amounts that were set aside is
// free again.
func (s *Service) Settle(tx *db.Tx, calls []Call) error {
	sums := map[string]*sum{}
	for _, c := range calls {
		a := sums[c.Session]
		if a == nil {
			a = &sum{session: c.Session, account: c.Account, ofKey: c.OfKey}
			sums[c.Session] = a
		}
		a.add(c)
	}
	// All transactions lock in one order: reservations before meters, accounts sorted, keys last.
	order := slices.SortedFunc(maps.Values(sums), func(a, b *sum) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(weight(a.ofKey), weight(b.ofKey)), cmp.Compare(a.session, b.session))
	})
	for _, a := range order {
		var err error
		if a.stored, a.known, err = selectReservation.Maybe(tx, a.session, s.Node); err != nil {
			return err
		}
	}
	for _, a := range order {
		if err := a.note(tx); err != nil {
			return err
		}
		if err := s.spend(tx, a); err != nil {
			return err
		}
		if err := a.countKeys(tx); err != nil {
			return err
		}
		if err := s.last(tx, a); err != nil {
			return err
		}
	}
	tx.AfterCommit(func() {
		s.end(calls, func(r *reserve, c Call) {
			if c.Cost != nil {
				r.amount -= *c.Cost
			}
		})
	})
	return nil
}

// sum is the calls of one session together.
type sum struct {
	session, account string
	calls, unpriced  int64
	cost             int64
	stored           reservation
	known            bool // there is a reservation
	ofKey            bool // what counts for the limit of a key
	parts            map[answered]spentPart
}

// answered is over which key a call went, and who has answered it.
type answered struct {
	key, provider, model string
	capped               bool
}

type spentPart struct{ calls, unpriced, cost int64 }

// weight puts what is true behind what is not.
func weight(is bool) int {
	if is {
		return 1
	}
	return 0
}

// note counts the calls in the ledgers.
func (a *sum) note(tx *db.Tx) error {
	if a.ofKey {
		return nil
	}
	_, err := addMinute.Exec(tx, addMinuteArgs{
		AccountID: a.account, Minute: tx.Now.Truncate(time.Minute), SessionID: a.session, Calls: a.calls,
		Unpriced: a.unpriced, CostMicros: a.costOrNone(),
	})
	if err != nil {
		return err
	}
	return a.storeDays(tx)
}

// ordered are the parts in one order.
func (a *sum) ordered() []answered {
	return slices.SortedFunc(maps.Keys(a.parts), func(x, y answered) int {
		return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.provider, y.provider), cmp.Compare(x.model, y.model),
			cmp.Compare(weight(x.capped), weight(y.capped)))
	})
}

// countKeys counts what was called over keys that had no limit yet as the calls began, for those
// that have one now.
func (a *sum) countKeys(tx *db.Tx) error {
	if a.ofKey {
		return nil
	}
	for _, by := range a.ordered() {
		cost := a.parts[by].cost
		if by.capped || by.key == "" || cost == 0 {
			continue
		}
		if err := addToMeters(tx, a.account, []Meter{{Scope: Key, Ref: by.key, Period: month(tx.Now)}}, 0, cost); err != nil {
			return err
		}
	}
	return nil
}

// storeDays counts the calls in the ledger of days. Where this node was taken for dead so long ago
// that all it had set aside counts as spent, their cost stands there already.
func (a *sum) storeDays(tx *db.Tx) error {
	for _, by := range a.ordered() {
		p := a.parts[by]
		if !a.known {
			p.cost = 0
		}
		if _, err := addDay.Exec(tx, addDayArgs{
			AccountID: a.account, Day: dayOf(tx.Now), SessionID: a.session, KeyID: by.key, Provider: by.provider, Model: by.model,
			Calls: p.calls, Unpriced: p.unpriced, CostMicros: p.cost,
		}); err != nil {
			return err
		}
	}
	return nil
}

func (a *sum) add(c Call) {
	by := answered{c.Key, c.Provider, c.Model, c.Capped}
	p := a.parts[by]
	a.calls, p.calls = a.calls+1, p.calls+1
	if c.Cost == nil {
		a.unpriced, p.unpriced = a.unpriced+1, p.unpriced+1
	} else {
		a.cost, p.cost = a.cost+*c.Cost, p.cost+*c.Cost
	}
	if a.parts == nil {
		a.parts = map[answered]spentPart{}
	}
	a.parts[by] = p
}

// costOrNone is nil if no call had a price.
func (a *sum) costOrNone() *int64 {
	if a.calls == a.unpriced {
		return nil
	}
	return &a.cost
}

// spend moves a cost from the amount that is set aside to the amount that is spent.
func (s *Service) spend(tx *db.Tx, a *sum) error {
	if a.cost == 0 {
		return nil
	}
	if !a.known {
		// This node was taken for dead so long ago that all it had set aside, for these
		// calls too, counts as spent for good.
		return nil
	}
	if err := a.stored.undoWriteOff(tx); err != nil {
		return err
	}
	if _, err := addUsed.Exec(tx, a.session, s.Node, a.cost); err != nil {
		return err
	}
	err := addToMeters(tx, a.account, a.stored.Meters.V, -min(a.cost, a.stored.left()), a.cost)
	a.stored.Used += a.cost
	return err
}

// last gives back the rest of a reserve, if the calls are the last ones of a session that has
// ended.
func (s *Service) last(tx *db.Tx, a *sum) error {
	r := s.known(a.session)
	if r == nil || !a.known || !r.lastCalls(int(a.calls)) {
		return nil
	}
	h := r.held()
	if err := a.stored.close(tx, h.abandoned); err != nil {
		return err
	}
	tx.AfterCommit(func() { r.count(h) })
	s.Hub.Notify(tx, topic)
	return nil
}

// Abandon ends calls whose cost could not be stored: the amounts that were set
// aside for them count as spent.
func (s *Service) Abandon(calls []Call) {
	s.end(calls, func(r *reserve, c Call) { r.abandoned = append(r.abandoned, c.Reserved) })
}

// end takes calls out of their reserves, changes each reserve with fn, and wakes
// the calls that wait.
func (s *Service) end(calls []Call, fn func(*reserve, Call)) {
	over := false
	for _, c := range calls {
		r := s.reserveOf(c.Session)
		r.mu.Lock()
		r.promised, r.calls = r.promised-c.Reserved, r.calls-1
		fn(r, c)
		over = over || r.ended && r.calls == 0
		r.mu.Unlock()
	}
	s.wake()
	if over {
		s.Hub.Wake(topic) // Loop forgets the reserve
	}
}
