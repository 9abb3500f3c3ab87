package budget

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
)

// Work is the tasks, plans and repositories that budgets are about.
type Work interface {
	// Limits are the limits in the policy file of a repository.
	Limits(tx *db.Tx, repoID string) (Defaults, error)
	// SetTaskBudget gives a task of tx.Account another budget; nil is none. It
	// returns the budget before. Unknown and foreign tasks are the same fault.NotFound.
	SetTaskBudget(tx *db.Tx, taskID string, micros *int64) (before *int64, err error)
	// HasPlan tells whether an id is a plan of tx.Account.
	HasPlan(tx *db.Tx, planID string) (bool, error)
	// Repo finds a repository of tx.Account; full is owner/name.
	Repo(tx *db.Tx, owner, name string) (id, full string, ok bool, err error)
}

// Prices are the prices of calls to models.
type Prices interface {
	// Priced tells whether a model that had no price has one now.
	Priced(tx *db.Tx, account string, m Model) (bool, error)
	// KeyLabels are the labels of the keys that tx.Account has had, by id, those of its
	// members as empty ones.
	KeyLabels(tx *db.Tx) (map[string]string, error)
	// PoolKeys are the keys of an account's pool that are there, by id.
	PoolKeys(tx *db.Tx, account string) ([]PoolKey, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
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
	changed  chan struct{}       // closed when a call ends; nil unless a call waits for that

	mostRows int           // of a sheet
	patience time.Duration // how long a call waits for what other calls give back
	swept    time.Time     // when Sweep last ran; of Loop alone
	from     string        // the held task behind which the next look begins; of Loop alone
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n, mostRows: mostRows, patience: settleTime}
}

// reserve is the amount that this node has set aside for a session, and how much of
// it calls have. Amounts are micro-dollars.
type reserve struct {
	turn sync.Mutex // held while more is set aside, or the rest given back: calls of a session wait for one commit

	// The fields of turn.
	unspent   time.Time // when a call that costs nothing last found no limit used up
	unlimited time.Time // when a call without a price last found no limit

	mu        sync.Mutex // of the fields below; never held during a statement
	account   string
	amount    int64     // set aside, less the cost that is stored; never more than the database has
	promised  int64     // to calls whose cost is not stored yet
	abandoned []int64   // promised to calls whose cost could not be stored
	counted   int       // how many of the abandoned were taken out again
	calls     int       // whose cost is not stored yet
	used      time.Time // when a call last began
	ended     bool      // the session has
	released  bool      // it is out of Service.reserves: callers take another one

	frozen  bool // what no call had was given back: the next call reads first what is left
	freezes int  // how often that was
}

// free is the amount that no call has.
func (r *reserve) free() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.amount - r.promised - sumOf(r.abandoned)
}

func sumOf(all []int64) (sum int64) {
	for _, n := range all {
		sum += n
	}
	return sum
}

// promise gives a call the most that is free, and at least least; false if there is less.
func (r *reserve) promise(least, most int64, now time.Time) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(r.amount-r.promised-sumOf(r.abandoned), most)
	if r.frozen || n <= 0 || n < least {
		return 0, false
	}
	r.promised, r.calls, r.used = r.promised+n, r.calls+1, now
	return n, true
}

// begin counts a call for which nothing is set aside.
func (r *reserve) begin(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls, r.used = r.calls+1, now
}

func (r *reserve) isReleased() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.released
}

// held is what calls have of a reserve, and its amount.
type held struct {
	amount, promised, abandoned int64
	counted                     int // with those that are abandoned
	freezes                     int
}

func (r *reserve) held() held {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds()
}

// holds is held for a caller that has locked mu.
func (r *reserve) holds() held {
	return held{r.amount, r.promised, sumOf(r.abandoned), r.counted + len(r.abandoned), r.freezes}
}

// count takes the abandoned out that count as spent. It may be called twice for the same.
func (r *reserve) count(h held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts(h)
}

// counts is count for a caller that has locked mu.
func (r *reserve) counts(h held) {
	if n := h.counted - r.counted; n > 0 {
		r.abandoned, r.counted = r.abandoned[n:], h.counted
	}
}

