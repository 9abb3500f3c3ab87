package box

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/protocol"
)

// lease is a box's right to work on an attempt. Its time counts from the sending of
// the granted request, on the box's monotonic clock, so that it never lasts longer
// here than the control plane believes.
type lease struct {
	timing Timing

	mu    sync.Mutex
	sent  time.Time     // when the request that was granted last was sent
	renew time.Duration // between two renewals
	life  time.Duration // from sent until the agent must have stopped
	more  chan struct{} // closed and replaced at each extension
}

func newLease(t Timing, sent time.Time, granted time.Duration) *lease {
	l := &lease{timing: t, more: make(chan struct{})}
	l.extend(sent, granted)
	return l
}

// extend applies the grant of a request that was sent at the given time. Answers
// may arrive in any order.
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

// pause returns the time between two renewals.
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

// watch returns true when the lease has run out, or false when ctx is done.
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

// keepLease renews the lease of an attempt at each third of its length until ctx is
// done. Without a connection it waits: the next hello renews all leases. After the
// attempt has ended here, the lease only lets the control plane accept the
// remaining events; a box that is leaving ends before the lease does.
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
	b.noteClock(r.ServerMS)
	a.applyGrant(sent, r)
	return nil
}
