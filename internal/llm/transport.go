package llm

import (
	"context"
	"net"
	"net/http"
	"syscall"
	"time"
)

const (
	maxIdle     = 128 // connections kept open for one host
	idleTimeout = 90 * time.Second
	writeBuffer = 64 << 10 // most prompts go out in one write
	maxHead     = 1 << 20  // bytes of an answer's head
)

// Transport makes calls to providers. It limits the time to connect, not the time
// of an answer, uses no proxy from the environment, and passes the bytes of an
// answer on without decompression, for the meter to read.
type Transport struct {
	secure *http.Transport // https: HTTP/2 where the provider supports it
	plain  plain           // http: local models, and the control plane on its own machine
}

// NewTransport makes a transport. Before each dial it calls control, unless nil,
// with the resolved address; an error from control refuses the address.
func NewTransport(control func(network, address string, c syscall.RawConn) error) *Transport {
	dial := &net.Dialer{Timeout: 10 * time.Second, Control: control}
	return &Transport{
		secure: &http.Transport{
			DialContext:            dial.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           4 * maxIdle,
			MaxIdleConnsPerHost:    maxIdle,
			IdleConnTimeout:        idleTimeout,
			DisableCompression:     true,
			WriteBufferSize:        writeBuffer,
			MaxResponseHeaderBytes: maxHead,
		},
		plain: plain{dial: func(ctx context.Context, host string) (net.Conn, error) { return dial.DialContext(ctx, "tcp", host) }},
	}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" {
		return t.plain.roundTrip(req)
	}
	return t.secure.RoundTrip(req)
}

// CloseIdleConnections closes the connections that no call uses.
func (t *Transport) CloseIdleConnections() {
	t.secure.CloseIdleConnections()
	t.plain.closeIdle(0)
}
