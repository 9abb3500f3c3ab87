package rest

import (
	"net/http"
	"time"
)

// stall is the time that a client may take to read one piece of a stream.
const stall = 30 * time.Second

// tail is the op.Tail of a response.
type tail struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// Open begins the answer. A later error cannot be answered as a problem.
func (t *tail) Open(status int) {
	unpace(t.w)
	if h := t.w.Header(); status == http.StatusOK {
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
	}
	t.w.WriteHeader(status)
}

// Write sends text without delay.
func (t *tail) Write(b []byte) (int, error) {
	_ = t.rc.SetWriteDeadline(time.Now().Add(stall))
	n, err := t.w.Write(b)
	if err != nil {
		return n, err
	}
	return n, t.rc.Flush()
}
