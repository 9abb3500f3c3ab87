package rest

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// slowest is the slowest rate of a body, in bytes a second: each slowest bytes give the
// client another second.
const slowest = 4 << 10

// LimitBodyTime cuts off clients that are slow to send a body, so that they cannot hold
// connections idle. A client may keep the server waiting for the time some; each 4 KiB
// received add a second, up to some. There is no limit after the end of the body, as
// for streams and long polls.
func LimitBodyTime(some time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.SetWriteDeadline(time.Time{}) // a stream before on the connection may have left one
		if r.Body != http.NoBody {
			b := &pacedBody{ReadCloser: r.Body, rc: rc, most: some, left: some}
			b.allow(some) // also for a body that no handler reads, because the server reads it in the end
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

// allow limits the next wait for the client.
func (b *pacedBody) allow(d time.Duration) { _ = b.rc.SetReadDeadline(time.Now().Add(d)) }

// Read charges the client for the time of the wait, not for the time of the server
// between two reads.
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

// piece is the most of an answer that is written at once, in bytes.
const piece = 16 << 10

// pace returns a writer that cuts off clients that are slow to read an answer, as
// LimitBodyTime cuts off those that are slow to send a body.
func (s *server) pace(w http.ResponseWriter) http.ResponseWriter {
	return paced(s.Patience, w)
}

func paced(patience time.Duration, w http.ResponseWriter) http.ResponseWriter {
	if patience <= 0 {
		return w
	}
	return &pacedWriter{ResponseWriter: w, rc: http.NewResponseController(w), most: patience, left: patience}
}

// Paced cuts off clients that are slow to read what next answers, as LimitBodyTime those that are
// slow to send a body. No time is taken of a patience of 0.
func Paced(patience time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(paced(patience, w), r) })
}

// unpace ends the pace of a writer, for a stream.
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
		p.allow() // also for an answer without a body, which is sent when the handler has returned
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write charges the client for the time of the wait.
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
	p.allow() // the server sends the rest of its buffer when the handler has returned
	return written, nil
}

func (p *pacedWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
