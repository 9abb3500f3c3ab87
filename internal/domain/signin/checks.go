package signin

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/seal"
)

// checksAtOnce is how many passwords are checked at once, checksQueued how many
// callers may wait for that. A check takes 19 MiB and a processor, and anybody may
// ask for one.
const (
	checksAtOnce = 4
	checksQueued = 64
)

// checks limits how many passwords are checked at once. The zero value is ready.
type checks struct {
	once     sync.Once
	running  chan struct{} // one element for each running check
	admitted chan struct{} // one element for each waiting or running check
}

// match calls seal.CheckPassword as soon as it may. It returns fault.RateLimited if
// the queue is full, and the error of ctx.
func (c *checks) match(ctx context.Context, hash, plain string) (bool, error) {
	c.once.Do(func() {
		c.running, c.admitted = make(chan struct{}, checksAtOnce), make(chan struct{}, checksAtOnce+checksQueued)
	})
	select {
	case c.admitted <- struct{}{}:
		defer func() { <-c.admitted }()
	default:
		return false, fault.New(fault.RateLimited, "", "Too many people are signing in at this moment.").After(2 * time.Second)
	}
	select {
	case c.running <- struct{}{}:
		defer func() { <-c.running }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return seal.CheckPassword(hash, plain), nil
}
