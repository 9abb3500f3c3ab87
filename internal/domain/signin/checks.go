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
// ask for a check. Strangers have all of them but one, and the places to wait in: those
// who come from where they have signed in before, or with a session or a link of their
// own, have places of their own.
const (
	checksAtOnce = 4
	checksQueued = 64
	checksOwn    = 16
)

// checks limits how many passwords are checked or hashed at once. The zero value is
// ready.
type checks struct {
	once      sync.Once
	running   chan struct{} // one element for each running one
	strangers chan struct{} // one element for each stranger's waiting or running one
	turns     chan struct{} // one element for each stranger's running one
	own       chan struct{} // one element for each of the others
}

// match calls seal.CheckPassword as soon as it may. It returns fault.RateLimited if
// the queue is full, and the error of ctx.
func (c *checks) match(ctx context.Context, stranger bool, hash, plain string) (ok bool, err error) {
	err = c.run(ctx, stranger, func() { ok = seal.CheckPassword(hash, plain) })
	return ok, err
}

// hash calls seal.Password as match calls seal.CheckPassword, for whoever has a link or a session.
func (c *checks) hash(ctx context.Context, plain string) (hash string, err error) {
	err = c.run(ctx, false, func() { hash = seal.Password(plain) })
	return hash, err
}

func (c *checks) run(ctx context.Context, stranger bool, f func()) error {
	c.once.Do(func() {
		c.running, c.turns = make(chan struct{}, checksAtOnce), make(chan struct{}, checksAtOnce-1)
		c.strangers, c.own = make(chan struct{}, checksAtOnce+checksQueued), make(chan struct{}, checksAtOnce+checksOwn)
	})
	queue := c.own
	if stranger {
		queue = c.strangers
	}
	select {
	case queue <- struct{}{}:
		defer func() { <-queue }()
	default:
		return fault.New(fault.RateLimited, "", "Too many people are signing in at this moment.").After(2 * time.Second)
	}
	places := []chan struct{}{c.running}
	if stranger {
		places = []chan struct{}{c.turns, c.running}
	}
	for _, place := range places {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f()
	return nil
}
