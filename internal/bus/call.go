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
	callLimit   = time.Minute // a box waits no longer for an answer
	answerLimit = 1<<20 - headerRoom
)

// Handle answers the calls of boxes to one method. Each call runs fn in a
// goroutine of its own, so thousands may wait at once; its ctx is done after a
// minute, or when Close begins. The box's account and credential prove boxID. A
// box that exceeds its share is refused with fault.RateLimited before fn runs, and
// disconnected for Config.PutOut when it goes on. An error travels as
// protocol.Failure: a fault with its slug and detail, any other error as
// fault.Internal. The nodes of a cluster share the calls.
func (b *Bus) Handle(method string, fn func(ctx context.Context, boxID string, data []byte) (any, error)) error {
	return b.serve(protocol.CallSubject("*", method), method, fn)
}

// serve is Handle of the calls that come under one subject.
func (b *Bus) serve(subject, method string, fn func(ctx context.Context, boxID string, data []byte) (any, error)) error {
	sub, err := b.nc.QueueSubscribe(subject, "cp", func(m *nats.Msg) {
		boxID, ok := callerOf(m.Subject)
		if !ok || m.Reply == "" {
			return // a message without a reply subject is no call
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
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answering = append(b.answering, sub)
	return nil
}

// callerOf reads the box id from the subject of a call. The server has held the
// subject against the box's account and credential.
func callerOf(subject string) (boxID string, ok bool) {
	rest, ok := strings.CutPrefix(subject, "rpc.")
	boxID, _, found := strings.Cut(rest, ".")
	return boxID, ok && found && checkToken("box id", boxID) == nil
}

func (b *Bus) answer(m *nats.Msg, method, boxID string, fn func(context.Context, string, []byte) (any, error)) {
	ctx, cancel := context.WithTimeout(b.ctx, callLimit)
	defer cancel()
	log := b.log.With("box", boxID, "method", method)
	var err error
	if b.cfg.Observe != nil {
		begun := time.Now()
		defer func() { b.cfg.Observe(method, time.Since(begun), err) }()
	}
	defer func() {
		if p := recover(); p != nil {
			log.Error("call panicked", "panic", p, "stack", string(debug.Stack()))
			err = errors.New("panic")
			b.fail(m, fault.From(err))
		}
	}()
	var out any
	if err = b.admit(ctx, boxID); err == nil {
		out, err = fn(ctx, boxID, m.Data)
	}
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

// admit refuses a box that is connected here and may not call any more.
func (b *Bus) admit(ctx context.Context, boxID string) error {
	var asked func(context.Context, string) (bool, error)
	switch {
	case b.cfg.Cluster != nil:
		asked = b.cfg.Cluster.May
	case b.cfg.External != nil:
		asked = b.cfg.External.May
	}
	if asked == nil || boxID == probeBox {
		return nil
	}
	may, err := asked(ctx, boxID)
	if err == nil && !may {
		err = fault.Missing("box")
	}
	return err
}

// fail answers a call with a failure. The headers follow the NATS services
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
