// Package gate is the common HTTP side of the servers that a box runs for its
// sandboxes. A Gate admits runs by their tokens, of which it keeps digests, serves
// any number of listeners, and cancels the requests of a run that has ended. Dialer
// connects such a server to hosts outside of the box.
package gate

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// ErrTaken is returned by Admit if another run has the token, and after Close.
var ErrTaken = errors.New("the token is taken, or the server is closed")

// Gate admits runs by token. Its methods may be called concurrently.
type Gate[R any] struct {
	log *slog.Logger

	mu      sync.RWMutex
	passes  map[[sha256.Size]byte]*Pass[R]
	servers []*http.Server
	closed  bool
}

// Pass is the right of one run to be served, from Admit to Dismiss.
type Pass[R any] struct {
	Run  R
	ctx  context.Context // done when the run is dismissed
	stop context.CancelFunc
}

// New returns a gate that knows no run yet.
func New[R any](log *slog.Logger) *Gate[R] {
	return &Gate[R]{log: log, passes: map[[sha256.Size]byte]*Pass[R]{}}
}

// Admit admits a run under a token, which must not be empty. It returns ErrTaken if
// another run has the token or the gate is closed.
func (g *Gate[R]) Admit(token string, run R) error {
	key := sha256.Sum256([]byte(token))
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, taken := g.passes[key]; taken || g.closed {
		return ErrTaken
	}
	p := &Pass[R]{Run: run}
	p.ctx, p.stop = context.WithCancel(context.Background())
	g.passes[key] = p
	return nil
}

// Find returns the pass of the run with the token, nil if there is none.
func (g *Gate[R]) Find(token string) *Pass[R] {
	key := sha256.Sum256([]byte(token))
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.passes[key]
}

// Dismiss removes the run with the token and cancels its requests. It returns the
// run's pass, nil if there was none.
func (g *Gate[R]) Dismiss(token string) *Pass[R] {
	key := sha256.Sum256([]byte(token))
	g.mu.Lock()
	p := g.passes[key]
	delete(g.passes, key)
	g.mu.Unlock()
	if p != nil {
		p.stop()
	}
	return p
}

// Bound returns a context that ends with ctx or with the run. The caller calls the
// cancel function when the request is answered.
func (p *Pass[R]) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	release := p.AfterEnd(cancel)
	return ctx, func() { release(); cancel() }
}

// AfterEnd calls fn, on a goroutine of its own, when the run ends. The returned
// function prevents the call.
func (p *Pass[R]) AfterEnd(fn func()) (release func() bool) { return context.AfterFunc(p.ctx, fn) }

// Server returns an HTTP server with the timeouts of all servers of the box.
func (g *Gate[R]) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: severed(h), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
}

// severed lets a handler that panics, as a reverse proxy does when an answer breaks
// off, end the connection at once. net/http first reads the rest of the request,
// for as long as the client takes to send it, and the client would wait for the rest
// of the answer meanwhile.
func severed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if cause := recover(); cause != nil {
				_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // it fails where the connection has ended
				// Another goroutine may still read the request. Once it has given up, so does net/http.
				_, _ = r.Body.Read(make([]byte, 1))
				panic(cause)
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// Serve serves a listener and closes it at the end. It returns http.ErrServerClosed
// after Close.
func (g *Gate[R]) Serve(l net.Listener, h http.Handler) error {
	srv := g.Server(h)
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		l.Close()
		return http.ErrServerClosed
	}
	g.servers = append(g.servers, srv)
	g.mu.Unlock()
	err := srv.Serve(l)
	g.mu.Lock()
	g.servers = slices.DeleteFunc(g.servers, func(s *http.Server) bool { return s == srv })
	g.mu.Unlock()
	return err
}

// Close dismisses all runs and ends every listener and request. It returns the
// passes of the dismissed runs.
func (g *Gate[R]) Close() []*Pass[R] {
	g.mu.Lock()
	g.closed = true
	servers, passes := g.servers, g.passes
	g.servers, g.passes = nil, map[[sha256.Size]byte]*Pass[R]{}
	g.mu.Unlock()
	gone := make([]*Pass[R], 0, len(passes))
	for _, p := range passes {
		p.stop()
		gone = append(gone, p)
	}
	for _, srv := range servers {
		srv.Close()
	}
	return gone
}
