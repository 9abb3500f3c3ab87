package llm

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"reflect"
	"testing"
)

// FuzzPlain compares the transport with the standard library's: both read the same
// from any bytes of an upstream.
func FuzzPlain(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
		"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n2;x=y\r\nok\r\n0\r\nT: v\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"HTTP/1.0 200 OK\r\n\r\nok",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\n\r\n",
		"HTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 204 No\r\nContent-Length: 4\r\n\r\nbody",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nraw",
		"HTTP/2.0 200 OK\r\n\r\n", "junk", "", "\r\n\r\n",
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				if _, err := http.ReadRequest(bufio.NewReader(far)); err != nil {
					return
				}
				far.Write(answer)
			}()
			return near, nil
		}
		ours := plain{dial: func(ctx context.Context, host string) (net.Conn, error) { return dial(ctx, "tcp", host) }}
		defer ours.closeIdle(0)
		theirs := &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: true}
		type made struct {
			failed, cut bool
			status      int
			length      int64
			header      http.Header
			body        string
		}
		call := func(send func(*http.Request) (*http.Response, error)) (m made) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := send(req)
			if err != nil {
				return made{failed: true}
			}
			defer resp.Body.Close()
			if resp.StatusCode == http.StatusSwitchingProtocols {
				return made{status: resp.StatusCode} // the standard library would continue with this status
			}
			text, err := io.ReadAll(resp.Body)
			return made{cut: err != nil, status: resp.StatusCode, length: resp.ContentLength, header: resp.Header, body: string(text)}
		}
		if a, b := call(ours.roundTrip), call(theirs.RoundTrip); !reflect.DeepEqual(a, b) {
			t.Errorf("%q:\nours   %+v\ntheirs %+v", answer, a, b)
		}
	})
}
