// Package limit counts requests in a sliding minute, in this process (Counter) or
// in a server that several nodes share (Shared). It does not know requests: a
// caller names a bucket and its limit, and learns whether the limit allows one
// more, how many are left and when a slot becomes free.
package limit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// Window is the time over which requests are counted. It slides in steps of one
// second: a slot counts in the second in which it was taken and in the following
// 59.
const Window = 60 * time.Second

const seconds = int(Window / time.Second)

// Bucket names what is counted. Parts that do not apply are empty.
type Bucket struct {
	Name string     // what is limited
	IP   netip.Addr // the address; see Site
	Who  string     // the credential
	Talk string     // the conversation
}

// State is the state of a bucket after a call of Take.
type State struct {
	Limit     int // the limit of the bucket
	Remaining int
	Reset     int // whole seconds until a slot becomes free, 1 to 60; 0 when none is taken
}

// Tighter tells whether s reaches its limit before t.
func (s State) Tighter(t State) bool {
	return s.Remaining < t.Remaining || s.Remaining == t.Remaining && s.Reset > t.Reset
}

// Counter holds buckets. Its methods may be called concurrently. A bucket that was
// not used for a Window takes no memory.
type Counter struct {
	clock  func() time.Time
	epoch  time.Time
	seed   maphash.Seed
	shards [32]shard
}

type shard struct {
	mu      sync.Mutex
	buckets map[Bucket]*slots
	swept   int64
}

// slots is one bucket: a ring with the number of slots taken in each second.
type slots struct {
	taken [seconds]uint16
	sum   int
	at    int64 // the newest second in the ring
}

// New returns a counter without taken slots.
func New(clock func() time.Time) *Counter {
	c := &Counter{clock: clock, epoch: clock(), seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].buckets = map[Bucket]*slots{}
	}
	return c
}

// Take takes a slot of a bucket with the limit max, which must be positive and
// below 65536. If no slot is free, it takes none and returns false.
func (c *Counter) Take(b Bucket, max int) (State, bool) {
	// The difference uses the monotonic clock, so setting the clock back has no
	// effect.
	now := int64(c.clock().Sub(c.epoch) / time.Second)
	sh := &c.shards[maphash.Comparable(c.seed, b)%uint64(len(c.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if now-sh.swept >= int64(seconds) {
		sh.sweep(now)
	}
	s := sh.buckets[b]
	if s == nil {
		s = &slots{at: now}
		sh.buckets[b] = s
	}
	s.turn(now)
	free := s.sum < max
	if free {
		s.taken[s.at%int64(seconds)]++
		s.sum++
	}
	return State{Limit: max, Remaining: max - s.sum, Reset: s.frees()}, free
}

// turn removes the seconds that have left the window.
func (s *slots) turn(now int64) {
	if now-s.at >= int64(seconds) {
		s.taken, s.sum, s.at = [seconds]uint16{}, 0, now
	}
	for s.at < now {
		s.at++
		i := s.at % int64(seconds)
		s.sum -= int(s.taken[i])
		s.taken[i] = 0
	}
}

// frees returns how many seconds pass until the oldest slot becomes free.
func (s *slots) frees() int {
	for i := 1; i <= seconds; i++ { // the place after the newest holds the oldest
		if s.taken[(s.at+int64(i))%int64(seconds)] > 0 {
			return i
		}
	}
	return 0
}

// sweep deletes the empty buckets.
func (sh *shard) sweep(now int64) {
	sh.swept = now
	for b, s := range sh.buckets {
		if now-s.at >= int64(seconds) {
			delete(sh.buckets, b)
		}
	}
}

// Site returns the address as which an address is counted: itself, or its /64 for
// IPv6, where one subscriber has a whole /64. Text that is no address gives the
// zero Addr.
func Site(address string) netip.Addr {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Addr{}
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}
