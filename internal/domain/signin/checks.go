package signin

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/seal"
)

// How many passwords are checked at once, and how many callers may wait for
// their turn. A check takes 19 MiB and a processor, and anybody may ask for one.
const (
	checksAtOnce = 4
	checksQueued = 64
)

// checks gives those who want a password checked their turns. The zero value
// is ready.
type checks struct {
	once  sync.Once
	turns chan struct{} // filled by who has a turn
	seats chan struct{} // filled by who waits or has a turn
}

// match is seal.CheckPassword when its turn has come.
func (c *checks) match(ctx context.Context, hash, plain string) (bool, error) {
	c.once.Do(func() {
		c.turns, c.seats = make(chan struct{}, checksAtOnce), make(chan struct{}, checksAtOnce+checksQueued)
	})
	select {
	case c.seats <- struct{}{}:
		defer func() { <-c.seats }()
	default:
		return false, fault.New(fault.RateLimited, "", "Too many people are signing in at this moment.").After(2 * time.Second)
	}
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return seal.CheckPassword(hash, plain), nil
}
