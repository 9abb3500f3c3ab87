package bus

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"yardmaster/internal/fault"
)

// How much one box may call the control plane. NATS limits no rate, so the bus
// counts calls: a call weighs its bytes plus callWeight. An honest box with a
// hundred talkative runs stays far below the rate. A box above it is answered
// errTooFast, which costs less than the call. Refusing also takes time from other
// boxes, so a box that goes on regardless is disconnected for a while.
const (
	callsPerBox = 256 // calls of one method in flight at once; per method, so that waiting events do not delay the renewal of a lease
	callWeight  = 8 << 10
	boxShare    = 16 << 20        // the default of Config.Share
	bursts      = 4               // seconds of its share that a box may send at once
	shareIdle   = 5 * time.Minute // a box that is silent for longer is forgotten

	refusedRate  = 300 // calls a second that may be refused; a box that follows the protocol waits after each
	refusedBurst = 5000
	putOut       = time.Minute // the default of Config.PutOut
)

// share is one box's use of the control plane.
type share struct {
	inFlight map[string]int // by method
	bucket   *rate.Limiter
	patience *rate.Limiter // limits how often the box may be refused
	last     time.Time
}

// calls are the calls in progress, and the shares of the boxes.
type calls struct {
	share   int // bytes a second of each box
	now     func() time.Time
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

// begin runs do in a goroutine of its own, or answers the refusal. enough tells
// that the box was refused too often and must be disconnected.
func (c *calls) begin(boxID, method string, size int, do func()) (refused *fault.Error, enough bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errRestarting, false
	}
	s := c.of[boxID]
	if s == nil {
		c.sweep(now)
		s = &share{
			inFlight: map[string]int{},
			bucket:   rate.NewLimiter(rate.Limit(c.share), bursts*c.share),
			patience: rate.NewLimiter(refusedRate, refusedBurst),
		}
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

// sweep forgets boxes that were silent for shareIdle. It runs at most once per
// shareIdle.
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

// boxes is how many boxes have called within shareIdle, the control plane's own probe not among them.
func (c *calls) boxes() (n int) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, s := range c.of {
		if id != probeBox && now.Sub(s.last) <= shareIdle {
			n++
		}
	}
	return n
}

// also runs do in a goroutine for which close waits, unless close has begun.
func (c *calls) also(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(do)
	}
}

// close refuses new calls and waits for the running ones.
func (c *calls) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}
