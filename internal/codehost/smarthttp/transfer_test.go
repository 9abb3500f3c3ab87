package smarthttp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// one is a listener for one connection.
type one chan net.Conn

func (l one) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l one) Close() error   { return nil }
func (l one) Addr() net.Addr { return &net.UnixAddr{} }

// TestTransfersThatMoveHaveTime holds that a transfer ends when its time is used up,
// unless enough bytes extend it.
func TestTransfersThatMoveHaveTime(t *testing.T) {
	const least = 10 * time.Second
	for name, c := range map[string]struct {
		piece  int // bytes, every second
		pieces int
		cut    bool
	}{
		"slow and steady":  {slowest + 1, 60, false},
		"a little slower":  {slowest - slowest/8, 1000, true},
		"a drip":           {1, 1000, true},
		"all at the start": {1, 9, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				type end struct {
					n   int64
					cut bool
				}
				ended := make(chan end, 1)
				srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					x := Transferring(w, least, time.Second/4)
					defer x.Stop()
					n, _ := io.Copy(io.Discard, x.Body(r.Body)) // fails when the transfer ends
					ended <- end{n, x.over.Err() != nil}
				})}
				listener := make(one, 1)
				go srv.Serve(listener)
				near, far := net.Pipe()
				listener <- far
				var client sync.WaitGroup
				client.Go(func() {
					fmt.Fprintf(near, "POST / HTTP/1.1\r\nHost: yard\r\nContent-Length: %d\r\n\r\n", c.piece*c.pieces)
					for range c.pieces {
						if _, err := near.Write(make([]byte, c.piece)); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				})
				client.Go(func() { _, _ = http.ReadResponse(bufio.NewReader(near), nil) })
				if got := <-ended; got.cut != c.cut || got.cut == (got.n == int64(c.piece*c.pieces)) {
					t.Errorf("cut: %v, after %d bytes of %d", got.cut, got.n, c.piece*c.pieces)
				}
				near.Close()
				close(listener)
				srv.Close()
				client.Wait()
				time.Sleep(time.Minute) // for the server, which lingers over what it cut
			})
		})
	}
}
