//go:build !race

package dashboard_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// cable is an address whose connections lead to a server, as long as it is plugged in.
type cable struct {
	t    *testing.T
	door net.Listener
	mu   sync.Mutex
	to   string // host and port; empty while it is unplugged
	open map[net.Conn]bool
}

// newCable opens an address that leads nowhere yet.
func newCable(t *testing.T) *cable {
	t.Helper()
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{t: t, door: door, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		door.Close()
		c.plug("")
	})
	go func() {
		for {
			in, err := door.Accept()
			if err != nil {
				return
			}
			go c.carry(in)
		}
	}()
	return c
}

// port is the port of the address.
func (c *cable) port() string {
	_, port, err := net.SplitHostPort(c.door.Addr().String())
	if err != nil {
		c.t.Fatal(err)
	}
	return port
}

// plug leads new connections to a server, and ends those that are open; "" leads them
// nowhere.
func (c *cable) plug(to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = to
	for conn := range c.open {
		conn.Close()
	}
}

// carry carries a connection until either end closes it.
func (c *cable) carry(in net.Conn) {
	defer in.Close()
	c.mu.Lock()
	to := c.to
	c.mu.Unlock()
	if to == "" {
		return
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	c.mu.Lock()
	led := c.to == to // it may lead elsewhere meanwhile, and this one was not ended with the others
	if led {
		c.open[in], c.open[out] = true, true
	}
	c.mu.Unlock()
	if !led {
		return
	}
	defer func() {
		c.mu.Lock()
		delete(c.open, in)
		delete(c.open, out)
		c.mu.Unlock()
	}()
	go func() {
		_, _ = io.Copy(out, in) // ended by either side
		out.Close()
	}()
	_, _ = io.Copy(in, out)
}
