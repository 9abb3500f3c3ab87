package chaos

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
)

// Cable is the connection between a box and its control plane. While it is cut, no
// connection breaks and no byte passes, as when packets are lost; bytes on their way
// arrive once it is restored, however late.
type Cable struct {
	net.Listener

	mu    sync.Mutex
	to    string              // far end; "" before Plug
	open  chan struct{}       // closed while bytes pass
	ends  map[net.Conn]string // of all connections: the far ends
	among func() string       // chooses the far end of a connection; nil: to
	over  chan struct{}       // closed at the end
	lines sync.WaitGroup
}

// NewCable listens on a free loopback port. The cable is cut until Plug.
func NewCable() (*Cable, error) { return NewCableAt("127.0.0.1:0") }

// NewCableAt listens on an address. The cable is cut until Plug or Among.
func NewCableAt(address string) (*Cable, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &Cable{Listener: l, open: make(chan struct{}), ends: map[net.Conn]string{}, over: make(chan struct{})}
	c.lines.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			c.lines.Go(func() { c.carry(near) })
		}
	})
	return c, nil
}

// Close ends every connection and waits until no byte is carried any more.
func (c *Cable) Close() error {
	close(c.over)
	err := c.Listener.Close()
	c.lines.Wait()
	return err
}

// Plug sets the far end, host:port, and restores the cable.
func (c *Cable) Plug(address string) {
	c.mu.Lock()
	c.to = address
	c.mu.Unlock()
	c.Restore()
}

// Among has each new connection lead to what choose answers, and restores the cable.
func (c *Cable) Among(choose func() string) {
	c.mu.Lock()
	c.among = choose
	c.mu.Unlock()
	c.Restore()
}

// Cut stops all bytes until Restore.
func (c *Cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if closed(c.open) {
		c.open = make(chan struct{})
	}
}

// Restore lets bytes pass again.
func (c *Cable) Restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !closed(c.open) {
		close(c.open)
	}
}

// Break resets every current connection; new ones are carried.
func (c *Cable) Break() { c.BreakTo("") }

// BreakTo resets the current connections to a far end; to all of them if it is empty.
func (c *Cable) BreakTo(to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for end, of := range c.ends {
		if to != "" && to != of {
			continue
		}
		if tcp, ok := end.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // the connection is closed in any case
		}
		end.Close()
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// wait returns the far end once bytes pass; false after Close.
func (c *Cable) wait() (string, bool) {
	c.mu.Lock()
	open := c.open
	c.mu.Unlock()
	select {
	case <-open:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.to, true
	case <-c.over:
		return "", false
	}
}

// hold keeps a connection's end until drop is called.
func (c *Cable) hold(end net.Conn, to string) (drop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[end] = to
	return func() {
		end.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ends, end)
	}
}

func (c *Cable) carry(near net.Conn) {
	defer c.hold(near, "")()
	to, ok := c.wait()
	if !ok {
		return
	}
	if c.among != nil { // set before the first connection
		to = c.among()
	}
	kind := "tcp"
	if strings.HasPrefix(to, "/") {
		kind = "unix"
	}
	far, err := net.Dial(kind, to)
	if err != nil {
		return
	}
	c.hold(near, to) // the same end, with what is known now
	defer c.hold(far, to)()
	ended := make(chan struct{})
	defer func() { <-ended }()
	go func() {
		defer close(ended)
		c.copy(far, near)
	}()
	go func() {
		select {
		case <-c.over:
			near.Close()
			far.Close()
		case <-ended:
		}
	}()
	c.copy(near, far)
}

// copy passes bytes on, and then the end of the stream.
func (c *Cable) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if _, ok := c.wait(); !ok {
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			if !errors.Is(err, io.EOF) {
				from.Close()
			}
			if end, ok := to.(interface{ CloseWrite() error }); ok {
				_ = end.CloseWrite() // the other side may be gone
			}
			return
		}
	}
}
