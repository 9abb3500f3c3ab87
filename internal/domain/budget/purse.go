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

// Work is the work that budgets hold up.
type Work interface {
	// Limits are what the policy of a repository sets.
	Limits(tx *db.Tx, repoID string) (Defaults, error)
	// SetTaskBudget gives a task of tx.Account another budget; nil is none. It
	// answers the one before, and the task's repository. Unknown and foreign tasks
	// are the same fault.NotFound.
	SetTaskBudget(tx *db.Tx, taskID string, micros *int64) (before *int64, repoID string, err error)
	// HasPlan tells whether an id is a plan of tx.Account.
	HasPlan(tx *db.Tx, planID string) (bool, error)
}

// Prices are what calls to models cost.
type Prices interface {
	// Priced tells whether a model that had no price has one by now.
	Priced(tx *db.Tx, account string, m Model) (bool, error)
}

// Needs are what budgets are made of.
type Needs struct {
	DB     *db.DB
	Logger *slog.Logger
	Clock  func() time.Time
	Node   string // of this process, unlike any other's, past or present
	Work   Work
	Prices Prices
}

// Service holds the budgets.
type Service struct {
	Needs

	mu     sync.Mutex
	purses map[string]*purse // by session
}

// New makes the service. It panics if something is lacking.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// purse is what this node holds for a session.
type purse struct {
	mu     sync.Mutex // held while it is filled, so that calls of a session wait for one commit
	amount int64      // set aside, less what is stored as spent
	busy   int64      // promised to calls whose cost is not stored yet
	lost   int64      // promised to calls whose cost could not be stored
	calls  int
	used   time.Time
	gone   bool // given back: make another

	news    chan struct{} // closed when a call is over; nil unless somebody waits
	checked time.Time     // when no limit was spent, for calls that cost nothing

	unlimited time.Time // when no limit held, for calls without a price
}

func (p *purse) free() int64 { return p.amount - p.busy - p.lost }

// settling is how long a call that there is no room for waits for the cost of
// other calls of its session. An agent that makes one call after the other is
// faster than the books.
const settling = 10 * time.Second

// recheck is how often the limits are looked at for calls for which nothing is
// set aside.
const recheck = time.Second

func (s *Service) purse(session string) *purse {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.purses == nil {
		s.purses = map[string]*purse{}
	}
	p := s.purses[session]
	if p == nil {
		p = &purse{}
		s.purses[session] = p
	}
	return p
}

// Reserve sets aside what a call of a session may cost: most micro-dollars if
// there is room for that, never less than least. A refusal is a fault of the
// kind PaymentRequired; it also stops the session's run. Each Reserve that
// succeeds is followed by one Call in Settle or Abandon.
func (s *Service) Reserve(ctx context.Context, session string, most, least int64) (int64, error) {
	var late <-chan time.Time
	final := false
	for {
		p := s.purse(session)
		p.mu.Lock()
		if p.gone {
			p.mu.Unlock()
			continue
		}
		final = final || p.calls == 0
		n, err := s.take(ctx, p, session, most, least, final)
		if err == nil {
			p.busy, p.calls, p.used = p.busy+n, p.calls+1, s.Clock()
		}
		if final || !fault.IsKind(err, fault.PaymentRequired) {
			p.mu.Unlock()
			return n, err
		}
		if p.news == nil {
			p.news = make(chan struct{})
		}
		news := p.news
		p.mu.Unlock()
		if late == nil {
			late = time.After(settling)
		}
		select {
		case <-news:
		case <-late:
			final = true
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// take is Reserve within the purse. Unless it is final, a refusal stops nothing.
func (s *Service) take(ctx context.Context, p *purse, session string, most, least int64, final bool) (int64, error) {
	if most <= 0 {
		return 0, s.gratis(ctx, p, session, final)
	}
	if free := p.free(); free > 0 && free >= most {
		return most, nil
	}
	err := s.fill(ctx, p, session, least, most, final)
	free := p.free()
	if err != nil && (!fault.IsKind(err, fault.PaymentRequired) || free < least || free <= 0) {
		return 0, err
	}
	return min(free, most), nil
}

// gratis lets a call that costs nothing be made where no limit is spent. Nothing
// is set aside for it, and the limits are looked at once a second: it costs
// nothing that could overshoot them.
func (s *Service) gratis(ctx context.Context, p *purse, session string, final bool) error {
	now := s.Clock()
	if now.Sub(p.checked) < recheck {
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
			if balances[i], _, err = selectBalance.Maybe(tx, selectBalanceArgs{AccountID: sub.AccountID, Scope: m.Scope, Ref: m.Ref, Period: m.Period}); err != nil {
				return err
			}
		}
		left, tight := room(meters, balances)
		spent = tight != nil && left <= 0
		return nil
	})
	if err == nil && spent {
		err = s.fill(ctx, p, session, 0, 0, final) // refuses
	}
	if err == nil {
		p.checked = now
	}
	return err
}

// fill sets more aside in the locked purse of a session, so that it has between
// least and most for another call. If there is no room for it, and it is final,
// it stops the session's run.
func (s *Service) fill(ctx context.Context, p *purse, session string, least, most int64, final bool) error {
	var refused error
	var after purse
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		refused, after.amount, after.lost = nil, p.amount, p.lost
		r, known, err := selectHeld.Maybe(tx, session, s.Node)
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
		case known && p.busy > 0:
			// Calls under way count where they began, and what overlaps them with them.
			meters = today(r.Meters.V, meters)
		case known && !same(r.Meters.V, meters): // another month, say
			if err := r.close(tx, p.lost); err != nil {
				return err
			}
			r, known = reservation{}, false
		}
		if known {
			if err := r.revive(tx); err != nil {
				return err
			}
		} else if p.busy == 0 {
			after.amount, after.lost = 0, 0
		}
		balances, err := lock(tx, sub.AccountID, meters)
		if err != nil {
			return err
		}
		free := after.amount - p.busy - after.lost
		left, tight := room(meters, balances)
		amount, ok := grant(max(least-free, 0), max(most-free, 0), left, tight != nil)
		if !ok {
			refused = exhausted(tight.Scope)
			if !final {
				return nil
			}
			return s.stop(tx, session, sub, tight, Model{})
		}
		if amount == 0 {
			return nil
		}
		after.amount += amount
		if err := move(tx, sub.AccountID, meters, amount, 0); err != nil {
			return err
		}
		_, err = extend.Exec(tx, extendArgs{
			SessionID: session, Node: s.Node, AccountID: sub.AccountID, Amount: r.Amount + amount, Used: r.Used,
			Meters: db.JSON[[]Meter]{V: meters}, ExpiresAt: tx.Now.Add(leaseTime),
		})
		return err
	})
	if err != nil {
		return err
	}
	p.amount, p.lost = after.amount, after.lost
	return refused
}

