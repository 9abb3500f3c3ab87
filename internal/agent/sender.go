package agent

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/bus/boxconn"
	"yardmaster/internal/protocol"
)

// One envelope holds at most this much, unless one event alone is larger.
const (
	envelopeEvents = 64
	envelopeBytes  = 64 << 10
)

// send publishes an attempt's events in order, from the given number on, until
// ctx is done or the attempt is fenced. Each envelope names the message it
// follows, so that what a lost answer left unknown is found out, and nothing is
// stored twice or out of order.
func (b *box) send(ctx context.Context, a *attempt, from int64) {
	next, after := max(from, a.spool.First()), uint64(0)
	for ctx.Err() == nil {
		changed := a.spool.Changed()
		if err := a.spool.Sync(); err != nil {
			// What is durable can still be sent; the spool has reported it.
			a.log.Debug("sync the spool", "error", err)
		}
		events, err := a.spool.Read(next, envelopeEvents, envelopeBytes)
		if err != nil {
			a.log.Error("events cannot be read back", "from", next, "error", err)
			a.fence("the spool is unreadable")
			return
		}
		if len(events) == 0 {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		last := events[len(events)-1].Seq
		seq, err := b.publish(ctx, protocol.Envelope{
			Run: a.start.Run, Attempt: a.start.Attempt, Events: events,
		}, after)
		var stale *boxconn.StaleError
		switch {
		case err == nil:
			next, after = last+1, seq
		case errors.As(err, &stale):
			a.log.Debug("the stream is elsewhere", "event", stale.EventSeq, "here", next)
			if stale.EventSeq > a.spool.Last() {
				a.fence("the stream holds events that this box does not know")
				return
			}
			next, after = max(stale.EventSeq+1, a.spool.First()), stale.SubjectSeq
		case errors.Is(err, boxconn.ErrFenced):
			a.fence("the control plane has closed the attempt's events")
			return
		case ctx.Err() != nil:
			return
		default:
			a.log.Debug("events not sent", "from", next, "error", err)
			if b.conn.Wait(ctx) == nil {
				sleep(ctx, b.cfg.Timing.Retry)
			}
		}
	}
}

func (b *box) publish(ctx context.Context, e protocol.Envelope, after uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timing.Renew)
	defer cancel()
	return b.conn.Publish(ctx, e, after)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
