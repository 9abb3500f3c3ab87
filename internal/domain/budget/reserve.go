package budget

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
)

// Work is the tasks, plans and repositories that budgets are about.
type Work interface {
	// Limits are the limits in the policy file of a repository.
	Limits(tx *db.Tx, repoID string) (Defaults, error)
	// SetTaskBudget gives a task of tx.Account another budget; nil is none. It
	// returns the budget before and the task's repository. Unknown and foreign tasks
	// are the same fault.NotFound.
	SetTaskBudget(tx *db.Tx, taskID string, micros *int64) (before *int64, repoID string, err error)
	// HasPlan tells whether an id is a plan of tx.Account.
	HasPlan(tx *db.Tx, planID string) (bool, error)
}

// Prices are the prices of calls to models.
type Prices interface {
	// Priced tells whether a model that had no price has one now.
	Priced(tx *db.Tx, account string, m Model) (bool, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Logger *slog.Logger
	Clock  func() time.Time
	Node   string // of this process; no other process, past or present, has the same
	Work   Work
	Prices Prices
}

// Service keeps the budgets.
type Service struct {
	Needs

	mu       sync.Mutex
	reserves map[string]*reserve // by session
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// reserve is the amount that this node has set aside for a session, and how much of
// it calls have. Amounts are micro-dollars.
type reserve struct {
	mu        sync.Mutex // held while more is set aside: calls of a session wait for one commit
	amount    int64      // set aside, less the cost that is stored
	promised  int64      // to calls whose cost is not stored yet
	abandoned int64      // promised to calls whose cost could not be stored
	calls     int        // whose cost is not stored yet
	used      time.Time  // when a call last began
	released  bool       // it is out of Service.reserves: callers take another one

	callEnded chan struct{} // closed when a call ends; nil unless a call waits for that

	unspent   time.Time // when a call that costs nothing last found no limit used up
	unlimited time.Time // when a call without a price last found no limit
}

// free is the amount that no call has.
func (r *reserve) free() int64 { return r.amount - r.promised - r.abandoned }

const (
	// settleTime is how long a call waits for the cost of other calls of its session
	// if too little is left for it. An agent begins its next call sooner than the
	// cost of the last one is stored.
	settleTime = 10 * time.Second
	// checkTime is how long a check of the limits holds for calls for which nothing
	// is set aside.
	checkTime = time.Second
)

// reserveOf is the reserve of a session.
func (s *Service) reserveOf(session string) *reserve {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserves == nil {
		s.reserves = map[string]*reserve{}
	}
	r := s.reserves[session]
	if r == nil {
		r = &reserve{}
		s.reserves[session] = r
	}
	return r
}

// Reserve sets aside what a call of a session may cost, in micro-dollars: most if
// the limits leave that much, never less than least. It fails with
// fault.PaymentRequired if the limits leave too little, which also stops the
// session's run. The caller passes each call for which Reserve succeeded to Settle
// or Abandon, once.
func (s *Service) Reserve(ctx context.Context, session string, most, least int64) (int64, error) {
	var timeout <-chan time.Time
	final := false
	for {
		r := s.reserveOf(session)
		r.mu.Lock()
		if r.released {
			r.mu.Unlock()
			continue
		}
		final = final || r.calls == 0
		n, err := s.take(ctx, r, session, most, least, final)
		if err == nil {
			r.promised, r.calls, r.used = r.promised+n, r.calls+1, s.Clock()
		}
		if final || !fault.IsKind(err, fault.PaymentRequired) {
			r.mu.Unlock()
			return n, err
		}
		if r.callEnded == nil {
			r.callEnded = make(chan struct{})
		}
		callEnded := r.callEnded
		r.mu.Unlock()
		if timeout == nil {
			timeout = time.After(settleTime)
		}
		select {
		case <-callEnded:
		case <-timeout:
			final = true
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// take finds the amount for one call in a locked reserve, and sets more aside if it
// holds too little. A refusal stops the session's run if final is true.
func (s *Service) take(ctx context.Context, r *reserve, session string, most, least int64, final bool) (int64, error) {
	if most <= 0 {
		return 0, s.checkUnspent(ctx, r, session, final)
	}
	if free := r.free(); free > 0 && free >= most {
		return most, nil
	}
	err := s.extend(ctx, r, session, least, most, final)
	free := r.free()
	if err != nil && (!fault.IsKind(err, fault.PaymentRequired) || free < least || free <= 0) {
		return 0, err
	}
	return min(free, most), nil
}

// checkUnspent permits a call that costs nothing where no limit is used up. Nothing
// is set aside for it, and the limits are read once a checkTime at most, because
// the call cannot overrun them.
func (s *Service) checkUnspent(ctx context.Context, r *reserve, session string, final bool) error {
	now := s.Clock()
	if now.Sub(r.unspent) < checkTime {
		return nil
	}
	spent := false
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		sub, err := selectSubject.One(tx, session)
		if err != nil {
			return err
		}
		meters, err := s.meters(tx, sub)
		if err != nil {
			return err
		}
		balances := make([]balance, len(meters))
		for i, m := range meters {
			of := selectBalanceArgs{AccountID: sub.AccountID, Scope: m.Scope, Ref: m.Ref, Period: m.Period}
			if balances[i], _, err = selectBalance.Maybe(tx, of); err != nil {
				return err
			}
		}
		left, tightest := remaining(meters, balances)
		spent = tightest != nil && left <= 0
		return nil
	})
	if err == nil && spent {
		err = s.extend(ctx, r, session, 0, 0, final) // refuses
	}
	if err == nil {
		r.unspent = now
	}
	return err
}

// extend sets more aside in the locked reserve of a session, so that between least
// and most is free for another call. It fails with fault.PaymentRequired if the
// limits leave too little, and then stops the session's run if final is true.
func (s *Service) extend(ctx context.Context, r *reserve, session string, least, most int64, final bool) error {
	var refused error
	var after reserve
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		refused, after.amount, after.abandoned = nil, r.amount, r.abandoned
		stored, known, err := selectReservation.Maybe(tx, session, s.Node)
		if err != nil {
			return err
		}
		sub, err := selectSubject.One(tx, session)
		if err != nil {
			return err
		}
		meters, err := s.meters(tx, sub)
		if err != nil {
			return err
		}
		switch {
		case known && r.promised > 0:
			// Calls that have not ended count on the meters on which they began; calls
			// that begin meanwhile count on the same.
			meters = withLimits(stored.Meters.V, meters)
		case known && !sameMeters(stored.Meters.V, meters): // for instance in another month
			if err := stored.close(tx, r.abandoned); err != nil {
				return err
			}
			stored, known = reservation{}, false
		}
		if known {
			if err := stored.undoWriteOff(tx); err != nil {
				return err
			}
		} else if r.promised == 0 {
			after.amount, after.abandoned = 0, 0
		}
		balances, err := lockBalances(tx, sub.AccountID, meters)
		if err != nil {
			return err
		}
		free := after.amount - r.promised - after.abandoned
		left, tightest := remaining(meters, balances)
		amount, ok := amountFor(max(least-free, 0), max(most-free, 0), left, tightest != nil)
		if !ok {
			refused = exhausted(tightest.Scope)
			if !final {
				return nil
			}
			return s.stop(tx, session, sub, tightest, Model{})
		}
		if amount == 0 {
			return nil
		}
		after.amount += amount
		if err := addToMeters(tx, sub.AccountID, meters, amount, 0); err != nil {
			return err
		}
		_, err = putReservation.Exec(tx, putReservationArgs{
			SessionID: session, Node: s.Node, AccountID: sub.AccountID, Amount: stored.Amount + amount, Used: stored.Used,
			Meters: db.JSON[[]Meter]{V: meters}, ExpiresAt: tx.Now.Add(leaseTime),
		})
		return err
	})
	if err != nil {
		return err
	}
	r.amount, r.abandoned = after.amount, after.abandoned
	return refused
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

// Call is a call that has ended: the amount that Reserve set aside, and the cost.
type Call struct {
	Session  string
	Account  string
	Reserved int64
	Cost     *int64 // micro-dollars; nil: it had no price
}

// Settle stores the cost of calls, in the transaction that counts them in their
// sessions. Once that has committed, the rest of the amounts that were set aside is
// free again.
func (s *Service) Settle(tx *db.Tx, calls []Call) error {
	sums := map[string]*sum{}
	for _, c := range calls {
		a := sums[c.Session]
		if a == nil {
			a = &sum{session: c.Session, account: c.Account}
			sums[c.Session] = a
		}
		a.add(c)
	}
	// All transactions lock in one order: reservations before meters, accounts sorted.
	order := slices.SortedFunc(maps.Values(sums), func(a, b *sum) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.session, b.session))
	})
	for _, a := range order {
		var err error
		if a.stored, a.known, err = selectReservation.Maybe(tx, a.session, s.Node); err != nil {
			return err
		}
	}
	for _, a := range order {
		if _, err := addMinute.Exec(tx, addMinuteArgs{
			AccountID: a.account, Minute: tx.Now.Truncate(time.Minute), SessionID: a.session, Calls: a.calls,
			Unpriced: a.unpriced, CostMicros: a.costOrNone(),
		}); err != nil {
			return err
		}
		if err := s.spend(tx, a); err != nil {
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
}

func (a *sum) add(c Call) {
	if a.calls++; c.Cost == nil {
		a.unpriced++
		return
	}
	a.cost += *c.Cost
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
	return addToMeters(tx, a.account, a.stored.Meters.V, -min(a.cost, a.stored.left()), a.cost)
}

// Abandon ends calls whose cost could not be stored: the amounts that were set
// aside for them count as spent.
func (s *Service) Abandon(calls []Call) {
	s.end(calls, func(r *reserve, c Call) { r.abandoned += c.Reserved })
}

// end takes calls out of their reserves, changes each reserve with fn, and wakes
// the calls that wait.
func (s *Service) end(calls []Call, fn func(*reserve, Call)) {
	for _, c := range calls {
		r := s.reserveOf(c.Session)
		r.mu.Lock()
		r.promised, r.calls = r.promised-c.Reserved, r.calls-1
		fn(r, c)
		if r.callEnded != nil {
			close(r.callEnded)
			r.callEnded = nil
		}
		r.mu.Unlock()
	}
}

// release gives back the rest of a reserve that no call has and that was last used
// at the time before or earlier.
func (s *Service) release(ctx context.Context, session string, r *reserve, before time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.released || r.calls > 0 || r.used.After(before) {
		return nil
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		stored, ok, err := selectReservation.Maybe(tx, session, s.Node)
		if err != nil || !ok {
			return err
		}
		return stored.close(tx, r.abandoned)
	})
	if err != nil {
		return err
	}
	r.released = true
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reserves, session)
	return nil
}
