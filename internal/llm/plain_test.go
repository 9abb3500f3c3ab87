package llm

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A connection that is idle for a minute and a half is closed; a used one is kept.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open, dialled atomic.Int64
		p := plain{dial: func(context.Context, string) (net.Conn, error) {
			open.Add(1)
			dialled.Add(1)
			near, far := net.Pipe()
			go func() {
				r := bufio.NewReader(far)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						open.Add(-1)
						return
					}
					if req.URL.Path == "/slow" {
						time.Sleep(time.Second)
					}
					io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			}()
			return near, nil
		}}
		call := func(path string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host"+path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := p.roundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Error(err)
			}
		}
		after := func(d time.Duration, want int64) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if open := open.Load(); open != want {
				t.Fatalf("%d connections are open, want %d", open, want)
			}
		}
		go call("/slow")
		synctest.Wait()
		call("/")
		after(2*time.Second, 2) // both idle
		for range 10 {
			call("/")
			time.Sleep(idleTimeout / 3)
		}
		after(0, 1) // the other one is closed
		if dialled := dialled.Load(); dialled != 2 {
			t.Fatalf("%d connections were made", dialled)
		}
		after(2*idleTimeout, 0)
		call("/")
		p.closeIdle(0)
		after(0, 0)
	})
}
