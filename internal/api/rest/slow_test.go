package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/policy"
)

// TestReadersArePaced holds that who reads slowly but steadily gets all of an answer,
// however long it takes, and that who stops, or reads too slowly, is cut off. The
// connection has no buffer, so that the server waits for each byte to be read.
func TestReadersArePaced(t *testing.T) {
	const some, size = 30 * time.Second, 1 << 20
	for name, c := range map[string]struct {
		pause func(sips int) time.Duration // before the next sip
		whole bool
	}{
		"steadily":        {func(int) time.Duration { return 900 * time.Millisecond }, true},
		"pauses, in time": {func(sips int) time.Duration { return time.Duration(sips%20/19) * (some - 11*time.Second) }, true},
		"too slowly":      {func(int) time.Duration { return 1500 * time.Millisecond }, false},
		"stops":           {func(sips int) time.Duration { return time.Duration(sips/100) * 2 * some }, false},
		"never begins":    {func(int) time.Duration { return 2 * some }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ops := []op.Op{op.New(op.Row{ID: "item.big", Method: "GET", Path: "/v1/big", Rule: policy.Public(), Group: "Items"},
					func(context.Context, op.None) (item, error) { return item{ID: strings.Repeat("x", size)}, nil })}
				api := rest.Handler(rest.Config{Patience: some, Pipeline: &op.Pipeline{BaseURL: "http://yard",
					Authenticate: func(context.Context, op.Presented) (policy.Actor, error) { return policy.Actor{}, nil }}}, ops)
				ended := make(chan struct{})
				listener := make(pipes, 1)
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					api.ServeHTTP(w, r)
				})}
				go server.Serve(listener)
				near, far := net.Pipe()
				listener <- far
				began := time.Now()
				fmt.Fprint(near, "GET /v1/big HTTP/1.1\r\nHost: yard\r\nConnection: close\r\n\r\n")
				paced := bufio.NewReaderSize(&slowReader{Conn: near, pause: c.pause}, sip)
				resp, err := http.ReadResponse(paced, nil)
				var got []byte
				if err == nil {
					got, err = io.ReadAll(resp.Body)
				}
				if whole := err == nil && len(got) > size && strings.HasPrefix(string(got), `{"id":"xxx`); whole != c.whole {
					t.Errorf("after %s: %d bytes of some %d, %v", time.Since(began), len(got), size, err)
				}
				if c.whole && time.Since(began) < 4*some {
					t.Errorf("it took only %s, which says nothing", time.Since(began))
				}
				<-ended
				near.Close()
				close(listener)
				server.Close()
			})
		})
	}
}

// sip is what a slowReader reads at once, in bytes: one each second is the slowest rate.
const sip = 4 << 10

// slowReader pauses before each sip.
type slowReader struct {
	net.Conn
	sips  int
	pause func(sips int) time.Duration
}

func (s *slowReader) Read(p []byte) (int, error) {
	time.Sleep(s.pause(s.sips))
	s.sips++
	return s.Conn.Read(p[:min(len(p), sip)])
}
