// Package hook sends events to addresses of customers, as signed requests: one attempt
// at a time, bounded in time and in what it reads, and never to where a redirect leads.
package hook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/dial"
)

// Limits of an attempt.
const (
	Patience = 10 * time.Second
	Excerpt  = 2 << 10 // bytes of an answer that are kept
	idle     = 8       // connections that are kept open to one host
)

// Sender makes attempts. Safe for concurrent use.
type Sender struct {
	version string
	clock   func() time.Time
	http    *http.Client
}

// NewSender makes a Sender that connects to addresses for which g allows it. It follows
// no redirect: the address was judged, and the one that it leads to was not.
func NewSender(g *dial.Guard, version string, clock func() time.Time) *Sender {
	return &Sender{version: version, clock: clock, http: &http.Client{
		Timeout: Patience,
		Transport: &http.Transport{
			DialContext: g.Dialer(Patience).DialContext, TLSHandshakeTimeout: Patience, ForceAttemptHTTP2: true,
			MaxIdleConns: 512, MaxIdleConnsPerHost: idle, IdleConnTimeout: time.Minute, DisableCompression: true,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Target is where events are sent, and what signs them.
type Target struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

// Outcome is what came of an attempt.
type Outcome struct {
	Status  int // 0: there was no answer
	Excerpt string
	Why     string // of a failure, for people
	Took    time.Duration
}

// OK tells whether the event has arrived: the answer is 2xx, and came within Patience.
func (o Outcome) OK() bool { return o.Status >= 200 && o.Status < 300 && o.Why == "" }

// Sign is the signature of a body, as the header X-Service-Signature has it: HMAC-SHA256
// of "<timestamp>.<body>", in hex.
func Sign(secret string, timestamp int64, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.", timestamp)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Send sends a body once. It answers within Patience.
func (s *Sender) Send(ctx context.Context, to Target, body string) (out Outcome) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	began := s.clock()
	defer func() { out.Took = max(0, s.clock().Sub(began)) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, strings.NewReader(body))
	if err != nil {
		return Outcome{Why: "The address cannot be used."}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Yardmaster/"+s.version)
	req.Header.Set(VersionHeader, "1")
	req.Header.Set(TimestampHeader, strconv.FormatInt(began.Unix(), 10))
	req.Header.Set(SignatureHeader, Sign(to.Secret, began.Unix(), []byte(body)))
	resp, err := s.http.Do(req)
	if err != nil {
		return Outcome{Why: why(err)}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, Excerpt)) // what follows is left
	out = Outcome{Status: resp.StatusCode, Excerpt: strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\x00", "\uFFFD")}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		out.Why = "The answer is a redirect, which is not followed."
	case !out.OK():
		out.Why = fmt.Sprintf("The answer has the status %d.", resp.StatusCode)
	case err != nil && ctx.Err() != nil:
		out.Why = "The answer did not end within 10 seconds."
	case err != nil:
		out.Why = "The answer broke off."
	}
	return out
}

// why is the reason of an attempt without an answer, for people. It tells nothing of the
// network of the server.
func why(err error) string {
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return "There was no answer within 10 seconds."
	}
	return "No connection was made, or it broke."
}
