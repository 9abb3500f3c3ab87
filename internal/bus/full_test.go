package bus_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"yardmaster/internal/proof/patience"
)

// Whoever opens connection after connection is refused beyond the most that there may be, and cut off
// soon if nothing is said; the control plane goes on, and a box gets in behind them.
func TestBusIsFull(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	const most = 16
	cfg.Connections = most
	b := start(t, cfg)
	x := enrol(t, b, "bx")
	var refused, late atomic.Int32
	var strangers sync.WaitGroup
	for range 3 * most {
		c, err := net.Dial("tcp", strings.TrimPrefix(b.URL(), "nats://"))
		if err != nil {
			t.Fatal(err)
		}
		strangers.Go(func() {
			defer c.Close()
			said, _ := io.ReadAll(c) // the server ends it, one way or the other
			switch {
			case strings.Contains(string(said), "maximum connections exceeded"):
				refused.Add(1)
			case strings.Contains(string(said), "Authentication Timeout"):
				late.Add(1)
			}
		})
	}
	if err := b.Ping(patience.Context(t)); err != nil {
		t.Error(err)
	}
	strangers.Wait()
	if refused.Load() < 2*most || late.Load() > most || refused.Load()+late.Load() != 3*most {
		t.Errorf("%d are refused, %d have said nothing for too long", refused.Load(), late.Load())
	}
	c := x.dial(t, b.URL())
	x.await(t, "connected", connected)
	echo(t, b)
	works(t, c, "bx")
}
