package bus

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"yardmaster/internal/fault"
)

// What one box may ask of the control plane. NATS limits no rate, so calls are
// counted here: a call weighs its bytes and callWeight besides. An honest box
// with a hundred talkative runs stays far below; one that does not is answered
// that it is too fast, and its calls cost no more than being refused.
const (
	callsPerBox = 256 // in flight at once
	callWeight  = 2 << 10
	boxRate     = 16 << 20 // a second
	boxBurst    = 64 << 20
	shareIdle   = 5 * time.Minute // after which a box that asks nothing is forgotten
)

// share is what a box has of the control plane.
type share struct {
	inFlight int
	bucket   *rate.Limiter
	last     time.Time
}

// calls are the requests being worked on.
type calls struct {
	running sync.WaitGroup
	mu      sync.Mutex
	of      map[string]*share // by box id
	swept   time.Time
	closed  bool
}

var (
	errTooMany    = fault.New(fault.RateLimited, "", "Too many calls at once.")
	errTooFast    = fault.New(fault.RateLimited, "", "The box asks too much in too short a time.")
	errRestarting = fault.New(fault.Unavailable, "", "The control plane is restarting.")
)

// begin runs do in a goroutine of its own, or tells why not.
func (c *calls) begin(boxID string, size int, do func()) *fault.Error {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errRestarting
	}
	s := c.of[boxID]
	if s == nil {
		c.sweep(now)
		s = &share{bucket: rate.NewLimiter(boxRate, boxBurst)}
		c.of[boxID] = s
	}
	s.last = now
	switch {
	case s.inFlight >= callsPerBox:
		return errTooMany
	case !s.bucket.AllowN(now, size+callWeight):
		return errTooFast
	}
	s.inFlight++
	c.running.Go(func() {
		defer c.end(s)
		do()
	})
	return nil
}

func (c *calls) end(s *share) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.inFlight--
}

// sweep forgets boxes that have been silent, now and then.
func (c *calls) sweep(now time.Time) {
	if now.Sub(c.swept) < shareIdle {
		return
	}
	c.swept = now
	for id, s := range c.of {
		if s.inFlight == 0 && now.Sub(s.last) > shareIdle {
			delete(c.of, id)
		}
	}
}

// close refuses new calls and waits for those that run.
func (c *calls) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}
