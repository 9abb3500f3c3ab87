package box

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// One envelope holds at most this much, unless a single event is larger.
const (
	envelopeEvents = 64
	envelopeBytes  = 64 << 10
)

// retryLast is the longest pause before events are sent again.
const retryLast = 15 * time.Second

// unknownEvents is why an attempt is given up whose spool lacks what was sent from it.
const unknownEvents = "the control plane holds events that this box does not know"

// send sends an attempt's events in order, starting with the event number from,
// until ctx is done or the attempt is fenced. Each answer says up to which event
// they are stored, so that exactly the lost events are sent again. The events before
// from are stored: if they are all, nothing is left to send.
func (b *box) send(ctx context.Context, a *attempt, from int64) {
	if from > a.spool.Last()+1 {
		a.fence(unknownEvents)
		return
	}
	if a.noteStored(from - 1) {
		return
	}
	next, failures := max(from, a.spool.First()), 0
	for ctx.Err() == nil {
		changed := a.spool.Changed()
		if err := a.spool.Sync(); err != nil {
			// The durable events can still be sent; the spool has reported the
			// error.
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
		reply, err := b.append(ctx, protocol.Envelope{Run: a.start.Run, Attempt: a.start.Attempt, Events: events})
		var refused *fault.Error
		switch {
		case err == nil && reply.Seq > a.spool.Last():
			a.fence(unknownEvents)
			return
		case err == nil && (reply.Seq >= last || !reply.Closed):
			failures = 0
			if a.noteStored(reply.Seq) {
				return
			}
			if next = reply.Seq + 1; next < a.spool.First() {
				a.fence("the control plane lacks events that are no longer here")
				return
			}
		case err == nil:
			a.fence("the control plane has closed the attempt's events")
			return
		case ctx.Err() != nil:
			return
		case errors.As(err, &refused) && final(refused):
			a.log.Error("events refused", "from", next, "error", err)
			a.fence("the control plane refuses the attempt's events: " + refused.Detail)
			return
		default:
			// No answer, a temporary refusal and a full disk are treated alike: the
			// events stay in the spool and are sent again after a growing pause.
			a.log.Debug("events not sent", "from", next, "error", err)
			if b.conn.Wait(ctx) == nil {
				sleep(ctx, min(b.cfg.Timing.Retry<<min(failures, 10), retryLast))
			}
			failures++
		}
	}
}

// final tells whether a refusal will be the same the next time.
func final(f *fault.Error) bool {
	return f.Kind == fault.Invalid || f.Kind == fault.TooLarge || f.Kind == fault.Forbidden
}

func (b *box) append(ctx context.Context, e protocol.Envelope) (protocol.Appended, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timing.Renew)
	defer cancel()
	return b.conn.Append(ctx, e)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
