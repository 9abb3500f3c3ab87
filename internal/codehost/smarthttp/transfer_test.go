package smarthttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestTransfersThatMoveHaveTime holds that a transfer ends when its time is used up,
// unless enough bytes extend it.
func TestTransfersThatMoveHaveTime(t *testing.T) {
	const least = 200 * time.Millisecond
	for name, c := range map[string]struct {
		piece int // bytes, every 20 ms
		cut   bool
	}{"slow and steady": {4 << 10, false}, "a drip": {1, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan int64, 1)
			over := make(chan bool, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				x := Transferring(w, least, 5*time.Millisecond)
				defer x.Stop()
				n, _ := io.Copy(io.Discard, x.Body(r.Body)) // fails when the transfer ends
				over <- x.over.Err() != nil
				got <- n
			}))
			defer srv.Close()
			in, out := io.Pipe()
			go func() {
				defer out.Close()
				tick := time.NewTicker(20 * time.Millisecond)
				defer tick.Stop()
				piece := make([]byte, c.piece)
				pieces := 50 // a second, five times as long as an idle transfer gets
				if c.cut {
					pieces = 1000 // until it is
				}
				for range pieces {
					if _, err := out.Write(piece); err != nil {
						return
					}
					<-tick.C
				}
			}()
			resp, err := http.Post(srv.URL, "", in)
			if err == nil {
				resp.Body.Close()
			}
			in.Close()
			if cut := <-over; cut != c.cut {
				t.Errorf("cut: %v, after %d bytes", cut, <-got)
			}
		})
	}
}
