package rest

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// slowest is how many bytes a second of a body earn its sender another second.
const slowest = 4 << 10

// Hurry cuts off clients that are slow to send a body, so that they cannot hold
// connections for nothing. A body may take some time as such and, however large
// it is, as long as it keeps coming. What happens after its end, as a stream or
// a long poll, has all the time it wants.
func Hurry(some time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.SetWriteDeadline(time.Time{}) // which a stream before on the connection may have left
		if r.Body != http.NoBody {
			b := &pacedBody{ReadCloser: r.Body, rc: rc, most: some, left: some}
			b.allow(some) // also for a body that nobody reads, which the server does in the end
			r.Body = b
		}
		next.ServeHTTP(w, r)
	})
}

type pacedBody struct {
	io.ReadCloser
	rc         *http.ResponseController
	most, left time.Duration
}

// allow bounds the next wait for the client.
func (b *pacedBody) allow(d time.Duration) { _ = b.rc.SetReadDeadline(time.Now().Add(d)) }

// Read charges the client for the time that we wait for it, not for what we
// take ourselves between two reads.
func (b *pacedBody) Read(p []byte) (int, error) {
	began := time.Now()
	b.allow(b.left)
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	b.left = min(b.most, b.left-time.Since(began)+time.Duration(n)*time.Second/slowest)
	return n, err
}

// piece is how much of an answer is handed over at once, in bytes.
const piece = 16 << 10

// pace cuts off clients that are slow to read an answer, as Hurry does those
// that are slow to send a body.
func (s *server) pace(w http.ResponseWriter) http.ResponseWriter {
	if s.Patience <= 0 {
		return w
	}
	return &pacedWriter{ResponseWriter: w, rc: http.NewResponseController(w), most: s.Patience, left: s.Patience}
}

// unpace lets a stream take as long as it takes.
func unpace(w http.ResponseWriter) {
	for w != nil {
		if p, ok := w.(*pacedWriter); ok {
			p.free = true
			return
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = u.Unwrap()
	}
}

type pacedWriter struct {
	http.ResponseWriter
	rc         *http.ResponseController
	most, left time.Duration
	free       bool // not paced any more
}

func (p *pacedWriter) allow() { _ = p.rc.SetWriteDeadline(time.Now().Add(p.left)) }

func (p *pacedWriter) WriteHeader(status int) {
	if !p.free {
		p.allow() // also of an answer without a body, which is sent when the handler has returned
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write charges the client for the time that it keeps us waiting.
func (p *pacedWriter) Write(b []byte) (written int, err error) {
	if p.free {
		return p.ResponseWriter.Write(b)
	}
	for first := true; first || len(b) > 0; first = false {
		part := b[:min(len(b), piece)]
		began := time.Now()
		p.allow()
		n, err := p.ResponseWriter.Write(part)
		written += n
		p.left = min(p.most, p.left-time.Since(began)+time.Duration(n)*time.Second/slowest)
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	p.allow() // what the server still holds is sent when the handler has returned
	return written, nil
}

func (p *pacedWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
