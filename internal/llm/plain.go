package llm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// plain makes HTTP/1.1 calls, and writes and reads each in its caller's goroutine.
// The standard library's transport passes both to goroutines of the connection; on
// loopback those wake-ups cost more than the rest of a call (docs/benchmarks-calls.md,
// Gateway). The standard library does the framing.
type plain struct {
	dial func(ctx context.Context, host string) (net.Conn, error)

	mu    sync.Mutex
	idle  map[string][]*conn // by host and port, the most recently used last
	sweep *time.Timer        // set while a connection is idle
}

// conn is a connection to an upstream, used by one call at a time.
type conn struct {
	net.Conn
	r     *bufio.Reader
	host  string
	left  int64     // bytes of the answer that may still be read
	used  bool      // the connection has carried an answer before
	since time.Time // idle since
}

var (
	errHead = errors.New("the head of the answer is too long")
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}
)

// answerGrace is how long an upstream that broke off a request may take to answer.
const answerGrace = time.Second

func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHead // only the head of an answer is bounded
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// roundTrip makes a call. If the upstream had closed the idle connection,
// roundTrip makes the call again where that is harmless, as net/http does.
func (p *plain) roundTrip(req *http.Request) (*http.Response, error) {
	for {
		c, err := p.get(req)
		if err != nil {
			return nil, err
		}
		resp, err := p.call(c, req)
		if err == nil {
			return resp, nil
		}
		if gone := req.Context().Err(); gone != nil {
			return nil, gone
		}
		if !errors.Is(err, errStale) || !c.used {
			return nil, err
		}
		if req = again(req); req == nil {
			return nil, err
		}
	}
}

// errStale says that the connection ended before the first byte of an answer.
var errStale = errors.New("the upstream closed the connection")

// again is the request to send once more; nil when it may not be sent twice.
func again(req *http.Request) *http.Request {
	if _, ok := req.Header["Idempotency-Key"]; !ok && req.Method != http.MethodGet {
		return nil
	}
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	next := *req
	next.Body = body
	return &next
}

// call sends a request over a connection and reads the head of the answer.
func (p *plain) call(c *conn, req *http.Request) (*http.Response, error) {
	stop := context.AfterFunc(req.Context(), func() { c.Close() })
	sent := make(chan error, 1)
	if req.ContentLength >= 0 && req.ContentLength < writeBuffer {
		sent <- c.send(req)
	} else {
		// An upstream may refuse a long request before reading it whole.
		go func() { sent <- c.send(req) }()
	}
	resp, err := c.answer(req)
	if err != nil {
		stop()
		c.Close()
		if failed := <-sent; failed != nil {
			err = fmt.Errorf("%w, after %w", err, failed)
		}
		return nil, err
	}
	resp.Body = &tail{ReadCloser: resp.Body, end: func(whole bool) {
		select {
		case err := <-sent:
			whole = whole && err == nil
		default:
			whole = false
		}
		// A connection that the context has closed is not reusable.
		if !stop() || !whole || resp.Close || resp.StatusCode < 200 || c.r.Buffered() > 0 {
			c.Close()
			return
		}
		p.put(c)
	}}
	return resp, nil
}

func (c *conn) send(req *http.Request) error {
	w := writers.Get().(*bufio.Writer)
	defer writers.Put(w)
	w.Reset(c.Conn)
	defer w.Reset(nil)
	err := req.Write(w)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		_ = c.SetReadDeadline(time.Now().Add(answerGrace)) // fails on a closed connection, whose reads fail, too
	}
	return err
}

// answer reads the head of the answer, and skips interim answers (1xx).
func (c *conn) answer(req *http.Request) (*http.Response, error) {
	c.left = maxHead
	if _, err := c.r.Peek(1); err != nil {
		return nil, fmt.Errorf("%w: %w", errStale, err)
	}
	for {
		resp, err := http.ReadResponse(c.r, req)
		if err != nil && c.left <= 0 {
			return nil, errHead
		}
		if err != nil {
			return nil, err
		}
		if resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			c.left = math.MaxInt64
			return resp, nil
		}
	}
}

// tail is the body of an answer. At its end it gives the connection back.
type tail struct {
	io.ReadCloser
	end  func(whole bool)
	done atomic.Bool
}

func (t *tail) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil && t.done.CompareAndSwap(false, true) {
		t.end(err == io.EOF)
	}
	return n, err
}

// Close disconnects an upstream that is still sending.
func (t *tail) Close() error {
	if t.done.CompareAndSwap(false, true) {
		t.end(false)
	}
	return nil
}

func (p *plain) get(req *http.Request) (*conn, error) {
	host := req.URL.Host
	if req.URL.Port() == "" {
		host = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	for c := p.take(host); c != nil; c = p.take(host) {
		if c.quiet() {
			return c, nil
		}
		c.Close()
	}
	far, err := p.dial(req.Context(), host)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: far, host: host}
	c.r = bufio.NewReader(c)
	return c, nil
}

// take removes the most recently used idle connection to a host, or answers nil.
func (p *plain) take(host string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.idle[host]
	if len(kept) == 0 {
		return nil
	}
	c := kept[len(kept)-1]
	kept[len(kept)-1] = nil
	p.idle[host] = kept[:len(kept)-1]
	return c
}

// quiet tells whether an idle connection has received nothing. Bytes that an
// upstream sends unasked, such as a notice that it closes the connection, would be
// taken for the answer to the next call.
func (c *conn) quiet() bool {
	far, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := far.SyscallConn()
	if err != nil {
		return false
	}
	nothing := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		nothing = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && nothing
}

func (p *plain) put(c *conn) {
	c.used, c.since = true, time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle[c.host]) >= maxIdle {
		c.Close()
		return
	}
	if p.idle == nil {
		p.idle = map[string][]*conn{}
	}
	p.idle[c.host] = append(p.idle[c.host], c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(idleTimeout, func() { p.closeIdle(idleTimeout) })
	}
}

// closeIdle closes connections that were idle for age, and runs again after
// idleTimeout as long as idle connections remain.
func (p *plain) closeIdle(age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for host, kept := range p.idle {
		old := 0
		for old < len(kept) && time.Since(kept[old].since) >= age {
			kept[old].Close()
			old++
		}
		if p.idle[host] = append([]*conn(nil), kept[old:]...); old == len(kept) {
			delete(p.idle, host)
		}
	}
	if p.sweep == nil {
		return
	}
	p.sweep.Stop()
	p.sweep = nil
	if len(p.idle) > 0 {
		p.sweep = time.AfterFunc(idleTimeout, func() { p.closeIdle(idleTimeout) })
	}
}
