package box

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"yardmaster/internal/protocol"
)

func (a *answers) Append(ctx context.Context, e protocol.Envelope) (protocol.Appended, error) {
	out, err := a.call(ctx, protocol.CallAppend, e)
	if err != nil {
		return protocol.Appended{}, err
	}
	return out.(protocol.Appended), nil
}

// TestSendingEnds holds that events are sent to their end from wherever the control plane
// says it has them, also when it has all of them, or more than this box knows.
func TestSendingEnds(t *testing.T) {
	t.Parallel()
	for from, want := range map[int64]struct{ sent, fenced bool }{
		1: {sent: true}, 2: {sent: true}, 3: {sent: true}, 4: {}, 5: {fenced: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			sent := false
			b := boxAt(t, &answers{call: func(_ context.Context, _ string, in any) (any, error) {
				sent = true
				events := in.(protocol.Envelope).Events
				return protocol.Appended{Seq: events[len(events)-1].Seq}, nil
			}})
			b.life = t.Context()
			a := b.attempt(t, time.Now(), protocol.LeaseTTL)
			for _, kind := range []string{protocol.EventAccepted, protocol.EventPreparing, protocol.EventFinished} {
				a.event(kind, nil)
			}
			b.send(t.Context(), a, from)
			if sent != want.sent || isDone(a.saved) == want.fenced || isDone(a.fenced) != want.fenced {
				t.Errorf("from %d: sent %v, all are stored %v, given up %v", from, sent, isDone(a.saved), isDone(a.fenced))
			}
		})
	}
}