// today are meters with the limits that those of today have.
func today(meters, now []Meter) []Meter {
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

func same(a, b []Meter) bool {
	return slices.EqualFunc(a, b, func(a, b Meter) bool { return a.Scope == b.Scope && a.Ref == b.Ref && a.Period == b.Period })
}

// Call is the account of one call: what was set aside for it, and what it cost.
type Call struct {
	Session  string
	Account  string
	Reserved int64
	Cost     *int64 // micro-dollars; nil: it had no price
}

// Settle stores what calls cost, in the transaction that counts them otherwise.
// What was set aside for them is free again once it has committed.
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
	// One order for everybody: reservations before meters, accounts sorted.
	order := slices.SortedFunc(maps.Values(sums), func(a, b *sum) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.session, b.session))
	})
	for _, a := range order {
		var err error
		if a.held, a.known, err = selectHeld.Maybe(tx, a.session, s.Node); err != nil {
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
	tx.AfterCommit(func() { s.settled(calls) })
	return nil
}

// sum is what the calls of one session cost together.
type sum struct {
	session, account string
	calls, unpriced  int64
	cost             int64
	held             reservation
	known            bool
}

func (a *sum) add(c Call) {
	if a.calls++; c.Cost == nil {
		a.unpriced++
		return
	}
	a.cost += *c.Cost
}

func (a *sum) costOrNone() *int64 {
	if a.calls == a.unpriced {
		return nil
	}
	return &a.cost
}

// spend moves a cost from what is set aside to what is spent.
func (s *Service) spend(tx *db.Tx, a *sum) error {
	if a.cost == 0 {
		return nil
	}
	if !a.known {
		// This node was given up for dead so long ago that what it held is counted
		// as spent for good, and these calls with it.
		return nil
	}
	if err := a.held.revive(tx); err != nil {
		return err
	}
	if _, err := use.Exec(tx, a.session, s.Node, a.cost); err != nil {
		return err
	}
	return move(tx, a.account, a.held.Meters.V, -min(a.cost, a.held.left()), a.cost)
}

// settled frees what was set aside for calls whose cost is stored.
func (s *Service) settled(calls []Call) {
	s.each(calls, func(p *purse, c Call) {
		if c.Cost != nil {
			p.amount -= *c.Cost
		}
	})
}

// Abandon ends calls whose cost could not be stored: all that was set aside for
// them counts as spent.
func (s *Service) Abandon(calls []Call) {
	s.each(calls, func(p *purse, c Call) { p.lost += c.Reserved })
}

func (s *Service) each(calls []Call, f func(*purse, Call)) {
	for _, c := range calls {
		p := s.purse(c.Session)
		p.mu.Lock()
		p.busy, p.calls = p.busy-c.Reserved, p.calls-1
		f(p, c)
		if p.news != nil {
			close(p.news)
			p.news = nil
		}
		p.mu.Unlock()
	}
}

// giveBack frees what a purse still holds, if no call needs it.
func (s *Service) giveBack(ctx context.Context, session string, p *purse, before time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.calls > 0 || p.used.After(before) {
		return nil
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		r, ok, err := selectHeld.Maybe(tx, session, s.Node)
		if err != nil || !ok {
			return err
		}
		return r.close(tx, p.lost)
	})
	if err != nil {
		return err
	}
	p.gone = true
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.purses, session)
	return nil
}
