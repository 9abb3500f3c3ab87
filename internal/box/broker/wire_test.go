package broker_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/proof/patience"
)

// wire sends bytes to the broker and returns everything that it answers until the
// connection ends.
func wire(t *testing.T, f fixture, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", f.port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	limit(t, c)
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err, string(back))
	}
	return string(back)
}

// limit ends a connection with the patience of the test.
func limit(t *testing.T, c net.Conn) { c.SetDeadline(time.Now().Add(patience.Of(t))) }

// TestNothingButTheAnswerComesBack reads the raw bytes, because clients do not show
// interim answers, and few show trailers.
func TestNothingButTheAnswerComesBack(t *testing.T) {
	const end = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"
	far, host := raw(t, map[string]func(string) string{
		"early": func(s string) string {
			return "HTTP/1.1 103 Early Hints\r\nLink: </" + s + ">; rel=preload\r\n\r\n" + end
		},
		"processing": func(s string) string {
			return strings.Repeat("HTTP/1.1 102 Processing\r\nX-A: "+s+"\r\n\r\n", 3) + end
		},
		"trailer": func(s string) string {
			return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\nConnection: close\r\n\r\n" +
				"4\r\nbody\r\n0\r\nX-End: " + s + "\r\nX-Unsaid: " + s + "\r\n\r\n"
		},
		"upgrade": func(s string) string {
			return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + s
		},
		"named": func(s string) string {
			return "HTTP/1.1 200 OK\r\nConnection: X-Mine\r\nX-Mine: 1\r\n" +
				"Keep-Alive: timeout=5\r\nProxy-Authenticate: Basic realm=\"" + s + "\"\r\nContent-Length: 4\r\n\r\nbody"
		},
		"long": func(s string) string {
			return "HTTP/1.1 200 OK\r\nConnection: close\r\nX-Long: " + strings.Repeat("a", 257<<10) + "\r\nContent-Length: 4\r\n\r\nbody"
		},
		"cut": func(s string) string {
			return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 400\r\n\r\nbody" + s[:9]
		},
	})
	f := start(t, far, []string{"127.0.0.1"}, lend(host))
	for path, want := range map[string]string{"early": "body", "processing": "body", "trailer": "body", "named": "body",
		"upgrade": "changes the protocol", "long": "cannot be reached", "cut": ""} {
		back := wire(t, f, "GET /"+token+"/"+host+"/"+path+" HTTP/1.1\r\n"+
			"Host: x\r\nConnection: Upgrade, close, TE\r\nUpgrade: websocket\r\nTE: trailers\r\n\r\n")
		if leaks(back) || !strings.Contains(back, want) || strings.Count(back, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: %q", path, back)
		}
		for _, not := range []string{"103 Early", "102 Proc", "X-End", "X-Unsaid", "Trailer",
			"101 Switching", "X-Mine", "Keep-Alive", "Proxy-Authenticate"} {
			if strings.Contains(back, not) {
				t.Errorf("%s: %s in %q", path, not, back)
			}
		}
		if strings.HasPrefix(back, "HTTP/1.1 200") && strings.Contains(back, "Content-Type") {
			t.Errorf("%s: a type was guessed: %q", path, back)
		}
		if path == "cut" && strings.HasSuffix(back, "0\r\n\r\n") {
			t.Errorf("an answer that was cut ends like a whole one: %q", back)
		}
	}
}

