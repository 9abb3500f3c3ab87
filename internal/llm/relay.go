package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm/answer"
)

// Reasons for which an exchange ends early.
var (
	ErrCallerGone = errors.New("the caller went away")
	ErrIdle       = errors.New("the upstream sent nothing for too long")
	ErrCut        = errors.New("the upstream cut its answer short")
	ErrCoded      = errors.New("the upstream compressed its answer")
)

// Relay sends calls upstream and streams answers back.
type Relay struct {
	Transport http.RoundTripper
	// Idle bounds the wait for the first byte of an answer and between two
	// reads of it. There is no bound on the whole.
	Idle time.Duration
}

// Exchange is a call in progress. Its owner closes it.
type Exchange struct {
	*http.Response
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
	sent   bool
}

// Send sends a request whose body can be sent again, and waits for the head of the
// answer. It fails with the fault provider_unavailable, which wraps ErrCallerGone
// if the caller has cancelled.
func (r Relay) Send(req *http.Request) (*Exchange, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	x := &Exchange{ctx: ctx, cancel: cancel, idle: r.Idle}
	x.timer = time.AfterFunc(r.Idle, func() { cancel(ErrIdle) })
	req = req.WithContext(ctx)
	// Marks the request as repeatable: if the upstream has just closed an idle
	// connection, the call is made over a new one. The nil header is not sent.
	req.Header["Idempotency-Key"] = nil
	resp, err := r.Transport.RoundTrip(req)
	if err != nil {
		defer x.release()
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, ErrIdle):
			return nil, unavailable("The model provider did not answer in time.", ErrIdle)
		case cause != nil:
			return nil, unavailable("The call was given up.", ErrCallerGone)
		}
		return nil, unavailable("The model provider cannot be reached.", err)
	}
	x.Response = resp
	return x, nil
}

func unavailable(detail string, cause error) error {
	return fault.New(fault.Unavailable, SlugUnavailable, detail).Because(cause)
}

func (x *Exchange) release() {
	x.timer.Stop()
	x.cancel(nil)
}

// Close releases the upstream, and disconnects one that is still sending.
func (x *Exchange) Close() {
	x.release()
	x.Response.Body.Close()
}

const (
	// holdTime is how long an answer without content is held back. Clients wait for
	// the head of an answer longer than that.
	holdTime = 15 * time.Second
	// maxHeld is how many bytes are held back.
	maxHeld = 1 << 20
)

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Copy streams the answer's body to w, each piece as it arrives, and to the meter.
// Until content has come it holds everything back, the head too, for holdTime at
// most: as long as nothing was sent, a failure can be told as one. head is called
// before anything is sent. Copy fails with ErrCallerGone, ErrIdle, ErrCut or an
// *answer.Failure; whether anything was sent, Sent tells. An error that the provider
// reports behind content is sent on, and is the meter's alone to tell.
func (x *Exchange) Copy(w http.ResponseWriter, m *Meter, head func()) error {
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	out := &holding{w: w, flush: http.NewResponseController(w).Flush, head: head}
	defer func() { x.sent = out.stop() }()
	if m.Begun() { // nothing is judged
		out.open = true
		head()
	} else {
		out.timer = time.AfterFunc(holdTime, out.late)
	}
	for {
		n, err := x.Response.Body.Read(buf[:])
		if n > 0 {
			x.timer.Reset(x.idle)
			m.Write(buf[:n])
			if out.write(buf[:n], m.Begun(), m.streamed() && err == nil) != nil {
				m.End(ErrCallerGone)
				return ErrCallerGone
			}
		}
		switch {
		case err == io.EOF, err == nil && m.failed() && out.holds():
			return x.ended(out, m, nil)
		case err != nil:
			return x.ended(out, m, x.broken())
		}
	}
}

// ended judges the end of the body, and what broke it; nil: it ended properly.
func (x *Exchange) ended(out *holding, m *Meter, broken error) error {
	m.End(broken)
	failure := m.Failure()
	switch {
	case errors.Is(broken, ErrCallerGone), errors.Is(broken, ErrIdle):
		return broken
	case m.reader == nil:
		return broken
	case failure == nil: // whole, also if what follows the end of the answer is missing
		return out.release()
	case out.holds():
		return failure
	case failure.Kind == answer.Cut, failure.Kind == answer.NotAnswer:
		broken = ErrCut // only a broken connection tells the caller
	}
	if broken != nil {
		_ = out.flush() // what has come is the caller's; a failure has no other
	}
	return broken
}

// broken is why a body has ended before its end.
func (x *Exchange) broken() error {
	switch {
	case errors.Is(context.Cause(x.ctx), ErrIdle):
		return ErrIdle
	case x.ctx.Err() != nil:
		return ErrCallerGone
	}
	return ErrCut
}

// Sent tells, after Copy, whether the caller has got anything.
func (x *Exchange) Sent() bool { return x.sent }

// holding holds an answer back until it is opened.
type holding struct {
	w     http.ResponseWriter
	flush func() error
	head  func()
	timer *time.Timer

	mu   sync.Mutex
	open bool
	held []byte
}

// write sends bytes on, or holds them back as long as no content has come.
func (o *holding) write(p []byte, content, flush bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open && !content && len(o.held)+len(p) <= maxHeld {
		o.held = append(o.held, p...)
		return nil
	}
	if err := o.send(); err != nil {
		return err
	}
	if _, err := o.w.Write(p); err != nil || !flush {
		return err // a whole document is sent on when it ends, or when buffers are full
	}
	return o.flush()
}

// send sends what was held back.
func (o *holding) send() error {
	if o.open {
		return nil
	}
	o.open = true
	o.head()
	if len(o.held) == 0 {
		return nil
	}
	_, err := o.w.Write(o.held)
	o.held = nil
	return err
}

// release sends what was held back, at the end of the answer.
func (o *holding) release() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.send() != nil {
		return ErrCallerGone
	}
	return nil
}

// late sends what was held back for holdTime.
func (o *holding) late() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open && o.send() == nil {
		_ = o.flush() // the next write reports a failure
	}
}

func (o *holding) holds() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.open
}

// stop ends the holding, and tells whether anything was sent. Nothing is sent later.
func (o *holding) stop() (sent bool) {
	if o.timer != nil {
		o.timer.Stop()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	sent, o.open = o.open, true
	return sent
}

// CopyRequestHeader copies the caller's headers that a provider may see: a closed
// list, so that no credential, cookie or address passes.
func CopyRequestHeader(to, from http.Header) {
	for name, values := range from {
		switch {
		case name == "Accept", name == "Content-Type", name == "User-Agent", name == "Openai-Beta",
			strings.HasPrefix(name, "Anthropic-"), strings.HasPrefix(name, "X-Stainless-"):
			to[name] = values
		}
	}
}

// CopyResponseHeader copies the provider's headers that a caller may see: neither
// cookies nor the name of the key's owner.
func CopyResponseHeader(to, from http.Header) {
	for name, values := range from {
		switch {
		case name == "Content-Type", name == "Cache-Control", name == "Request-Id", name == "X-Request-Id",
			name == "Retry-After", name == "Retry-After-Ms", name == "X-Should-Retry", name == FaultHeader, name == KindHeader,
			name == CapHeader,
			strings.HasPrefix(name, "Anthropic-Ratelimit-"), strings.HasPrefix(name, "X-Ratelimit-"):
			to[name] = values
		}
	}
}
