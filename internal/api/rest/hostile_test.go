package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"yardmaster/internal/api/rest"
)

// TestPathThatIsNotText holds that a path that is not text is not found, and that the
// problem is valid JSON.
func TestPathThatIsNotText(t *testing.T) {
	res, m := call(t, handler(t), "DELETE", "/v1/o/items/%ff", "full", "")
	if res.StatusCode != 404 || m["status"] != 404.0 || m["instance"] != "/v1/o/items/\uFFFD" {
		t.Errorf("%d %v", res.StatusCode, m)
	}
}

// pipes is a listener for connections in memory, whose deadlines follow the clock of
// the synctest bubble.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// TestBodyThatDoesNotCome holds that the server does not wait for a body that does not
// come, with a good credential and with a bad one, while a handler has no limit.
func TestBodyThatDoesNotCome(t *testing.T) {
	for _, token := range []string{"full", "bad"} {
		t.Run(token, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := make(pipes, 1)
				server := &http.Server{Handler: rest.LimitBodyTime(30*time.Second, handler(t))}
				go server.Serve(listener)
				near, far := net.Pipe()
				listener <- far
				began := time.Now()
				fmt.Fprintf(near, "POST /v1/o/items HTTP/1.1\r\nHost: yard\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", token)
				resp, err := http.ReadResponse(bufio.NewReader(near), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); resp.StatusCode/100 != 4 || took > time.Minute {
					t.Errorf("%d after %s", resp.StatusCode, took)
				}
				near.Close()
				close(listener)
				server.Close()
			})
		})
	}
}

// TestSteadyBodiesAreTaken holds that a body may take much longer than the limit if it
// keeps coming, and that the client is not charged for the time of the server.
func TestSteadyBodiesAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const some, steps, piece = 30 * time.Second, 100, 16 << 10
		listener := make(pipes, 1)
		server := &http.Server{Handler: rest.LimitBodyTime(some, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * some)
			n, err := io.Copy(io.Discard, r.Body)
			time.Sleep(2 * some)
			fmt.Fprint(w, n, err, r.Context().Err())
		}))}
		go server.Serve(listener)
		near, far := net.Pipe()
		listener <- far
		go func() {
			fmt.Fprintf(near, "POST / HTTP/1.1\r\nHost: yard\r\nContent-Length: %d\r\n\r\n", steps*piece)
			for range steps {
				time.Sleep(some / 10)
				if _, err := near.Write(make([]byte, piece)); err != nil {
					return
				}
			}
		}()
		resp, err := http.ReadResponse(bufio.NewReader(near), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); string(got) != fmt.Sprint(steps*piece, nil, nil) {
			t.Errorf("%s, %v", got, err)
		}
		near.Close()
		close(listener)
		server.Close()
	})
}

// TestStreamEndsWithItsHandler holds that nothing is written to a stream that has
// ended, not even a comment.
func TestStreamEndsWithItsHandler(t *testing.T) {
	w := httptest.NewRecorder()
	synctest.Test(t, func(t *testing.T) {
		handler(t).ServeHTTP(w, httptest.NewRequest("GET", "/v1/live", nil))
		// The bubble does not end while a goroutine of the stream is left.
	})
	if w.Code != 200 {
		t.Errorf("the stream answers %d", w.Code)
	}
}
