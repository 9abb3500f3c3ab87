// Package limit counts what callers do in a sliding minute, in this process.
// It knows nothing of requests: a caller names a bucket and how much it holds,
// and is told whether there was room, how much is left and when a slot frees.
package limit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// Window is the span that is counted over. It slides in steps of one second:
// what was taken counts in the second it was taken and the 59 that follow.
const Window = 60 * time.Second

const seconds = int(Window / time.Second)

// Bucket names what is counted. The parts that do not apply stay empty.
type Bucket struct {
	Name string     // what is limited
	IP   netip.Addr // whose, by address; see Site
	Who  string     // whose, by credential
	Talk string     // in which conversation
}

// State describes a bucket after it was asked.
type State struct {
	Limit     int // what it holds
	Remaining int
	Reset     int // whole seconds until a slot frees, 1 to 60; 0 when none is taken
}

// Tighter tells whether s runs out before t.
func (s State) Tighter(t State) bool {
	return s.Remaining < t.Remaining || s.Remaining == t.Remaining && s.Reset > t.Reset
}

// Counter holds the buckets. It is safe for concurrent use. A bucket that
// nothing was taken from for a window costs nothing.
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

// slots is one bucket: a ring with what was taken in each second.
type slots struct {
	taken [seconds]uint16
	sum   int
	at    int64 // the second the ring is turned to
}

// New makes a counter; nothing has been taken yet.
func New(clock func() time.Time) *Counter {
	c := &Counter{clock: clock, epoch: clock(), seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].buckets = map[Bucket]*slots{}
	}
	return c
}

// Take takes a slot of a bucket that holds at most max, which must be positive
// and below 65536. Without room it takes none and answers false.
func (c *Counter) Take(b Bucket, max int) (State, bool) {
	// Reading the difference, a clock that is set back moves nothing.
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
	room := s.sum < max
	if room {
		s.taken[s.at%int64(seconds)]++
		s.sum++
	}
	return State{Limit: max, Remaining: max - s.sum, Reset: s.frees()}, room
}

// turn lets go of what has left the window.
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

// frees is how many seconds pass until the oldest slot leaves.
func (s *slots) frees() int {
	for i := 1; i <= seconds; i++ { // the place after the newest holds the oldest
		if s.taken[(s.at+int64(i))%int64(seconds)] > 0 {
			return i
		}
	}
	return 0
}

// sweep drops the buckets that nothing is left in.
func (sh *shard) sweep(now int64) {
	sh.swept = now
	for b, s := range sh.buckets {
		if now-s.at >= int64(seconds) {
			delete(sh.buckets, b)
		}
	}
}

// Site is what an address is counted as: itself, or its /64, which one
// subscriber of IPv6 has whole. Text that is no address is the zero site.
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
