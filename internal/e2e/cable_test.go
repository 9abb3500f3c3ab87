package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
)

// cable is the line between a box and its control plane. While it is cut, no
// connection breaks and no byte gets through, as when packets are lost; what
// was under way arrives once it is mended, as late as that may be.
type cable struct {
	net.Listener

	mu   sync.Mutex
	to   string        // far end; "" while nothing is plugged in
	open chan struct{} // closed while bytes pass
	over chan struct{} // closed at the end of the test
}

func newCable(t *testing.T) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: l, open: make(chan struct{}), over: make(chan struct{})}
	var lines sync.WaitGroup
	lines.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			lines.Go(func() { c.carry(near) })
		}
	})
	t.Cleanup(func() {
		close(c.over)
		l.Close()
		lines.Wait()
	})
	return c
}

// plug connects the far end.
func (c *cable) plug(address string) {
	c.mu.Lock()
	c.to = address
	c.mu.Unlock()
	c.mend()
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = make(chan struct{})
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.open)
}

// wait returns the far end once bytes pass; false at the end of the test.
func (c *cable) wait() (string, bool) {
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

func (c *cable) carry(near net.Conn) {
	defer near.Close()
	to, ok := c.wait()
	if !ok {
		return
	}
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
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

// copy passes bytes on, and the end of the stream after them.
func (c *cable) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if _, ok := c.wait(); !ok {
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			if err != io.EOF {
				from.Close()
			}
			to.(*net.TCPConn).CloseWrite()
			return
		}
	}
}
