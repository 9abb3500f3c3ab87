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
// that it is too fast, and its calls cost no more than being refused. That costs
// the others time, too: a box that goes on regardless is put out for a while.
const (
	callsPerBox = 256 // of one method, in flight at once: events that wait keep no lease from being renewed
	callWeight  = 8 << 10
	boxRate     = 16 << 20 // a second
	boxBurst    = 64 << 20
	shareIdle   = 5 * time.Minute // after which a box that asks nothing is forgotten

	refusedRate  = 300 // calls a second that may be refused; who keeps to the protocol waits after each
	refusedBurst = 5000
	putOut       = time.Minute // for which a box that is refused more often cannot connect, unless configured otherwise
)

// share is what a box has of the control plane.
type share struct {
	inFlight map[string]int // by method
	bucket   *rate.Limiter
	patience *rate.Limiter // with refusing it
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

// begin runs do in a goroutine of its own, or tells why not, and whether the box
// has been told so too often.
func (c *calls) begin(boxID, method string, size int, do func()) (refused *fault.Error, enough bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errRestarting, false
	}
	s := c.of[boxID]
	if s == nil {
		c.sweep(now)
		s = &share{inFlight: map[string]int{}, bucket: rate.NewLimiter(boxRate, boxBurst), patience: rate.NewLimiter(refusedRate, refusedBurst)}
		c.of[boxID] = s
	}
	s.last = now
	switch {
	case s.inFlight[method] >= callsPerBox:
		return errTooMany, !s.patience.AllowN(now, 1)
	case !s.bucket.AllowN(now, size+callWeight):
		return errTooFast, !s.patience.AllowN(now, 1)
	}
	s.inFlight[method]++
	c.running.Go(func() {
		defer c.end(s, method)
		do()
	})
	return nil, false
}

func (c *calls) end(s *share, method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.inFlight[method]--; s.inFlight[method] == 0 {
		delete(s.inFlight, method)
	}
}

// sweep forgets boxes that have been silent, now and then.
func (c *calls) sweep(now time.Time) {
	if now.Sub(c.swept) < shareIdle {
		return
	}
	c.swept = now
	for id, s := range c.of {
		if len(s.inFlight) == 0 && now.Sub(s.last) > shareIdle {
			delete(c.of, id)
		}
	}
}

// also runs what close has to wait for, unless that has begun.
func (c *calls) also(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(do)
	}
}

// close refuses new calls and waits for those that run.
func (c *calls) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}
