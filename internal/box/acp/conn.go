// Package acp implements the Agent Client Protocol, version 1: JSON-RPC 2.0, one
// message a line, over the standard streams of a coding agent. Client drives an
// agent; Serve is the agent's side, as far as our own agent needs it.
//
// Two properties matter more than convenience here. First, session updates reach
// the handler as raw JSON, including those that this package does not know, and
// through no queue of limited size. Second, order holds: if an update precedes a
// response in the stream, it is handled before the call that the response answers
// returns.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrClosed is returned by calls that the peer cannot answer any more, because its
// stream ended or broke. The error also wraps the cause, if there is one.
var ErrClosed = errors.New("acp: connection closed")

// The error codes of JSON-RPC and of ACP.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeAuthRequired   = -32000
	CodeNotFound       = -32002
)

// Error is a JSON-RPC error object, which a peer answers instead of a result.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string {
	if len(e.Data) == 0 {
		return fmt.Sprintf("%s (%d)", e.Message, e.Code)
	}
	return fmt.Sprintf("%s (%d): %s", e.Message, e.Code, e.Data)
}

// Errorf returns an Error without data.
func Errorf(code int, format string, a ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, a...)}
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// dispatcher handles the requests and notifications of the peer. Both methods run
// on the reading goroutine, in stream order, and must not block. The function that
// request returns runs on a goroutine of its own and makes the answer.
type dispatcher interface {
	notify(method string, params json.RawMessage)
	request(method string, params json.RawMessage) func() (any, error)
}

// conn is one JSON-RPC connection, symmetric: both sides call and answer.
type conn struct {
	d dispatcher

	wmu sync.Mutex
	w   io.Writer

	mu      sync.Mutex
	next    int64
	pending map[string]chan message
	err     error // set before done is closed

	done     chan struct{}
	answers  sync.WaitGroup
	inFlight chan struct{} // an element for each answer under way
}

// These limit the memory for a peer that sends requests and does not read the
// answers: when a limit is reached, nothing more is read from it.
const (
	maxInFlight = 64      // answers under way
	longRequest = 1 << 20 // bytes of a request from which on it is answered before more is read
)

func newConn(w io.Writer, d dispatcher) *conn {
	return &conn{
		d: d, w: w, pending: map[string]chan message{}, done: make(chan struct{}), inFlight: make(chan struct{}, maxInFlight),
	}
}

// read handles the peer's messages until its stream ends, and returns the cause:
// nil for a clean end.
func (c *conn) read(r io.Reader) error {
	frames := newFrameReader(r, MaxFrame)
	for {
		line, err := frames.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			c.close(err)
			return err
		}
		c.handle(line)
	}
}

func (c *conn) close(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = ErrClosed
	if cause != nil {
		c.err = fmt.Errorf("%w: %w", ErrClosed, cause)
	}
	close(c.done)
}

// handle dispatches one line. It drops a line that is not a message, because agents
// print banners and warnings to their standard output.
func (c *conn) handle(line []byte) {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return
	}
	switch {
	case m.Method != "" && m.ID != nil:
		answer := c.d.request(m.Method, m.Params)
		if len(line) > longRequest {
			c.answer(m.ID, answer)
			return
		}
		c.inFlight <- struct{}{}
		c.answers.Go(func() {
			defer func() { <-c.inFlight }()
			c.answer(m.ID, answer)
		})
	case m.Method != "":
		c.d.notify(m.Method, m.Params)
	case m.ID != nil:
		c.mu.Lock()
		ch := c.pending[string(m.ID)]
		delete(c.pending, string(m.ID))
		c.mu.Unlock()
		if ch != nil {
			ch <- m
		}
	}
}

func (c *conn) answer(id json.RawMessage, make func() (any, error)) {
	out := message{ID: id}
	result, err := make()
	if err == nil {
		out.Result, err = json.Marshal(result)
	}
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = Errorf(CodeInternal, "%s", err)
		}
		out.Result, out.Error = nil, e
	}
	_ = c.send(out) // the reader notices that the peer has gone
}

func (c *conn) send(m message) error {
	m.JSONRPC = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("acp: encode %s: %w", m.Method, err)
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if _, err := c.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return nil
}

func (c *conn) notify(method string, params any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("acp: encode %s: %w", method, err)
	}
	return c.send(message{Method: method, Params: p})
}

// call sends a request, waits for the answer and decodes it into result, unless
// result is nil. An error answer is an *Error. The end of ctx only ends the wait;
// the peer is not told.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("acp: encode %s: %w", method, err)
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	if c.err != nil { // nothing may read what would be written
		defer c.mu.Unlock()
		return fmt.Errorf("%s: %w", method, c.err)
	}
	c.next++
	id := fmt.Sprint(c.next)
	c.pending[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()

	if err := c.send(message{ID: json.RawMessage(id), Method: method, Params: p}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var m message
	select {
	case m = <-answer:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	case <-c.done:
		select {
		case m = <-answer: // the answer came just before the end
		default:
			return fmt.Errorf("%s: %w", method, c.err)
		}
	}
	if m.Error != nil {
		return fmt.Errorf("%s: %w", method, m.Error)
	}
	if result == nil || len(m.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("acp: decode the answer to %s: %w", method, err)
	}
	return nil
}
