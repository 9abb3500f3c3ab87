package signin

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	// refreshEvery is the interval at which used credentials are resolved again, so
	// that no request waits for the database only to find that nothing has changed.
	refreshEvery = fresh / 2
	// maxRefreshed is how many credentials are resolved so. Requests resolve the
	// others themselves.
	maxRefreshed = 512
)

// Loop keeps the used credentials resolved until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			in, end := observe.Pass(ctx, "signin.refresh")
			s.refresh(in)
			end()
		}
	}
}

// refresh resolves again the credentials that were used since they were last
// resolved. A credential that cannot be resolved expires at once, and the next
// request learns why.
func (s *Service) refresh(ctx context.Context) {
	now := s.Clock()
	inUse := map[lookup]entry{}
	s.mu.Lock()
	drops := s.drops
	for k, e := range s.known {
		switch {
		case e.asked && len(inUse) < maxRefreshed:
			inUse[k] = e
		case now.Sub(e.until) > usedEvery:
			delete(s.known, k)
		}
	}
	s.mu.Unlock()
	if len(inUse) == 0 {
		return
	}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		for k, e := range inUse {
			resolve := resolveToken
			if e.actor.Credential == policy.Session {
				resolve = resolveSession
			}
			a, err := resolve(tx, k.hash, k.account)
			e.actor, e.until, e.asked = a, now.Add(fresh), false
			if err != nil {
				e.until = now
			}
			inUse[k] = e
		}
		return nil
	})
	observe.Failed(ctx, err)
	if err != nil {
		return
	}
	var stale []lookup
	s.mu.Lock()
	for k, e := range inUse {
		if _, known := s.known[k]; !known || s.drops != drops {
			continue // the entry may have been read before it was dropped
		}
		if e.until.After(now) && now.Sub(e.used) >= usedEvery {
			e.used = now
			stale = append(stale, k)
		}
		s.known[k] = e
	}
	s.mu.Unlock()
	for _, k := range stale {
		s.used(ctx, inUse[k].actor, k.hash, now)
	}
}
