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

// A path that is not text is nothing that is here, and the problem says so in
// valid JSON.
func TestPathThatIsNotText(t *testing.T) {
	res, m := call(t, handler(t), "DELETE", "/v1/o/items/%ff", "full", "")
	if res.StatusCode != 404 || m["status"] != 404.0 || m["instance"] != "/v1/o/items/\uFFFD" {
		t.Errorf("%d %v", res.StatusCode, m)
	}
}

// pipes listens for connections that exist in memory only, so that their time
// is the bubble's.
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

// A body that does not come is not waited for, whoever sends it; a handler may
// take as long as it wants.
func TestBodyThatDoesNotCome(t *testing.T) {
	for _, token := range []string{"full", "bad"} {
		t.Run(token, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := make(pipes, 1)
				server := &http.Server{Handler: rest.Hurry(30*time.Second, handler(t))}
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

// A body may take much longer than the time for one if it keeps coming, and
// the time that the server takes is not the client's.
func TestSteadyBodiesAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const some, steps, piece = 30 * time.Second, 100, 16 << 10
		listener := make(pipes, 1)
		server := &http.Server{Handler: rest.Hurry(some, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// A stream that has ended writes nothing more, not even that it is alive.
func TestStreamEndsWithItsHandler(t *testing.T) {
	w := httptest.NewRecorder()
	synctest.Test(t, func(t *testing.T) {
		handler(t).ServeHTTP(w, httptest.NewRequest("GET", "/v1/live", nil))
		// Leaving the bubble fails if the goroutine that keeps it alive is there.
	})
	if w.Code != 200 {
		t.Errorf("the stream answers %d", w.Code)
	}
}
