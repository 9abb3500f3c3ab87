package llm_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/llm"
	"yardmaster/internal/proof/patience"
)

// wire is an upstream whose every byte a test writes. The handler receives each
// connection with its number, from 1.
func wire(t *testing.T, serve func(n int64, c net.Conn, r *bufio.Reader)) (url string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	connections = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := connections.Add(1)
			go func() {
				defer c.Close()
				serve(n, c, bufio.NewReader(c))
			}()
		}
	}()
	return "http://" + l.Addr().String(), connections
}

// take reads one whole request.
func take(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

func transport(t *testing.T) *llm.Transport {
	tr := llm.NewTransport(nil)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// post makes a request that may be repeated.
func post(t *testing.T, ctx context.Context, url string, body []byte) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Idempotency-Key"] = nil
	return req
}

func whole(t *testing.T, tr http.RoundTripper, req *http.Request) string {
	t.Helper()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(text))
}

// The form of an answer on the wire decides what the transport reads, and whether
// it reuses the connection.
func TestAnswersOnTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   string // status and body, or the end of an error
		kept   bool
	}{
		"a document":                  {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok", true},
		"chunks":                      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "200 ok", true},
		"nothing":                     {"HTTP/1.1 204 No Content\r\n\r\n", "204 ", true},
		"up to the end":               {"HTTP/1.1 200 OK\r\n\r\nok", "200 ok", false},
		"a close that is announced":   {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "200 ok", false},
		"an older version":            {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok", false},
		"interim answers":             {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok", true},
		"more than was announced":     {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n", "200 ok", false},
		"less than was announced":     {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "unexpected EOF", false},
		"chunks that break off":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "unexpected EOF", false},
		"an unasked change of speech": {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "101 ", false},
		"no HTTP":                     {"SSH-2.0-OpenSSH\r\n\r\n", `malformed HTTP response "SSH-2.0-OpenSSH"`, false},
		"an endless head":             {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20), "head of the answer is too long", false},
		"endless interim answers": {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100_000),
			"head of the answer is too long", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, connections := wire(t, func(_ int64, far net.Conn, r *bufio.Reader) {
				for take(r) {
					io.WriteString(far, c.answer)
					if !c.kept {
						return
					}
				}
			})
			tr := transport(t)
			for i := range 2 {
				got := ""
				resp, err := tr.RoundTrip(post(t, t.Context(), url, []byte("{}")))
				if err == nil {
					var text []byte
					text, err = io.ReadAll(resp.Body)
					got = fmt.Sprint(resp.StatusCode, " ", string(text))
					resp.Body.Close()
				}
				if err != nil {
					got = err.Error()
				}
				if !strings.HasSuffix(got, c.want) {
					t.Fatalf("call %d: %q, want %q", i, got, c.want)
				}
			}
			if n := connections.Load(); c.kept != (n == 1) {
				t.Errorf("%d connections for two calls", n)
			}
		})
	}
}

// If the upstream closed an idle connection, the transport opens a new one and
// repeats the call, unless the call may have had an effect.
func TestStaleConnection(t *testing.T) {
	var calls atomic.Int64
	url, connections := wire(t, func(n int64, c net.Conn, r *bufio.Reader) {
		for i := 0; take(r); i++ {
			calls.Add(1)
			if n == 1 && i == 1 {
				return // accepts the call, and sends no answer
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	tr := transport(t)
	for range 2 {
		if got := whole(t, tr, post(t, t.Context(), url, []byte("{}"))); got != "200 ok" {
			t.Fatal(got)
		}
	}
	if calls.Load() != 3 || connections.Load() != 2 {
		t.Fatalf("%d calls over %d connections", calls.Load(), connections.Load())
	}

	again, _ := wire(t, func(_ int64, c net.Conn, r *bufio.Reader) {
		if take(r) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		take(r)
		calls.Add(1)
	})
	calls.Store(0)
	whole(t, tr, post(t, t.Context(), again, nil))
	once := post(t, t.Context(), again, []byte("{}"))
	once.Header.Del("Idempotency-Key")
	if resp, err := tr.RoundTrip(once); err == nil {
		t.Fatal(resp.Status)
	}
	if calls.Load() != 1 {
		t.Fatalf("made %d times", calls.Load())
	}
}

// The refusal of a long request arrives, although its body was not read.
func TestRefusedBeforeItWasRead(t *testing.T) {
	url, _ := wire(t, func(_ int64, c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		r.WriteTo(io.Discard) // keeps the connection open until the caller closes it
	})
	stuck, _ := wire(t, func(_ int64, c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")
		<-t.Context().Done() // reads no more
	})
	tr := transport(t)
	long := make([]byte, 32<<20)
	if got := whole(t, tr, post(t, t.Context(), url, long)); got != "413 no" {
		t.Error(got)
	}
	if got := whole(t, tr, post(t, t.Context(), stuck, long)); got != "401 no" {
		t.Error(got)
	}
}

// A caller that cancels releases the upstream: before the head, within the body,
// and while the request is being sent.
func TestGivenUp(t *testing.T) {
	cause := errors.New("enough")
	for name, long := range map[string]int{"short": 2, "long": 32 << 20} {
		for _, head := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " with a head ", head), func(t *testing.T) {
				t.Parallel()
				gone := make(chan struct{})
				ready := make(chan struct{})
				url, _ := wire(t, func(_ int64, c net.Conn, r *bufio.Reader) {
					defer close(gone)
					if _, err := http.ReadRequest(r); err != nil {
						return
					}
					if head {
						io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
					}
					close(ready)
					if !head && long > 2 {
						<-t.Context().Done() // blocks the caller in its write
						return
					}
					r.WriteTo(io.Discard)
				})
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				go func() {
					<-ready
					if !head {
						cancel(cause)
					}
				}()
				resp, err := transport(t).RoundTrip(post(t, ctx, url, make([]byte, long)))
				if !head {
					if !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				cancel(cause)
				if text, err := io.ReadAll(resp.Body); err == nil {
					t.Fatalf("%q", text)
				}
				resp.Body.Close()
				patience.Ended(t, "the end of the upstream's connection", gone)
			})
		}
	}
}

// Closing an answer early closes its connection.
func TestClosedEarly(t *testing.T) {
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer srv.Close()
	resp, err := transport(t).RoundTrip(post(t, t.Context(), srv.URL, nil))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-gone
}

// Bytes that an upstream sends unasked are not the answer to the next call: a
// notice that it closes the connection, or an answer that was meant for another
// caller.
func TestUnaskedWordsAreNoAnswer(t *testing.T) {
	for name, word := range map[string]string{
		"a notice":       "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		"another answer": "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
		"a single byte":  "H",
		"an end":         "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			idle, said := make(chan struct{}), make(chan struct{})
			url, connections := wire(t, func(n int64, c net.Conn, r *bufio.Reader) {
				for take(r) {
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					if n > 1 {
						continue
					}
					<-idle
					io.WriteString(c, word)
					if word == "" {
						c.(*net.TCPConn).CloseWrite()
					}
					close(said)
					r.WriteTo(io.Discard)
					return
				}
			})
			tr := transport(t)
			for range 2 {
				once := post(t, t.Context(), url, []byte("{}"))
				once.Header.Del("Idempotency-Key") // a repeated call would hide it
				if got := whole(t, tr, once); got != "200 ok" {
					t.Fatal(got)
				}
				if connections.Load() == 1 {
					close(idle)
					<-said
				}
			}
			if n := connections.Load(); n != 2 {
				t.Errorf("%d connections", n)
			}
		})
	}
}
