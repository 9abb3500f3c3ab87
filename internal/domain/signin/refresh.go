package signin

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	// ahead is how often the credentials in use are resolved again, so that no
	// request has to wait for the database to learn that nothing has changed.
	ahead = fresh / 2
	// mostAhead bounds those; requests with others resolve them themselves.
	mostAhead = 512
)

// Loop keeps the credentials in use resolved until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	tick := time.NewTicker(ahead)
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

// refresh resolves the credentials that were used since they were resolved. One
// that cannot be ends now, and the next request is told why.
func (s *Service) refresh(ctx context.Context) {
	now := s.Clock()
	inUse := map[lookup]entry{}
	s.mu.Lock()
	drops := s.drops
	for k, e := range s.known {
		switch {
		case e.asked && len(inUse) < mostAhead:
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
			continue // what was read may be from before
		}
		if e.until.After(now) && now.Sub(e.used) >= usedEvery {
			e.used = now
			stale = append(stale, k)
		}
		s.known[k] = e
	}
	s.mu.Unlock()
	for _, k := range stale {
		s.used(ctx, inUse[k].actor, k.hash)
	}
}
