package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
)

const (
	// callWaits is how long a call waits for a key at most, before its run is parked. The agent
	// waits for the answer as long.
	callWaits = time.Minute
	// glance is how often a call that waits looks at what other nodes have learned.
	glance = 250 * time.Millisecond
)

// rota is what this node knows of the keys that calls go over. What is true of a key for all
// nodes is in its Health, and how many calls go over one that has a capacity, in Places.
type rota struct {
	mu      sync.Mutex
	keys    map[string]*keyState
	changed chan struct{} // closed when a key may let in a call that it did not before; nil: nobody waits
	talks   talks
}

type keyState struct {
	modelkey.Health
	capacity *int64 // of all nodes
	busy     int64  // calls under way on this node
	full     bool   // with those of other nodes, a moment ago
	trying   bool   // a call of this node tries the key out
	slips    int    // calls of this node that the provider failed, in a row
}

// slipped counts a call that has ended, and tells whether it is one that the provider failed and
// that the key is allowed.
func (k *keyState) slipped(o llm.Outcome, worked bool) bool {
	switch {
	case worked:
		k.slips = 0
	case k.Slip(o):
		if k.slips++; k.slips < modelkey.SlipsAllowed {
			return true
		}
		k.slips = 0
	}
	return false
}

// open tells whether the key lets a call in now.
func (k *keyState) open(now time.Time) bool {
	switch {
	case k.Resting(now), k.full, k.capacity != nil && k.busy >= *k.capacity:
		return false
	}
	return !k.Unproven() || !k.trying && !k.Probed(now)
}

// learn takes what the database says of the keys of a grant.
func (r *rota) learn(keys []modelkey.Candidate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[string]*keyState{}
	}
	for _, c := range keys {
		if k := r.keys[c.ID]; k != nil {
			k.capacity = c.Capacity
			r.adopt(k, c.Health)
			continue
		}
		if len(r.keys) >= maxGrants {
			for id, k := range r.keys {
				if k.busy == 0 && !k.Sick() {
					delete(r.keys, id)
				}
			}
		}
		r.keys[c.ID] = &keyState{Health: c.Health, capacity: c.Capacity}
	}
}

// adopt takes newer news of a key. The caller holds mu.
func (r *rota) adopt(k *keyState, h modelkey.Health) {
	if h.HealthSeq > k.HealthSeq {
		k.Health = h
		r.tell()
	}
}

// tell wakes the calls that wait. The caller holds mu.
func (r *rota) tell() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// state is that of a key, also of one of which nothing was learned. The caller holds mu.
func (r *rota) state(id string) *keyState {
	k := r.keys[id]
	if k == nil {
		if k = new(keyState); r.keys == nil {
			r.keys = map[string]*keyState{}
		}
		r.keys[id] = k
	}
	return k
}

// turn is a call over a key. It implements llm.Turn.
type turn struct {
	s      *Service
	owner  owner
	over   llm.Route
	trying bool // the key out
	proven bool // the provider has answered
	placed bool // it has one of the key's Places
}

// Enter implements llm.Gate. A key that has rested lets one call in, over all nodes; the
// others follow once that works.
func (s *Service) Enter(ctx context.Context, g llm.Grant, over llm.Route) (llm.Turn, bool) {
	o, _ := g.Session.(owner)
	t := &turn{s: s, owner: o, over: over}
	s.rota.mu.Lock()
	k := s.rota.state(over.ID)
	if !k.open(s.Clock()) {
		s.rota.mu.Unlock()
		return nil, false
	}
	k.busy++
	t.trying = k.Unproven()
	k.trying = k.trying || t.trying
	capacity := k.capacity
	s.rota.mu.Unlock()
	if !t.place(ctx, k, capacity) {
		return nil, false
	}
	if !t.trying {
		return t, true
	}
	h, ok, err := s.Keys.TryOut(ctx, o.payer(over).account, over.ID)
	if err != nil {
		s.Logger.ErrorContext(ctx, "key of a model provider is not tried out", "key", over.ID, "error", err)
	}
	if ok {
		return t, true
	}
	s.rota.mu.Lock()
	defer s.rota.mu.Unlock()
	if err == nil {
		s.rota.adopt(k, h)
	}
	t.leave(k)
	return nil, false
}

