package modelproxy_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/box/modelproxy"
	"yardmaster/internal/proof/patience"
)

// TestPlainRequestsTravelAsTheyAre sends plain requests through the forward proxy
// byte by byte: headers of a single connection are removed, above all the token,
// and everything else arrives.
func TestPlainRequestsTravelAsTheyAre(t *testing.T) {
	seen := make(chan string, 9)
	page := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- fmt.Sprintf("%s %s %s %v %s", r.Method, r.Host, r.URL, r.Header, body)
		w.Header().Set("Connection", "X-Mine")
		w.Header().Set("X-Mine", "1")
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header()["Content-Type"] = nil
		w.WriteHeader(http.StatusTeapot)
	})
	host := strings.TrimPrefix(page, "http://")
	p, address := start(t, modelproxy.Config{})
	register(t, p, modelproxy.Run{Egress: []string{host}})
	auth := "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("run:"+local)) + "\r\n"
	for name, c := range map[string]struct{ text, want string }{
		"plain": {"GET http://" + host + "/a%2Fb?x;y=%zz HTTP/1.1\r\nHost: other\r\nUser-Agent: u\r\n" + auth,
			"GET " + host + " /a%2Fb?x;y=%zz map[User-Agent:[u]] "},
		"no agent": {"GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\n" + auth, "GET " + host + " / map[] "},
		"named": {"GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\nConnection: X-A, Upgrade\r\nX-A: 1\r\n" +
			"X-Forwarded-For: 1.2.3.4\r\nUpgrade: websocket\r\nKeep-Alive: 5\r\n" +
			"Proxy-Connection: x\r\n" + auth, "GET " + host + " / map[X-Forwarded-For:[1.2.3.4]] "},
		"token named away": {"GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\nConnection: Proxy-Authorization\r\n" + auth,
			"GET " + host + " / map[] "},
		"two lengths": {"POST http://" + host + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n" + auth, ""},
		"both lengths": {"POST http://" + host + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n" +
			"Transfer-Encoding: chunked\r\n" + auth + "\r\n1\r\na\r\n0\r\n",
			"POST " + host + " / map[] a"},
		"another scheme": {"GET ftp://" + host + "/ HTTP/1.1\r\nHost: x\r\n" + auth, ""},
		"no token":       {"GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\n", ""},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(patience.Of(t)))
		fmt.Fprint(conn, strings.Replace(c.text, "\r\nHost", "\r\nConnection: close\r\nHost", 1)+"\r\n")
		back, err := io.ReadAll(conn)
		conn.Close()
		if err != nil {
			t.Fatal(name, err)
		}
		got := ""
		select {
		case got = <-seen:
		default:
		}
		if got != c.want {
			t.Errorf("%s: the host saw %q, want %q", name, got, c.want)
		}
		if c.want == "" {
			continue
		}
		answer := string(back)
		if !strings.HasPrefix(answer, "HTTP/1.1 418 ") || strings.Contains(answer, "X-Mine") || strings.Contains(answer, "Proxy-A") ||
			strings.Contains(answer, "Content-Type") {
			t.Errorf("%s: %q", name, back)
		}
	}
}

// TestPlainAnswersComeAsTheyAreMade holds that the head of an answer and each
// piece arrive before the host goes on, and that the end of the run cuts it.
func TestPlainAnswersComeAsTheyAreMade(t *testing.T) {
	next, gone := make(chan struct{}), make(chan struct{})
	page := server(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		flow := http.NewResponseController(w)
		for flow.Flush(); ; flow.Flush() {
			select {
			case <-next:
				io.WriteString(w, "piece\n")
			case <-r.Context().Done():
				return
			}
		}
	})
	host := strings.TrimPrefix(page, "http://")
	p, address := start(t, modelproxy.Config{})
	register(t, p, modelproxy.Run{Egress: []string{host}})
	resp, err := through(t, address, local).Get(page)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for range 3 {
		next <- struct{}{}
		if line, err := lines.ReadString('\n'); line != "piece\n" {
			t.Fatal(line, err)
		}
	}
	p.Unregister(local)
	if _, err := io.ReadAll(lines); err == nil {
		t.Error("an answer that was cut ended like a whole one")
	}
	patience.Ended(t, "the end of the host", gone)
}