const (
	// settleTime is how long a call waits for the cost of other calls if too little is left
	// for it meanwhile. An agent begins its next call sooner than the cost of the last one is
	// stored.
	settleTime = 10 * time.Second
	// checkTime is how long a check of the limits holds for calls for which nothing
	// is set aside.
	checkTime = time.Second
	// maxRefusals is how often a call looks anew when money came back as it was refused.
	maxRefusals = 4
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

// known is the reserve of a session; nil if this node has none.
func (s *Service) known(session string) *reserve {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserves[session]
}

// watch returns a channel that is closed when the next call of this node ends.
func (s *Service) watch() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// wake wakes the calls that wait for others to end.
func (s *Service) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// errReleased says that a reserve is out of Service.reserves.
var errReleased = errors.New("the reserve was given back")

// lack is why a call cannot be made now.
type lack struct {
	others bool // what calls have that are under way would be enough
}

// Reserve sets aside what a call of a session may cost, in micro-dollars: most if
// the limits leave that much, never less than least. Before it refuses a call, it takes back
// what other sessions of the account have set aside and do not use, and waits a while for the
// cost of calls that are under way. It fails with fault.PaymentRequired if the limits leave
// too little, which also stops the session's run, and with fault.Unauthenticated if the
// session has ended. The caller passes each call for which Reserve succeeded to Settle or
// Abandon, once.
func (s *Service) Reserve(ctx context.Context, session string, most, least int64) (int64, error) {
	return s.reserve(ctx, session, most, least, s.reclaim)
}

// reserve is Reserve with what takes back what others do not use.
func (s *Service) reserve(ctx context.Context, session string, most, least int64,
	reclaim func(context.Context, *reserve) (int64, error),
) (int64, error) {
	var changed <-chan struct{}
	var timeout <-chan time.Time
	final := false
	for refusals := 0; ; {
		r := s.reserveOf(session)
		n, short, err := s.take(ctx, r, session, most, least)
		if errors.Is(err, errReleased) {
			continue
		}
		if err != nil || short == nil {
			return n, err
		}
		given, err := reclaim(ctx, r)
		if err != nil {
			return 0, err
		}
		if given > 0 && refusals < maxRefusals {
			refusals++
			continue
		}
		if !short.others || final {
			refused, err := s.refuse(ctx, r, session, least, refusals < maxRefusals)
			if err != nil {
				return 0, err
			}
			if refused != nil {
				return 0, refused
			}
			refusals++
			continue
		}
		if changed == nil { // something may have changed already
			changed = s.watch()
			continue
		}
		if timeout == nil {
			timeout = time.After(s.patience)
		}
		select {
		case <-changed:
		case <-timeout:
			final = true
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		changed = nil
	}
}

// take finds the amount for one call in the reserve of a session, and sets more aside if it
// holds too little. It returns a lack if the limits leave too little, and errReleased if the
// reserve is used no longer.
func (s *Service) take(ctx context.Context, r *reserve, session string, most, least int64) (int64, *lack, error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.isReleased() {
		return 0, nil, errReleased
	}
	if most <= 0 {
		short, err := s.checkUnspent(ctx, r, session)
		if err == nil && short == nil {
			r.begin(s.Clock())
		}
		return 0, short, err
	}
	if n, ok := r.promise(most, most, s.Clock()); ok {
		return n, nil, nil
	}
	for {
		top, short, err := s.extend(ctx, r, session, least, most)
		if err != nil || short != nil {
			return 0, short, err
		}
		if n, ok := r.promise(least, min(most, top), s.Clock()); ok {
			return n, nil, nil
		}
		if err := ctx.Err(); err != nil { // what was set aside was given back at once
			return 0, nil, err
		}
	}
}

// checkUnspent permits a call that costs nothing where no limit is used up. Nothing
// is set aside for it, and the limits are read once a checkTime at most, because
// the call cannot overrun them.
func (s *Service) checkUnspent(ctx context.Context, r *reserve, session string) (short *lack, err error) {
	now := s.Clock()
	if now.Sub(r.unspent) < checkTime {
		return nil, nil
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		_, left, err := s.roomOf(tx, session)
		if err == nil && !left.plus(r.free()).fits(0) {
			short = &lack{}
		}
		return err
	})
	if err == nil && short == nil {
		r.unspent = now
	}
	return short, err
}