// leave ends the count of the call. The caller holds mu.
func (t *turn) leave(k *keyState) {
	k.busy--
	if t.trying {
		k.trying = false
	}
	s := t.s
	s.rota.tell()
	if !t.placed {
		return
	}
	t.placed = false
	s.writes.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), storeTime)
		defer cancel()
		s.Places.Free(ctx, placeOf(t.over))
		s.rota.vacant(k)
	})
}

// placeOf is the name of the places of a key.
func placeOf(over llm.Route) string { return "model key " + over.ID }

// place takes a place of a key that has a capacity, among all nodes. If it gets none the call is
// over, and the node does not ask again for a glance.
func (t *turn) place(ctx context.Context, k *keyState, capacity *int64) (ok bool) {
	s := t.s
	if capacity == nil || s.Places == nil {
		return true
	}
	var err error
	if t.placed, err = s.Places.Take(ctx, placeOf(t.over), *capacity); err != nil {
		s.Logger.ErrorContext(ctx, "the place of a call at a key of a model provider is not counted", "key", t.over.ID, "error", err)
	}
	if t.placed {
		return true
	}
	s.rota.mu.Lock()
	defer s.rota.mu.Unlock()
	k.full = true
	t.leave(k)
	time.AfterFunc(glance, func() { s.rota.vacant(k) })
	return false
}

// vacant says that a key may have a place again.
func (r *rota) vacant(k *keyState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.full = false
	r.tell()
}

// Began implements llm.Turn: a key that is tried out works, whatever the rest of the answer
// will be.
func (t *turn) Began() {
	if !t.trying {
		return
	}
	t.proven = true
	t.s.writes.Go(func() { t.note(llm.Outcome{}) })
}

// Over implements llm.Turn. That a key does worse is known to all nodes before another key is
// asked; that it does better, soon.
func (t *turn) Over(o llm.Outcome) {
	s := t.s
	s.rota.mu.Lock()
	k := s.rota.state(t.over.ID)
	now := s.Clock()
	worked := o.Kind == "" && o.Status/100 == 2
	known := k.Resting(now) || worked && (t.proven || !k.Sick()) || o.Gone && (!t.trying || t.proven)
	known = k.slipped(o, worked) || known
	s.rota.mu.Unlock()
	switch {
	case known:
	case worked:
		s.writes.Go(func() { t.note(o) })
	default:
		t.note(o)
	}
	s.rota.mu.Lock()
	t.leave(k)
	if worked {
		s.rota.talks.served(t.owner.session, o, t.over, now)
	}
	s.rota.mu.Unlock()
}

// note stores what a call says of its key.
func (t *turn) note(o llm.Outcome) {
	s := t.s
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	h, err := s.Keys.Over(ctx, t.owner.payer(t.over).account, t.over, o)
	if err != nil {
		s.Logger.Error("health of a key of a model provider is not stored", "key", t.over.ID, "error", err)
		return
	}
	s.rota.mu.Lock()
	defer s.rota.mu.Unlock()
	s.rota.adopt(s.rota.state(t.over.ID), h)
}

// outlook is how the routes of a call do.
type outlook struct {
	open    bool      // one lets a call in
	passing bool      // one is full or tried out: that may end at any time
	until   time.Time // when the first of those that rest serves again; zero: none rests
	why     string    // it rests
	changed <-chan struct{}
}

func (s *Service) outlook(routes []llm.Route) (out outlook) {
	s.rota.mu.Lock()
	defer s.rota.mu.Unlock()
	now := s.Clock()
	for _, route := range routes {
		k := s.rota.state(route.ID)
		switch {
		case route.Provider.Local(), k.open(now):
			out.open = true
		case !k.Resting(now):
			out.passing = true
		case out.until.IsZero() || k.RestUntil.Before(out.until):
			out.until, out.why = *k.RestUntil, k.RestWhy
		}
	}
	if s.rota.changed == nil {
		s.rota.changed = make(chan struct{})
	}
	out.changed = s.rota.changed
	return out
}

