package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

const (
	callLimit   = time.Minute // after which nobody on a box is listening any more
	answerLimit = 1<<20 - headerRoom
)

// Handle answers the calls of boxes to one method. Each call runs fn in a
// goroutine of its own, so thousands may wait at once; its ctx is done after a
// minute, or when Close begins. The box id is proved by the box's account and
// credential. A box that asks more than its share is refused before fn hears of
// it, and put out for a minute when it asks on and on.
// An error travels as protocol.Failure: a fault with its slug and detail,
// anything else as internal. Several nodes share the calls between them.
func (b *Bus) Handle(method string, fn func(ctx context.Context, boxID string, data []byte) (any, error)) error {
	sub, err := b.nc.QueueSubscribe(protocol.CallSubject("*", method), "cp", func(m *nats.Msg) {
		boxID, ok := callerOf(m.Subject)
		if !ok || m.Reply == "" {
			return // who waits for no answer has no reason to call
		}
		refused, enough := b.calls.begin(boxID, method, len(m.Data), func() { b.answer(m, method, boxID, fn) })
		if refused != nil {
			b.fail(m, refused)
		}
		if enough {
			b.putOut(boxID)
		}
	})
	if err == nil {
		// The callback only starts goroutines, so nothing piles up for long.
		err = sub.SetPendingLimits(-1, -1)
	}
	if err == nil {
		err = b.nc.Flush()
	}
	if err != nil {
		return fmt.Errorf("bus: handle %s: %w", method, err)
	}
	return nil
}

// callerOf is the box whose call has the subject. The server has held it against
// the box's account and its credential.
func callerOf(subject string) (boxID string, ok bool) {
	rest, ok := strings.CutPrefix(subject, "rpc.")
	boxID, _, found := strings.Cut(rest, ".")
	return boxID, ok && found && checkToken("box id", boxID) == nil
}

func (b *Bus) answer(m *nats.Msg, method, boxID string, fn func(context.Context, string, []byte) (any, error)) {
	ctx, cancel := context.WithTimeout(b.ctx, callLimit)
	defer cancel()
	log := b.log.With("box", boxID, "method", method)
	defer func() {
		if p := recover(); p != nil {
			log.Error("call panicked", "panic", p, "stack", string(debug.Stack()))
			b.fail(m, fault.From(errors.New("panic")))
		}
	}()
	out, err := fn(ctx, boxID, m.Data)
	var body []byte
	if err == nil {
		body, err = json.Marshal(out)
	}
	if err == nil && len(body) > answerLimit {
		err = fmt.Errorf("the answer has %d bytes", len(body))
	}
	if err == nil {
		if err := m.Respond(body); err != nil {
			log.Warn("answer a call", "error", err)
		}
		return
	}
	if b.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errRestarting.Because(err)
	}
	f := fault.From(err)
	if f.Kind == fault.Internal {
		log.Error("call failed", "error", err)
	}
	b.fail(m, f)
}

// fail answers with a failure. The headers are those of the NATS services
// convention; the code is the HTTP status of the fault's kind.
func (b *Bus) fail(m *nats.Msg, f *fault.Error) {
	body, err := json.Marshal(protocol.Failure{Error: f.Detail, Slug: f.Slug})
	if err == nil {
		reply := nats.NewMsg(m.Reply)
		reply.Header.Set(micro.ErrorHeader, f.Slug)
		reply.Header.Set(micro.ErrorCodeHeader, strconv.Itoa(f.Kind.Status()))
		reply.Data = body
		err = m.RespondMsg(reply)
	}
	if err != nil {
		b.log.Warn("answer a call with a failure", "subject", m.Subject, "error", err)
	}
}
