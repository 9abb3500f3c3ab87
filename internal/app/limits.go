package app

import (
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/config"
)

// shareLimits returns the counter that several nodes share, nil without an
// address.
func shareLimits(c *config.Config, log *slog.Logger) (*limit.Shared, error) {
	if c.Redis == "" || c.RateLimits != "on" {
		return nil, nil
	}
	s, err := limit.Share(c.Redis, time.Now, log)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return s, nil
}

// limits returns the counter of requests, nil where counting is switched off.
func (a *App) limits() limit.Limiter {
	switch {
	case a.cfg.RateLimits != "on":
		return nil
	case a.cache != nil:
		return a.cache
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