// TestTheHostSeesOneRequestOfTheRun sends bytes that could be read as two requests,
// or as one without its credential.
func TestTheHostSeesOneRequestOfTheRun(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		own := r.Header.Get("Authorization") == "Bearer "+canary
		r.Header.Del("Authorization")
		seen = append(seen, fmt.Sprintf("%s %s %t %v %v", r.Method, r.URL, own, r.Header, r.Trailer))
	}))
	t.Cleanup(far.Close)
	host := strings.TrimPrefix(far.URL, "https://")
	f := start(t, far, []string{"127.0.0.1"}, lend(host))
	head := " /" + token + "/" + host + "/a HTTP/1.1\r\nHost: x\r\nUser-Agent: u\r\nConnection: close\r\n"
	const plain = "map[Accept-Encoding:[identity] User-Agent:[u]] map[]"
	for name, c := range map[string]struct{ text, want string }{
		"two lengths": {"POST" + head + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", ""},
		"length, chunks": {"POST" + head + "Content-Length: 44\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
			"GET /" + token + "/" + host + "/b HTTP/1.1\r\nHost: x\r\n\r\n", "POST /a true " + plain},
		"other transfer": {"POST" + head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", ""},
		"line in a value": {"GET" + head + "X-A: 1\nX-B: 2\r\n\r\n",
			"GET /a true map[Accept-Encoding:[identity] User-Agent:[u] X-A:[1] X-B:[2]] map[]"},
		"space in a name": {"GET" + head + "Authorization : mine\r\n\r\n", ""},
		"named away": {"GET" + head + "Connection: Authorization, Accept-Encoding\r\nAuthorization: mine\r\n\r\n",
			"GET /a true " + plain},
		"several of it": {"GET" + head + "Authorization: mine\r\nAuthorization: mine too\r\nauthorization: three\r\n\r\n",
			"GET /a true " + plain},
		"upgrade": {"GET" + head + "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
			"GET /a true map[Accept-Encoding:[identity] Http2-Settings:[AAMAAABkAARAAAAAAAIAAAAA] User-Agent:[u]] map[]"},
		"trailers": {"POST" + head +
			"TE: trailers\r\nTrailer: Authorization\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nAuthorization: mine\r\n\r\n",
			"POST /a true " + plain},
		"hop by hop": {"GET" + head + "Keep-Alive: 5\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: x\r\nExpect: 100-continue\r\n\r\n",
			"GET /a true " + plain},
		"forwarded": {"GET" + head + "X-Forwarded-For: 1.2.3.4\r\n\r\n",
			"GET /a true map[Accept-Encoding:[identity] User-Agent:[u] X-Forwarded-For:[1.2.3.4]] map[]"},
		"whole address": {"GET https://" + host + "/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", ""},
		"connect":       {"CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n", ""},
		"odd query":     {strings.Replace("GET"+head, "/a ", "/a?b;c=%zz&&d ", 1) + "\r\n", "GET /a?b;c=%zz&&d true " + plain},
		"long header":   {"GET" + head + "X-A: " + strings.Repeat("a", 2<<20) + "\r\n\r\n", ""},
	} {
		mu.Lock()
		seen = nil
		mu.Unlock()
		func() {
			c2, err := net.Dial("tcp", f.port)
			if err != nil {
				t.Fatal(err)
			}
			defer c2.Close()
			limit(t, c2)
			io.WriteString(c2, c.text) // the broker may have hung up
			io.Copy(io.Discard, c2)
		}()
		mu.Lock()
		if got := strings.Join(seen, "\n"); got != c.want {
			t.Errorf("%s: the host saw %q, want %q", name, got, c.want)
		}
		mu.Unlock()
	}
}

// TestAnswersComeAsTheyAreMade holds that the head and each piece of an answer
// arrive before the host goes on, also while the request is still being sent,
// and that the host is let go when the agent or the run is.
func TestAnswersComeAsTheyAreMade(t *testing.T) {
	next, gone := make(chan struct{}), make(chan struct{}, 9)
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flow := http.NewResponseController(w)
		flow.EnableFullDuplex()
		defer func() { gone <- struct{}{} }()
		cut := make(chan struct{})
		go func() {
			if _, err := io.Copy(io.Discard, r.Body); err != nil { // the server reads no connection whose request it still has to read
				close(cut)
			}
		}()
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodGet {
			io.WriteString(w, "event: x\n") // the first lines are searched for an endpoint
		}
		flow.Flush()
		for i := 0; ; i++ {
			select {
			case <-next:
			case <-r.Context().Done():
				return
			case <-cut:
				return
			}
			fmt.Fprintf(w, "data: %d\n\n", i)
			flow.Flush()
		}
	}))
	t.Cleanup(far.Close)
	host := strings.TrimPrefix(far.URL, "https://")
	f := start(t, far, []string{"127.0.0.1"}, lend(host))
	type request struct {
		method, end string
		length      int64 // of the body; 0: unknown
	}
	ends := slices.Repeat([]request{{"POST", "run", 0}, {"POST", "run", 10}}, 50) // what ends first is a matter of chance
	ends = append(ends, []request{{"POST", "host", 0}, {"POST", "host", 10}, {"GET", "agent", 0}, {"POST", "agent", 0}}...)
	for _, c := range ends {
		body, sending := io.Pipe()
		req, err := http.NewRequest(c.method, f.address+"/"+host+"/", body)
		if err != nil {
			t.Fatal(err)
		}
		if req.ContentLength = c.length; c.method == http.MethodGet {
			req.Body = nil
		}
		resp, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			next <- struct{}{}
			for want := fmt.Sprintf("data: %d\n", i); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(c, err)
				}
				if line == want {
					break
				}
			}
		}
		switch c.end {
		case "run":
			f.Unregister(token)
		case "host":
			far.CloseClientConnections()
		}
		if c.end != "agent" { // which has sent no end of its request yet
			if _, err := io.ReadAll(lines); err == nil {
				t.Error("an answer that was cut ended like a whole one:", c)
			}
		}
		if c.end == "run" {
			f.register(t, lend(host))
		}
		resp.Body.Close()
		sending.Close()
		patience.Receive(t, fmt.Sprintf("%v: the end of the host", c), gone)
	}
}
