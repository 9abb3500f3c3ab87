package held

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"yardmaster/internal/proof/patience"
)

// A connection that is refused hears so over TLS, and one that says nothing of TLS is closed.
func TestRefusedOverTLS(t *testing.T) {
	t.Parallel()
	known := httptest.NewTLSServer(nil)
	defer known.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure := &tls.Config{Certificates: known.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	conns := NewConns(Limits{0, 0}, nil, []byte(refusal), secure)
	served := conns.Listener(l)
	ended := make(chan error, 1)
	go func() {
		_, err := served.Accept()
		ended <- err
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		late, _ := patience.Context(t).Deadline()
		if err := c.SetDeadline(late); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	trusts := known.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trusts.ServerName, trusts.NextProtos = "example.com", []string{"h2", "http/1.1"}
	resp, err := http.ReadResponse(bufio.NewReader(tls.Client(dial(), trusts)), nil)
	if err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "5" {
		t.Errorf("it hears %+v, %v", resp, err)
	}
	for _, says := range []string{"", "GET / HTTP/1.1\r\n\r\n"} {
		c := dial()
		if _, err := io.WriteString(c, says); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("who says %q is kept: %v", says, err)
		}
	}
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a connection was let in: %v", err)
	}
}
