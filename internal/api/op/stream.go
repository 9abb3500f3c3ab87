package op

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/fault"
)

const (
	// beat is how often an idle stream says that it is alive.
	beat = 15 * time.Second
	// recheck is how often the caller of an open stream is looked at again: a
	// revoked credential, or one with less to it, hears nothing any more after that.
	recheck = time.Second
	// retry is how long a browser waits before it connects again, in milliseconds.
	retry = 3000
)

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

// Since is the number that a reconnecting client had seen last, of a stream whose
// frames are numbered; 0 on a first visit.
func (s *Sink) Since() (int64, error) {
	if s.last == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s.last, 10, 64)
	if err != nil || n < 0 {
		return 0, fault.Field("Last-Event-ID", "is not the id of a frame of this stream")
	}
	return n, nil
}

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
	s.w.Write([]byte("retry: " + strconv.Itoa(retry) + "\n\n")) // who is gone is noticed at the first frame
	s.rc.Flush()
}

// End tells that nothing follows the frame with the id last. Who comes back
// with that id, or one after it, has seen it all: 204 keeps browsers from
// connecting again and again.
func (s *Sink) End(last int64, data any) error {
	since, err := s.Since()
	if err != nil {
		return err
	}
	s.mu.Lock()
	again := s.last != "" && since >= last && !s.opened
	if again {
		s.opened = true
		s.w.WriteHeader(http.StatusNoContent)
	}
	s.mu.Unlock()
	if again {
		return nil
	}
	return s.Send(strconv.FormatInt(last, 10), "end", data)
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
	return s.flush(s.buf.Bytes())
}

// Frame is a frame of an event without an id, to be sent to many with Pass.
func Frame(event string, data any) ([]byte, error) {
	b, err := json.Marshal(data, wire)
	return slices.Concat([]byte("event: "+event+"\ndata: "), b, []byte("\n\n")), err
}

// Pass writes frames that Frame has made.
func (s *Sink) Pass(frames []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open()
	return s.flush(frames)
}

func (s *Sink) flush(b []byte) error {
	s.rc.SetWriteDeadline(time.Now().Add(30 * time.Second))
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}

var alive = []byte(": alive\n\n")

// keepAlive writes comments until it is stopped, or until the caller is no
// longer allowed to listen: then it cuts. Once stop has returned nothing is
// written any more. Between the looks it is a timer and no goroutine, whose
// stack thousands of idle streams would each keep.
func (s *Sink) keepAlive(allowed func() error, cut func(error)) (stop func()) {
	var mu sync.Mutex // held during a look
	var over bool
	var t *time.Timer
	idle := time.Duration(0)
	mu.Lock()
	defer mu.Unlock()
	t = time.AfterFunc(recheck, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if err := allowed(); err != nil {
			over = true
			cut(err)
			return
		}
		if idle += recheck; idle >= beat {
			idle = 0
			s.mu.Lock()
			if s.opened {
				s.flush(alive)
			}
			s.mu.Unlock()
		}
		t.Reset(recheck)
	})
	return func() {
		t.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
		t.Stop() // the look that we waited for may have set it again
	}
}
