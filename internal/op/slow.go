package op

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
