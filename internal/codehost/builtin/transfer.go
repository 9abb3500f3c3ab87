package builtin

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	patience = time.Minute // the time for which a client may accept no data
	slowest  = 4 << 10     // bytes that extend a transfer by a second
)

// transfer limits the time of a request without ending a large or slow one: bytes
// that pass in either direction extend it. The HTTP server limits how long it waits
// for the client to send.
type transfer struct {
	http.ResponseWriter
	flow *http.ResponseController
	left atomic.Int64 // nanoseconds that remain
	over context.Context
	stop context.CancelFunc
}

// transferring begins a transfer of at least least, and checks its time at each
// tick.
func transferring(w http.ResponseWriter, least, tick time.Duration) *transfer {
	t := &transfer{ResponseWriter: w, flow: http.NewResponseController(w)}
	t.left.Store(int64(least))
	t.over, t.stop = context.WithCancel(context.Background())
	go func() {
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		for {
			select {
			case <-t.over.Done():
				return
			case <-ticks.C:
			}
			if t.left.Add(-int64(tick)) > 0 {
				continue
			}
			t.stop()
			past := time.Unix(1, 0)
			_ = t.flow.SetReadDeadline(past) // not every ResponseWriter has deadlines
			_ = t.flow.SetWriteDeadline(past)
		}
	}()
	return t
}

// bound is a context that ends with ctx or with the transfer, whichever is first.
func (t *transfer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.over, cancel)
	return ctx, func() { stop(); cancel() }
}

func (t *transfer) earn(n int) { t.left.Add(int64(n) * int64(time.Second) / slowest) }

// Unwrap is for http.ResponseController.
func (t *transfer) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *transfer) Write(p []byte) (int, error) {
	n, err := t.ResponseWriter.Write(p)
	t.earn(n)
	return n, err
}

// body is the request's body, whose bytes extend the transfer.
func (t *transfer) body(r io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{earning{r, t}, r}
}

type earning struct {
	io.Reader
	t *transfer
}

func (e earning) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	e.t.earn(n)
	return n, err
}
