package app

import (
	"fmt"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/limit/drawn"
	"yardmaster/internal/db/nodes"
)

// shareLimits makes the counter of requests that several nodes share: in Redis if that has an address, in the
// database otherwise. A node alone counts by itself.
func (a *App) shareLimits() error {
	switch {
	case a.cfg.RateLimits != "on":
		return nil
	case a.cfg.Redis != "":
		s, err := limit.Share(a.cfg.Redis, time.Now, a.log)
		if err != nil {
			return fmt.Errorf("redis: %w", err)
		}
		a.cache = s
	case a.clustered():
		a.counts = drawn.New(nodes.Counts{DB: a.db}, time.Now, a.log)
	}
	return nil
}

// limits returns the counter of requests, nil where counting is switched off.
func (a *App) limits() limit.Limiter {
	switch {
	case a.cfg.RateLimits != "on":
		return nil
	case a.cache != nil:
		return a.cache
	case a.counts != nil:
		return a.counts
	}
	return limit.New(time.Now)
}

// slots limits how often each account, or each of what Take is given, may do something in a minute, besides its
// requests. Nothing is counted where requests are not.
type slots struct {
	counts limit.Limiter // nil: requests are not counted
	name   string
	most   int // a minute
}

// Take takes one of the account's slots; ok is false if none is left, and after
// says in how long the next one is free.
func (s slots) Take(account string) (after time.Duration, ok bool) {
	if s.counts == nil {
		return 0, true
	}
	state, ok := s.counts.Take(limit.Bucket{Name: s.name, Who: account}, s.most)
	return time.Duration(state.Reset) * time.Second, ok
}