// Wait implements llm.Gate. A call whose keys all rest for longer than it may wait is refused,
// and its run is parked until the first of them serves again.
func (s *Service) Wait(ctx context.Context, g llm.Grant, routes []llm.Route, tried bool, waited time.Duration) error {
	began := s.Clock()
	for first := true; ; first = false {
		o := s.outlook(routes)
		now := s.Clock()
		left := callWaits - waited - now.Sub(began)
		switch {
		case o.open && first && tried:
			return errTried
		case o.open:
			return nil
		case !o.passing && o.until.After(now.Add(left)):
			return s.park(ctx, g, o)
		case left <= 0:
			return fault.New(fault.RateLimited, llm.SlugRateLimit,
				"Every key of the account is in use that fits the call.").After(time.Second)
		}
		look := time.NewTimer(min(left, glance))
		select {
		case <-o.changed:
		case <-look.C:
			s.relearn(ctx, g, routes)
		case <-ctx.Done():
			look.Stop()
			return ctx.Err()
		}
		look.Stop()
	}
}

// errTried says that the failure of the call is its answer.
var errTried = fault.New(fault.Unavailable, llm.SlugUnavailable, "The model provider failed.")

// relearn reads anew how keys do that other nodes may try out.
func (s *Service) relearn(ctx context.Context, g llm.Grant, routes []llm.Route) {
	o, _ := g.Session.(owner)
	ids := map[string][]string{} // by the account of the key
	for _, r := range routes {
		account := o.payer(r).account
		ids[account] = append(ids[account], r.ID)
	}
	all, err := s.Keys.Healths(ctx, ids)
	if err != nil {
		return // the call waits on with what is known
	}
	s.rota.mu.Lock()
	defer s.rota.mu.Unlock()
	for id, h := range all {
		s.rota.adopt(s.rota.state(id), h)
	}
}

// restSlugs are the slugs of the refusal of a call whose keys rest.
var restSlugs = map[string]string{
	modelkey.RateLimited: llm.SlugRateLimit,
	modelkey.Overloaded:  llm.SlugUnavailable,
	modelkey.Exhausted:   llm.SlugQuota,
	modelkey.Refused:     llm.SlugAuth,
	modelkey.Broken:      llm.SlugUnavailable,
}

// park refuses a call whose keys all rest, and parks its run. Whatever the reason, that passes.
func (s *Service) park(ctx context.Context, g llm.Grant, o outlook) error {
	at := o.until.UTC().Add(time.Second - 1).Truncate(time.Second)
	slug := restSlugs[o.why]
	refused := fault.Newf(fault.RateLimited, slug, "No key of the account serves the call before %s: %s.",
		at.Format(time.RFC3339), modelkey.RestWords(o.why)).After(o.until.Sub(s.Clock()))
	if who, ok := g.Session.(owner); ok && who.run != "" && s.Parking != nil {
		if err := s.Parking.Park(ctx, Park{RunID: who.run, Until: o.until, Kind: slug, Why: refused.Detail}); err != nil {
			return err
		}
	}
	return refused
}

// Order implements llm.Gate: a conversation prefers the key that has served it, for as long as
// the provider keeps its cache.
func (s *Service) Order(g llm.Grant, model string, routes []llm.Route) []llm.Route {
	o, ok := g.Session.(owner)
	if !ok || len(routes) < 2 {
		return routes
	}
	s.rota.mu.Lock()
	defer s.rota.mu.Unlock()
	id, ok := s.rota.talks.warm(o.session, model, s.Clock())
	if i := slices.IndexFunc(routes, func(r llm.Route) bool { return r.ID == id }); ok && i > 0 {
		routes = slices.Concat(routes[i:i+1], routes[:i], routes[i+1:])
	}
	return routes
}
