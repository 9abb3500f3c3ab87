package smarthttp

import (
	"context"
	"io"
	"net/http"
	"sync"
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
	stop context.CancelFunc

	in     *earning // the request's body
	duplex bool
}

// Transferring begins a transfer of at least least, and checks its time at each
// tick.
func Transferring(w http.ResponseWriter, least, tick time.Duration) *Transfer {
	t := &Transfer{ResponseWriter: w, Flow: http.NewResponseController(w)}
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

// Body is the request's body, whose bytes extend the transfer. It may be read by
// several goroutines.
func (t *Transfer) Body(r io.ReadCloser) io.ReadCloser {
	t.in = &earning{from: r, t: t}
	return struct {
		io.Reader
		io.Closer
	}{t.in, r}
}

type earning struct {
	mu   sync.Mutex
	from io.Reader
	t    *Transfer
}

func (e *earning) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := e.from.Read(p)
	e.t.earn(n)
	return n, err
}

// Duplex lets the answer begin while the request is still read: git answers so. Without
// it net/http would read the rest of the body first.
func (t *Transfer) Duplex() {
	t.duplex = true
	_ = t.Flow.EnableFullDuplex() // HTTP/2 always is
}

// maxDrain is the number of bytes that Stop reads at most.
const maxDrain = 2 << 30

// Stop ends the transfer. The handler calls it last. In a duplex transfer it reads the
// rest of the body: net/http does not expect that a handler leaves some of it, or that
// another goroutine still reads.
func (t *Transfer) Stop() {
	if t.duplex && t.in != nil {
		_, _ = io.CopyN(io.Discard, t.in, maxDrain)
	}
	t.stop()
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
