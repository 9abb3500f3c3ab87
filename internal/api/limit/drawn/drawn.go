// Package drawn counts requests for several nodes in their database: a node draws slots of a bucket, and
// spends them by itself. Who asks more often than once a second is drawn twice as many each time, up to a
// sixteenth of the limit, and what is not spent within a second is given back. So no node lets in more than
// what all together may, most requests ask nobody, and one of a client that comes now and then costs a
// transaction for each bucket.
package drawn

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/observe"
)

const (
	// answerTime is how long a request waits for the database.
	answerTime = time.Second
	// pause is how long a database that did not answer is not asked again, how long a bucket that is full
	// is not asked for, and after how long slots are given back that were not spent.
	pause = time.Second
	// part is the part of a limit that a node holds at most.
	part = 16
	// tidies is the number of passes between two in which old counts are removed.
	tidies = 20
)

// Pool is what slots are drawn from: nodes.Counts.
type Pool interface {
	Draw(ctx context.Context, bucket string, most, want int) (nodes.Drawn, error)
	Return(ctx context.Context, all []nodes.Rest) error
	Tidy(ctx context.Context) error
}

// Limiter is a limit.Limiter whose buckets are those of all nodes. It also counts in this process: while the
// database does not answer in time, this process's counts decide. Its methods may be called concurrently.
type Limiter struct {
	pool  Pool
	here  *limit.Counter
	clock func() time.Time
	epoch time.Time
	log   *slog.Logger
	wait  time.Duration
	away  atomic.Int64 // when a database that does not answer may be asked again; 0: it answers

	mu     sync.Mutex
	shares map[limit.Bucket]*share
}

// share is what this node holds of a bucket. The mutex is held while slots are drawn, so that one request
// asks for all that wait.
type share struct {
	mu     sync.Mutex
	key    string
	left   int
	taken  int           // by all nodes, when this one asked last
	second int64         // of what is left
	batch  int           // slots that were asked for last
	asked  time.Duration // when, and when the last request came, since the epoch
	used   time.Duration
	frees  time.Duration // when the oldest slot is free
	full   time.Duration // until when the bucket is full
}

// New returns a Limiter. Its Loop has to run.
func New(pool Pool, clock func() time.Time, log *slog.Logger) *Limiter {
	return &Limiter{pool: pool, here: limit.New(clock), clock: clock, epoch: clock(), log: log, wait: answerTime,
		shares: map[limit.Bucket]*share{}}
}

// Take implements limit.Limiter.
func (l *Limiter) Take(b limit.Bucket, most int) (limit.State, bool) {
	state, room := l.here.Take(b, most)
	s := l.share(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.clock().Sub(l.epoch)
	s.used = now
	if s.left == 0 && now >= s.full {
		if !l.ask(s, most, now) {
			return state, room
		}
	}
	ok := s.left > 0
	if ok {
		s.left--
	}
	return limit.State{Limit: most, Remaining: max(0, most-s.taken+s.left), Reset: seconds(s.frees - now)}, ok
}

// ask draws slots for a share that has none; false: the database does not answer.
func (l *Limiter) ask(s *share, most int, now time.Duration) bool {
	again := l.away.Load()
	if again != 0 && (int64(now) < again || !l.away.CompareAndSwap(again, int64(now+pause))) {
		return false
	}
	if now-s.asked < pause && s.batch > 0 {
		s.batch = min(2*s.batch, max(1, most/part))
	} else {
		s.batch = 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.wait)
	defer cancel()
	got, err := l.pool.Draw(ctx, s.key, most, s.batch)
	now = l.clock().Sub(l.epoch)
	if err != nil {
		if l.away.Swap(int64(now+pause)) == 0 {
			l.log.Warn("The database that request counts are shared through does not answer; each node counts for itself.", "error", err)
		}
		return false
	}
	if again != 0 {
		l.away.Store(0)
		l.log.Info("Request counts are shared again.")
	}
	s.asked, s.left, s.taken, s.second = now, got.Granted, got.Taken, got.Second
	s.frees = now + time.Duration(got.Frees)*time.Second
	if got.Granted == 0 {
		s.full = now + pause
	}
	return true
}

// seconds are the whole seconds until a slot is free, 1 to 60.
func seconds(d time.Duration) int {
	return int(max(1, min(limit.Window/time.Second, (d+time.Second-1)/time.Second)))
}

func (l *Limiter) share(b limit.Bucket) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shares[b]
	if s == nil {
		// The parts may be secret, such as the path of a webhook, or of any length.
		sum := sha256.Sum256([]byte(limit.Key(b)))
		s = &share{key: base64.RawURLEncoding.EncodeToString(sum[:16])}
		l.shares[b] = s
	}
	return s
}

// Loop gives back what is not spent, until ctx ends.
func (l *Limiter) Loop(ctx context.Context) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for passes := 1; ; passes++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		in, end := observe.Pass(ctx, "limit.return")
		err := l.pass(in, passes%tidies == 0)
		observe.Failed(in, err)
		end()
		if err != nil && ctx.Err() == nil {
			l.log.WarnContext(ctx, "slots of request counts are given back by time alone", slog.Any("error", err))
		}
	}
}

func (l *Limiter) pass(ctx context.Context, tidy bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*l.wait)
	defer cancel()
	if rest := l.idle(); len(rest) > 0 {
		if err := l.pool.Return(ctx, rest); err != nil {
			return err
		}
	}
	if tidy {
		return l.pool.Tidy(ctx)
	}
	return nil
}

// idle takes from the shares what was not spent for a while, and forgets those that nobody used for a Window.
func (l *Limiter) idle() (rest []nodes.Rest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock().Sub(l.epoch)
	for b, s := range l.shares {
		if !s.mu.TryLock() {
			continue // it is used
		}
		if s.left > 0 && now-s.used >= pause {
			rest = append(rest, nodes.Rest{Bucket: s.key, Second: s.second, Slots: s.left})
			s.taken -= s.left
			s.left = 0
		}
		if now-s.used >= limit.Window {
			delete(l.shares, b)
		}
		s.mu.Unlock()
	}
	return rest
}
