package signin

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/seal"
)

// checksAtOnce is how many passwords are checked or hashed at once, checksQueued how
// many callers may wait for that. Either takes 19 MiB and a processor, and anybody may
// ask for a check.
const (
	checksAtOnce = 4
	checksQueued = 64
)

// checks limits how many passwords are checked or hashed at once. The zero value is
// ready.
type checks struct {
	once     sync.Once
	running  chan struct{} // one element for each running one
	admitted chan struct{} // one element for each waiting or running one
}

// match calls seal.CheckPassword as soon as it may. It returns fault.RateLimited if
// the queue is full, and the error of ctx.
func (c *checks) match(ctx context.Context, hash, plain string) (ok bool, err error) {
	err = c.run(ctx, func() { ok = seal.CheckPassword(hash, plain) })
	return ok, err
}

// hash calls seal.Password as match calls seal.CheckPassword.
func (c *checks) hash(ctx context.Context, plain string) (hash string, err error) {
	err = c.run(ctx, func() { hash = seal.Password(plain) })
	return hash, err
}

func (c *checks) run(ctx context.Context, f func()) error {
	c.once.Do(func() {
		c.running, c.admitted = make(chan struct{}, checksAtOnce), make(chan struct{}, checksAtOnce+checksQueued)
	})
	select {
	case c.admitted <- struct{}{}:
		defer func() { <-c.admitted }()
	default:
		return fault.New(fault.RateLimited, "", "Too many people are signing in at this moment.").After(2 * time.Second)
	}
	select {
	case c.running <- struct{}{}:
		defer func() { <-c.running }()
	case <-ctx.Done():
		return ctx.Err()
	}
	f()
	return nil
}
