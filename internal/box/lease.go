package box

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/protocol"
)

// lease is a box's right to work on an attempt. It is counted on the box's
// monotonic clock from when the request that was granted had been sent, so that
// it never lasts longer here than the control plane thinks.
type lease struct {
	timing Timing

	mu    sync.Mutex
	sent  time.Time     // of the request last granted
	renew time.Duration // from one request to the next
	life  time.Duration // from sent until the box must have stopped
	more  chan struct{} // closed and replaced by each extension
}

func newLease(t Timing, sent time.Time, granted time.Duration) *lease {
	l := &lease{timing: t, more: make(chan struct{})}
	l.extend(sent, granted)
	return l
}

// extend notes what was granted to a request that was sent at the given time.
// Answers may come out of order.
func (l *lease) extend(sent time.Time, granted time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent.Before(l.sent) {
		return
	}
	l.sent, l.renew, l.life = sent, min(l.timing.Renew, protocol.RenewAfter(granted)), protocol.KillAfter(granted)
	if l.timing.Kill > 0 {
		l.life = min(l.life, l.timing.Kill)
	}
	close(l.more)
	l.more = make(chan struct{})
}

// pause is how long to wait from one renewal to the next.
func (l *lease) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renew
}

func (l *lease) state() (sent, ends time.Time, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.sent.Add(l.life), l.more
}

// watch returns when the lease has run out (true), or ctx is done (false).
func (l *lease) watch(ctx context.Context) bool {
	for {
		_, ends, more := l.state()
		select {
		case <-ctx.Done():
			return false
		case <-more:
		case <-time.After(time.Until(ends)):
			if _, ends, _ = l.state(); !time.Now().Before(ends) {
				return true
			}
		}
	}
}

// keepLease renews the lease of an attempt at every third of it until ctx is
// done. Out of reach of the control plane it asks for nothing: the next hello
// renews all leases. Of an attempt that has ended here only events are left: the
// lease keeps them welcome, but a box that leaves is gone before it runs out.
func (b *box) keepLease(ctx context.Context, a *attempt) {
	last, _, _ := a.lease.state()
	for pause := a.lease.pause(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(last.Add(pause))):
		}
		if b.conn.Wait(ctx) != nil || isDone(a.ended) && b.isLeaving() {
			return
		}
		last = time.Now()
		err := b.renewLease(ctx, a, last)
		pause = a.lease.pause()
		if err != nil && ctx.Err() == nil {
			a.log.Warn("lease not renewed", "error", err)
			pause = min(pause, b.cfg.Timing.Retry)
		}
	}
}

func (b *box) renewLease(ctx context.Context, a *attempt, sent time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, a.lease.pause()/2)
	defer cancel()
	var r protocol.Renewal
	err := b.conn.Call(ctx, protocol.CallRenew, protocol.Renew{
		Run: a.start.Run, Attempt: a.start.Attempt, Seq: a.spool.Last(),
	}, &r)
	if err != nil {
		return err
	}
	b.heard(r.ServerMS)
	a.granted(sent, r)
	return nil
}
