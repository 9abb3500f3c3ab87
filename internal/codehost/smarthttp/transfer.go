package smarthttp

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	Patience = time.Minute // the time for which a client may accept no data
	slowest  = 4 << 10     // bytes that extend a transfer by a second
)

// Transfer limits the time of a request without ending a large or slow one: bytes
// that pass in either direction extend it. The HTTP server limits how long it waits
// for the client to send.
type Transfer struct {
	http.ResponseWriter
	Flow *http.ResponseController
	left atomic.Int64 // nanoseconds that remain
	over context.Context
	Stop context.CancelFunc // ends the count of time
}

// Transferring begins a transfer of at least least, and checks its time at each
// tick.
func Transferring(w http.ResponseWriter, least, tick time.Duration) *Transfer {
	t := &Transfer{ResponseWriter: w, Flow: http.NewResponseController(w)}
	t.left.Store(int64(least))
	t.over, t.Stop = context.WithCancel(context.Background())
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
			t.Stop()
			past := time.Unix(1, 0)
			_ = t.Flow.SetReadDeadline(past) // not every ResponseWriter has deadlines
			_ = t.Flow.SetWriteDeadline(past)
		}
	}()
	return t
}

// Bound is a context that ends with ctx or with the transfer, whichever is first.
func (t *Transfer) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.over, cancel)
	return ctx, func() { stop(); cancel() }
}

func (t *Transfer) earn(n int) { t.left.Add(int64(n) * int64(time.Second) / slowest) }

// Unwrap is for http.ResponseController.
func (t *Transfer) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Write implements io.Writer. The bytes extend the transfer.
func (t *Transfer) Write(p []byte) (int, error) {
	n, err := t.ResponseWriter.Write(p)
	t.earn(n)
	return n, err
}

// Body is the request's body, whose bytes extend the transfer.
func (t *Transfer) Body(r io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{earning{r, t}, r}
}

type earning struct {
	io.Reader
	t *Transfer
}

func (e earning) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	e.t.earn(n)
	return n, err
}

// Flusher sends what is written to it at once, because git shows progress. It fails
// when the client accepts nothing for Patience.
type Flusher struct{ To *Transfer }

// Write implements io.Writer.
func (f *Flusher) Write(p []byte) (int, error) {
	_ = f.To.Flow.SetWriteDeadline(time.Now().Add(Patience))
	n, err := f.To.Write(p)
	if err == nil {
		err = f.To.Flow.Flush()
	}
	return n, err
}

// Lossy discards output after the first failed write, so that a client that
// disconnects does not stop git between moving a ref and reporting it.
type Lossy struct {
	To   io.Writer
	gone bool
}

// Write implements io.Writer. It never fails.
func (l *Lossy) Write(p []byte) (int, error) {
	if !l.gone {
		_, err := l.To.Write(p)
		l.gone = err != nil
	}
	return len(p), nil
}
