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

// headWait is how long the head of a streamed answer waits for the first piece.
const headWait = 2 * time.Millisecond

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Copy streams the answer's body to w, each piece as it arrives, and to the meter.
// It fails with ErrCallerGone, ErrIdle or ErrCut.
func (x *Exchange) Copy(w http.ResponseWriter, m *Meter) error {
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	flush := http.NewResponseController(w).Flush
	var head sync.Mutex
	var begun bool
	if m.Streamed() {
		// The head tells the caller that the provider accepted the call. It goes out
		// with the first piece, or alone if no piece arrives within headWait.
		early := time.AfterFunc(headWait, func() {
			head.Lock()
			defer head.Unlock()
			if !begun {
				_ = flush() // the next write reports a failure
			}
		})
		defer early.Stop()
	}
	for {
		n, err := x.Response.Body.Read(buf[:])
		if !begun {
			head.Lock()
			begun = true
			head.Unlock()
		}
		if n > 0 {
			x.timer.Reset(x.idle)
			m.Write(buf[:n])
			if _, err := w.Write(buf[:n]); err != nil {
				return ErrCallerGone
			}
			// A whole document is sent on when it ends, or when buffers are full.
			if m.Streamed() && err == nil {
				if flush() != nil {
					return ErrCallerGone
				}
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err == nil:
		case errors.Is(context.Cause(x.ctx), ErrIdle):
			return ErrIdle
		case x.ctx.Err() != nil:
			return ErrCallerGone
		default:
			return ErrCut
		}
	}
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
			name == "Retry-After", name == "Retry-After-Ms", name == "X-Should-Retry", name == FaultHeader, name == CapHeader,
			strings.HasPrefix(name, "Anthropic-Ratelimit-"), strings.HasPrefix(name, "X-Ratelimit-"):
			to[name] = values
		}
	}
}
