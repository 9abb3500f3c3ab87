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

// Why an exchange ended early.
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

// Exchange is a call on its way. Close it.
type Exchange struct {
	*http.Response
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
}

// Send sends a request whose body can be sent again, and waits for the head of
// the answer. Errors are faults: provider_unavailable, or a wrapped ErrCallerGone.
func (r Relay) Send(req *http.Request) (*Exchange, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	x := &Exchange{ctx: ctx, cancel: cancel, idle: r.Idle}
	x.timer = time.AfterFunc(r.Idle, func() { cancel(ErrIdle) })
	req = req.WithContext(ctx)
	// An idle connection that the upstream closed at this very moment costs a
	// new connection, not the call. The header itself is not sent.
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

// Close lets go of the upstream; one that is still sending is cut off.
func (x *Exchange) Close() {
	x.release()
	x.Response.Body.Close()
}

// headWait is how long the head of a streamed answer waits for the first piece.
const headWait = 2 * time.Millisecond

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Copy streams the answer's body to w, each piece as it comes, and to the
// meter. It fails with ErrCallerGone, ErrIdle or ErrCut.
func (x *Exchange) Copy(w http.ResponseWriter, m *Meter) error {
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	flush := http.NewResponseController(w).Flush
	var head sync.Mutex
	var begun bool
	if m.Streamed() {
		// The head says that the call was taken. It goes out with the first
		// piece, or alone when that takes its time.
		early := time.AfterFunc(headWait, func() {
			head.Lock()
			defer head.Unlock()
			if !begun {
				_ = flush() // the next write tells
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

// CopyRequestHeader copies what a provider may see of a caller's headers:
// a closed list, so that no credential, cookie or address slips through.
func CopyRequestHeader(to, from http.Header) {
	for name, values := range from {
		switch {
		case name == "Accept", name == "Content-Type", name == "User-Agent", name == "Openai-Beta",
			strings.HasPrefix(name, "Anthropic-"), strings.HasPrefix(name, "X-Stainless-"):
			to[name] = values
		}
	}
}

// CopyResponseHeader copies what a caller may see of a provider's headers: not
// its cookies, nor whose key it was.
func CopyResponseHeader(to, from http.Header) {
	for name, values := range from {
		switch {
		case name == "Content-Type", name == "Cache-Control", name == "Request-Id", name == "X-Request-Id",
			name == "Retry-After", name == "Retry-After-Ms", name == "X-Should-Retry", name == FaultHeader,
			strings.HasPrefix(name, "Anthropic-Ratelimit-"), strings.HasPrefix(name, "X-Ratelimit-"):
			to[name] = values
		}
	}
}
