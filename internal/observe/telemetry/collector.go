package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// headersKey is the variable of the environment that has the headers which a collector
	// demands, as name=value,name=value with escapes (OpenTelemetry specification, OTLP exporter).
	headersKey = "OTEL_EXPORTER_OTLP_HEADERS"

	mostPosts   = 4
	firstPause  = time.Second
	longest     = 30 * time.Second // of a pause that a collector asks for
	postTimeout = 10 * time.Second
)

// collector sends spans over OTLP/HTTP. The client of OpenTelemetry would bring gRPC and its
// gateway into the program, which it does not use.
type collector struct {
	address string
	header  http.Header
	client  *http.Client
}

// newCollector makes the client of a collector that takes spans at an address. headers is the
// value of headersKey.
func newCollector(address, headers string) (*collector, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("it is no address of http or https")
	}
	c := &collector{address: address, header: http.Header{}, client: &http.Client{
		Timeout:       postTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for pair := range strings.SplitSeq(headers, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if value, err = url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
			c.header.Set(strings.TrimSpace(name), value)
		}
	}
	c.header.Set("Content-Type", "application/x-protobuf")
	return c, nil
}

// Start does nothing: connections are made when spans are sent.
func (*collector) Start(context.Context) error { return nil }

// Stop closes the connections that wait.
func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, again after answers of a collector that is busy.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// A request has the wire form of TracesData: one field, the same.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	pause := firstPause
	for n := 1; ; n++ {
		wait, err := c.post(ctx, body)
		if err == nil || wait < 0 || n == mostPosts {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(max(pause, min(wait, longest))):
			pause *= 2
		}
	}
}

// post sends a request once. wait is how long the collector wants to be left alone if it can be
// sent again, and -1 if it cannot (OTLP 1.0, "Failures").
func (c *collector) post(ctx context.Context, body []byte) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	req.Header = c.header.Clone()
	res, err := c.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // so that the connection is used again
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return time.Duration(max(seconds, 0)) * time.Second, fmt.Errorf("the collector answers %s", res.Status)
	}
	if res.StatusCode/100 != 2 {
		return -1, fmt.Errorf("the collector answers %s", res.Status)
	}
	return 0, nil
}
