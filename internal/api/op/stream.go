package op

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	// Retry is how long a browser waits before it connects again, in milliseconds.
	Retry = 3000
)

// Tail is where a surface takes a stream: text of the media type
// text/event-stream. Its methods are not called at once.
type Tail interface {
	// Open begins the answer with 200, or with 204 if nothing follows.
	Open(status int)
	// Write hands text on at once. It fails if the caller has gone.
	Write(b []byte) (int, error)
}

// Sink is the open end of a server-sent event stream. Its methods are safe for
// concurrent use.
type Sink struct {
	tail Tail
	last string

	mu     sync.Mutex
	opened int // the status that the stream was opened with; 0: not yet
	buf    bytes.Buffer
}

func (s *Sink) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened > 0
}

// stream has the handler of a stream answer.
func (p *Pipeline) stream(ctx context.Context, c *Call) Answer {
	o := c.Op
	if c.Last != "" && !o.Resume {
		return p.Refuse(c, fault.Field("Last-Event-ID", "this stream cannot be resumed; connect without it"))
	}
	if c.Tail == nil {
		return p.Refuse(c, fmt.Errorf("op %s is a stream, and its caller takes none", o.ID))
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Sink{tail: c.Tail, last: c.Last}
	c.sink = s
	var shut error
	stop := s.keepAlive(func() error {
		err := p.still(ctx, c)
		if ctx.Err() != nil {
			return nil // nobody waits for what we wanted to know
		}
		return err
	}, func(err error) {
		shut = err
		cancel()
	})
	defer stop() // nothing may be written once we have returned, not even after a panic
	defer cancel()
	err := o.stream(ctx, func(in any) error { return o.bind(c, in) }, s)
	cancel()
	stop()
	if shut != nil {
		err = shut
	}
	switch {
	case errors.Is(err, context.Canceled):
		err = nil
	case err != nil && s.opened > 0:
		_ = s.Send("", "error", p.problem(c, fault.From(err))) // the caller may be gone, too
	}
	if err != nil {
		a := p.Refuse(c, err)
		if a.Streamed {
			a.Status = s.opened
		}
		return a
	}
	a := p.answer(c)
	a.Status = s.opened
	return a
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
	if s.opened > 0 {
		return
	}
	s.opened = 200
	s.tail.Open(200)
	_, _ = s.tail.Write([]byte("retry: " + strconv.Itoa(Retry) + "\n\n")) // a caller that is gone is noticed at the first frame
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
	again := s.last != "" && since >= last && s.opened == 0
	if again {
		s.opened = 204
		s.tail.Open(204)
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
	_, err := s.tail.Write(b)
	return err
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
			if s.opened > 0 {
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
