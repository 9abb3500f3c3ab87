package op

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// beat is how often an idle stream says that it is alive.
const beat = 15 * time.Second

// Sink is the open end of a server-sent event stream. Its methods are safe for
// concurrent use.
type Sink struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	last string

	mu     sync.Mutex
	opened bool
	buf    bytes.Buffer
}

// LastEventID is what a reconnecting client had seen; empty on a first visit.
func (s *Sink) LastEventID() string { return s.last }

// Open sends the headers. From here on an error can no longer be a problem.
func (s *Sink) Open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open()
}

func (s *Sink) open() {
	if s.opened {
		return
	}
	s.opened = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.rc.Flush()
}

// Send writes one frame. An empty id or event leaves that line out.
func (s *Sink) Send(id, event string, data any) error {
	b, err := json.Marshal(data, wire)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open()
	s.buf.Reset()
	if id != "" {
		s.buf.WriteString("id: " + strings.NewReplacer("\n", "", "\r", "").Replace(id) + "\n")
	}
	if event != "" {
		s.buf.WriteString("event: " + event + "\n")
	}
	s.buf.WriteString("data: ")
	s.buf.Write(b)
	s.buf.WriteString("\n\n")
	return s.flush()
}

func (s *Sink) flush() error {
	s.rc.SetWriteDeadline(time.Now().Add(30 * time.Second))
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return err
	}
	return s.rc.Flush()
}

// keepAlive writes comments until ctx ends.
func (s *Sink) keepAlive(ctx context.Context) {
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.mu.Lock()
			if s.opened {
				s.buf.Reset()
				s.buf.WriteString(": " + "alive" + "\n\n")
				s.flush()
			}
			s.mu.Unlock()
		}
	}
}
