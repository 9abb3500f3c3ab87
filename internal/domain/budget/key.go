package budget

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
)

// Key is the scope of the meter of a key of the account: what all calls over it cost in a month.
// A call counts for it beside the meters of its session, if the key has a limit; the session of
// that part is the key, by its id.
const Key = "key"

// keySubject makes keys that have a limit subjects too: for each, whose it is, and what calls over
// it may cost.
const keySubject = ` UNION ALL SELECT l.account_id, NULL, NULL, NULL, '', '', '` + Key + `', l.micros, l.ref, NULL, NULL, FALSE
	FROM budget_limits l WHERE l.ref = $1 AND l.scope = '` + Key + `'`

// keyMeters are the meters of what calls over a key cost.
func keyMeters(sub subject, period string) []Meter {
	return []Meter{{Key, *sub.Served, period, sub.TaskMicros}}
}

// ReserveKey is Reserve for the limit of a key, besides what Reserve has set aside for the session
// of the call: of that, what goes beyond the key's is free again, and all of it if the key's limit
// leaves too little. It stops no run: another key may serve the call. The caller passes the call to
// Settle or Abandon for the session and, with OfKey, for the key.
func (s *Service) ReserveKey(ctx context.Context, session, key string, most, least int64) (int64, error) {
	nothing := func(context.Context, *reserve) (int64, error) { return 0, nil } // only calls over the key count for it
	n, err := s.reserve(ctx, key, most, least, nothing)
	if errors.Is(err, db.ErrNoRows) { // the limit was taken away a moment ago
		s.reserveOf(key).begin(s.Clock())
		s.promiseAll(key, most)
		return most, nil
	}
	if err != nil {
		return 0, s.cancel(ctx, session, most, err)
	}
	if r := s.known(session); r != nil && n < most {
		r.mu.Lock()
		r.promised -= most - n
		r.mu.Unlock()
	}
	return n, nil
}

// ReserveKeyUnpriced is ReserveUnpriced for the limit of a key.
func (s *Service) ReserveKeyUnpriced(ctx context.Context, session, key string, m Model) error {
	err := s.ReserveUnpriced(ctx, key, m)
	if errors.Is(err, db.ErrNoRows) {
		s.reserveOf(key).begin(s.Clock())
		return nil
	}
	if err != nil {
		return s.cancel(ctx, session, 0, err)
	}
	return nil
}

// cancel ends a call of a session that its key has no room for, and gives back what the session
// has set aside.
func (s *Service) cancel(ctx context.Context, session string, reserved int64, why error) error {
	r := s.reserveOf(session)
	s.end([]Call{{Session: session, Reserved: reserved}}, func(*reserve, Call) {})
	if reserved > 0 {
		if err := s.release(ctx, session, r); err != nil {
			return err
		}
	}
	return why
}

// promiseAll gives a call all that it asks for, of a limit that is no more.
func (s *Service) promiseAll(key string, most int64) {
	r := s.reserveOf(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promised += most
}

// StopKeys stops the run of a session, a call of which no key may serve: the limits of these leave
// too little for what it costs at least, or, for a model, there is no price. It returns the refusal.
func (s *Service) StopKeys(ctx context.Context, session string, keys []string, need int64, of Model) (refused error, err error) {
	m := &Meter{Scope: Key, Ref: keys[0], limit: new(int64)}
	refused = exhausted(Key)
	if of.Name != "" {
		refused = unpriced(of, m)
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		sub, err := selectSubject.One(tx, session)
		if err != nil {
			return err
		}
		if sub.Ended {
			return errEnded()
		}
		m.Period = month(tx.Now)
		if of.Name == "" {
			of.Key = strings.Join(keys[1:], " ")
		}
		return s.stop(tx, session, sub, m, need, of)
	})
	return refused, err
}

// PoolKey is a key of an account's pool.
type PoolKey struct {
	ID, Label string
	CreatedAt time.Time
}

// limitedKey is a key with its limit, if it has one, and a month of it.
type limitedKey struct {
	PoolKey
	Micros *int64
	balance
}

// keysOf are the keys of an account's pool.
func (s *Service) keysOf(tx *db.Tx, account, period string) ([]limitedKey, error) {
	pool, err := s.Prices.PoolKeys(tx, account)
	if err != nil {
		return nil, err
	}
	limits, err := limitsOfKeys.All(tx, account)
	if err != nil {
		return nil, err
	}
	balances, err := balancesOfKeys.All(tx, account, period)
	if err != nil {
		return nil, err
	}
	out := make([]limitedKey, len(pool))
	for i, k := range pool {
		out[i].PoolKey = k
		for j := range limits {
			if limits[j].Ref == k.ID {
				out[i].Micros = &limits[j].Micros
			}
		}
		for _, b := range balances {
			if b.Ref == k.ID {
				out[i].balance = balance{b.Reserved, b.Spent}
			}
		}
	}
	return out, nil
}

// keys are those whose limits have stopped the work.
func (b stopped) keys() []string {
	if b.Reason == SlugUnpriced {
		return []string{b.Ref}
	}
	return append(strings.Fields(b.KeyID), b.Ref)
}

// keysGoOn tells whether what the limits of keys have stopped may make its next call: one of the
// keys has room for it or is limited no more, or another key was added.
func (s *Service) keysGoOn(tx *db.Tx, b stopped, g glance) (bool, error) {
	if b.Reason == SlugUnpriced {
		if ok, err := s.Prices.Priced(tx, b.AccountID, Model{b.Provider, b.Model, b.KeyID}); ok || err != nil {
			return ok, err
		}
	}
	all, err := s.keysOf(tx, b.AccountID, month(tx.Now))
	if err != nil {
		return false, err
	}
	known := b.keys()
	waits := false // for one that is there
	for _, k := range all {
		switch {
		case !slices.Contains(known, k.ID):
			if k.CreatedAt.After(b.At) {
				return true, nil
			}
			continue
		case k.Micros == nil:
			return true, nil
		case b.Reason == SlugUnpriced:
			waits = true
			continue
		}
		at := place{b.AccountID, Key, k.ID, month(tx.Now)}
		left := room{*k.Micros - k.Reserved - k.Spent - g.given[at], &Meter{}}
		if left.fits(b.Need) {
			g.given[at] += b.Need
			return true, nil
		}
		waits = true
	}
	return !waits, nil
}
