package app

import (
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/config"
)

// shareLimits is where several nodes count requests together, nil without an
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

// limits counts requests, nil where that is switched off.
func (a *App) limits() limit.Limiter {
	switch {
	case a.cfg.RateLimits != "on":
		return nil
	case a.cache != nil:
		return a.cache
	}
	return limit.New(time.Now)
}

// slots counts what each account may do a minute, besides its requests. Nothing
// is counted where requests are not.
func (a *App) slots(name string, most int) func(account string) (after time.Duration, ok bool) {
	counts := a.limits()
	return func(account string) (time.Duration, bool) {
		if counts == nil {
			return 0, true
		}
		state, ok := counts.Take(limit.Bucket{Name: name, Who: account}, most)
		return time.Duration(state.Reset) * time.Second, ok
	}
}
