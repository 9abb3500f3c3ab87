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
	// beat is the interval at which an idle stream sends a comment.
	beat = 15 * time.Second
	// recheck is the interval at which the credential of an open stream is checked
	// again. The stream of a credential that was revoked, or that lost scopes, ends
	// after that time at the latest.
	recheck = time.Second
	// Retry is the time that a browser waits before it connects again, in milliseconds.
	Retry = 3000
)

// Tail is the end of a stream at a surface. It takes text of the media type
// text/event-stream. Its methods are not called concurrently.
type Tail interface {
	// Open begins the answer with 200, or with 204 if nothing follows.
	Open(status int)
	// Write sends text without delay. It fails if the caller has gone.
	Write(b []byte) (int, error)
}

// Sink is the end of a stream of server-sent events at its handler. Its methods are
// safe for concurrent use.
type Sink struct {
	tail Tail
	last string

	mu     sync.Mutex
	opened int // the status that the stream was opened with; 0: it is not open
	buf    bytes.Buffer
}

func (s *Sink) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened > 0
}

// stream calls the handler of a stream, and returns when the stream has ended.
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
		err := p.mayListen(ctx, c)
		if ctx.Err() != nil {
			return nil // the stream has ended meanwhile
		}
		return err
	}, func(err error) {
		shut = err
		cancel()
	})
	defer stop() // nothing may be written after the return, not even after a panic
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

// FrameID is the pattern of the ids of frames: the number of a row, or that of the last
// row with EndMark behind it.
const FrameID = `^[0-9]+(\.end)?$`

// EndFrame is the name of the last frame of a stream, and EndMark follows the number of the
// last row in its id.
const (
	EndFrame = "end"
	EndMark  = ".end"
)

// Since returns the number of the last row that a client has received before it
// connected again, for a stream whose frames are numbered; 0 for a new client. It fails
// with fault.Invalid if the client sent another id.
func (s *Sink) Since() (int64, error) {
	if s.last == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(s.last, EndMark), 10, 64)
	if err != nil || n < 0 {
		return 0, fault.Field("Last-Event-ID", "is not the id of a frame of this stream")
	}
	return n, nil
}

// Open sends the headers. A later error cannot be answered as a problem; it is sent as
// a frame.
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
	_, _ = s.tail.Write([]byte("retry: " + strconv.Itoa(Retry) + "\n\n")) // the first frame fails if the caller has gone
}

// End sends the last frame, behind the row numbered last. The frame has an id of its own:
// a client that was cut off before it connects again with the id of the row, and hears the
// end then. A client that connects again with the id of the end has received all frames: it
// is answered 204, which keeps browsers from connecting over and over. End fails as Since
// and Send do.
func (s *Sink) End(last int64, data any) error {
	since, err := s.Since()
	if err != nil {
		return err
	}
	s.mu.Lock()
	again := strings.HasSuffix(s.last, EndMark) && since >= last && s.opened == 0
	if again {
		s.opened = 204
		s.tail.Open(204)
	}
	s.mu.Unlock()
	if again {
		return nil
	}
	return s.Send(strconv.FormatInt(last, 10)+EndMark, EndFrame, data)
}

// Send writes one frame; data is sent as JSON. An empty id or event leaves that line
// out. Send fails if data cannot be encoded, or if the caller has gone.
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

// Frame makes a frame without an id, to be sent to several streams with Pass.
func Frame(event string, data any) ([]byte, error) {
	b, err := json.Marshal(data, wire)
	return slices.Concat([]byte("event: "+event+"\ndata: "), b, []byte("\n\n")), err
}

// Pass writes frames made by Frame. It fails if the caller has gone.
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

// keepAlive writes comments until stop is called, or until allowed fails: then it calls
// cut with the error. After stop has returned, keepAlive writes nothing. Between the
// checks there is a timer and no goroutine, whose stack each of thousands of idle
// streams would keep.
func (s *Sink) keepAlive(allowed func() error, cut func(error)) (stop func()) {
	var mu sync.Mutex // held during a check
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
		t.Stop() // the check that held mu may have set the timer again
	}
}
