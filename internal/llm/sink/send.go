package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"yardmaster/internal/dial"
	"yardmaster/internal/id"
)

// Sender sends to Targets. Safe for concurrent use.
type Sender struct {
	version   string
	transport *http.Transport
	http      *http.Client
}

// NewSender makes a Sender that connects to addresses for which g allows it, and follows no
// redirect: the address was judged, and the one that it leads to was not.
func NewSender(g *dial.Guard, version string) Sender {
	t := &http.Transport{
		DialContext: g.Dialer(Patience).DialContext, TLSHandshakeTimeout: Patience, ForceAttemptHTTP2: true,
		MaxIdleConns: 64, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, DisableCompression: true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return Sender{version: version, transport: t, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Patience is how long one try may take.
const Patience = 10 * time.Second

// Words for people. None tells anything of the network of the server.
const (
	whyForm    = "A call could not be written down."
	whyAddress = "The address cannot be used."
	whyNobody  = "No connection was made, or it broke."
	whySlow    = "There was no answer within 10 seconds."
	whyAway    = "The answer is a redirect, which is not followed."
)

// Outcome is what came of a try.
type Outcome struct {
	Why      string // why the calls were not taken, for people; empty: they were
	Again    bool   // another try may be better
	Rejected int    // calls that were not taken, though the others were
}

// Send sends calls once. It answers within Patience.
func (s Sender) Send(ctx context.Context, to Target, calls []Call) Outcome {
	var body []byte
	var err error
	if to.Kind == OTLP {
		body, err = spans(calls, s.version)
	} else {
		body, err = lines(calls)
	}
	if err != nil {
		return Outcome{Why: whyForm}
	}
	if to.Kind == S3 {
		c := &calls[0]
		return s.object(ctx, to, c.AccountID+"/"+c.At.Format("2006-01-02/150405")+"-"+id.New()+".ndjson", body)
	}
	return s.post(ctx, to, body)
}

// Probe sends what says that calls will follow: a line or an object with the type probe, or no
// spans.
func (s Sender) Probe(ctx context.Context, to Target, now time.Time) Outcome {
	body, err := json.Marshal(object{"type": "probe", "at": now.UTC()})
	switch {
	case err != nil:
		return Outcome{Why: whyForm}
	case to.Kind == S3:
		return s.object(ctx, to, "probe.ndjson", append(body, '\n'))
	case to.Kind == OTLP:
		return s.post(ctx, to, []byte(`{"resourceSpans":[]}`))
	}
	return s.post(ctx, to, append(body, '\n'))
}

// post sends a body to an address of HTTP.
func (s Sender) post(ctx context.Context, to Target, body []byte) Outcome {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return Outcome{Why: whyAddress}
	}
	for name, value := range to.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if to.Kind == OTLP {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "Yardmaster/"+s.version)
	resp, err := s.http.Do(req)
	if err != nil {
		return Outcome{Why: whyOf(err), Again: true}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	switch {
	case resp.StatusCode/100 == 2 && to.Kind == OTLP && err == nil:
		return Outcome{Rejected: rejected(answer)}
	case resp.StatusCode/100 == 2:
		return Outcome{}
	case resp.StatusCode/100 == 3:
		return Outcome{Why: whyAway}
	}
	return refusal(resp.StatusCode)
}

// rejected is how many spans a receiver of OTLP has not taken, as it says itself. The number may
// be text, as 64 bits are in the JSON of protocol buffers.
func rejected(answer []byte) int {
	var said struct {
		Partial struct {
			Rejected json.RawMessage `json:"rejectedSpans"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.Trim(string(said.Partial.Rejected), `"`))
	if err != nil {
		return 0
	}
	return n
}

// refusal says what a status means.
func refusal(status int) Outcome {
	return Outcome{
		Why:   fmt.Sprintf("The answer has the status %d.", status),
		Again: status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout,
	}
}

// whyOf is why there was no answer.
func whyOf(err error) string {
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return whySlow
	}
	return whyNobody
}

// object puts an object into a bucket.
func (s Sender) object(ctx context.Context, to Target, key string, body []byte) Outcome {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	u, err := url.Parse(to.URL)
	if err != nil {
		return Outcome{Why: whyAddress}
	}
	bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if prefix != "" {
		key = prefix + "/" + key
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(to.Access, to.Secret, ""), Secure: u.Scheme == "https", Region: to.Region,
		BucketLookup: minio.BucketLookupPath, Transport: s.transport, MaxRetries: 1,
	})
	if err != nil {
		return Outcome{Why: whyAddress}
	}
	_, err = client.PutObject(ctx, bucket, key, bytes.NewReader(body), int64(len(body)),
		minio.PutObjectOptions{ContentType: "application/x-ndjson", DisableMultipart: true})
	if err == nil {
		return Outcome{}
	}
	switch status := minio.ToErrorResponse(err).StatusCode; {
	case status/100 == 3:
		return Outcome{Why: whyAway}
	case status > 0:
		return refusal(status)
	}
	return Outcome{Why: whyOf(err), Again: true}
}
