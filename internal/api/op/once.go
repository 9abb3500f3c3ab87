package op

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Use is one use of an Idempotency-Key. Print is a digest of what the key is
// bound to: credential, method, path and body.
type Use struct{ Account, Key, Print string }

// Answer is a response in memory.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte
}

// Ledger remembers the answers to writes that came with an Idempotency-Key.
type Ledger interface {
	// Once runs what the use stands for, or answers what it was answered
	// before, which replayed tells. In the transactions of run, Answered may
	// tell what the answer will be. Answers of 500 and up are not remembered.
	// A twin in flight is waited for. It fails with 409 for a key that stands
	// for something else, or whose twin does not end.
	Once(ctx context.Context, u Use, run func(context.Context) Answer) (a Answer, replayed bool, err error)
}

const keyHeader = "Idempotency-Key"

// keyed tells whether a row understands Idempotency-Key. Where anybody may call,
// a key would show one caller what another was answered.
func (o *Op) keyed() bool {
	return writes(o.Method) && strings.HasPrefix(o.Path, "/v1/") && (!o.Rule.IsPublic() || o.Holder != nil) && !o.NoStore && !o.Inside && o.stream == nil
}

// use reads the key of a request, if it has one that the row understands.
func (s *server) use(req *http.Request, o *Op, a policy.Actor) (u Use, sent bool, err error) {
	values := req.Header.Values(keyHeader)
	if len(values) == 0 || s.Ledger == nil || !o.keyed() {
		return u, false, nil
	}
	if len(values) > 1 || len(values[0]) > 255 || strings.ContainsFunc(values[0], func(r rune) bool { return r < 0x20 || r > 0x7e }) || values[0] == "" {
		return u, false, fault.Field(keyHeader, "must be 1 to 255 characters of printable ASCII")
	}
	return Use{Account: a.AccountID, Key: values[0]}, true, nil
}

// fingerprint digests what a key is bound to. Lengths keep the parts apart.
func fingerprint(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// once serves a request with a key.
func (s *server) once(w http.ResponseWriter, req *http.Request, o *Op, a policy.Actor, u Use) error {
	var body bytes.Buffer
	if err := o.read(req, &body); err != nil {
		return err
	}
	u.Print = fingerprint(a.CredentialID, req.Method, req.URL.RequestURI(), body.String())
	var failed error
	got, replayed, err := s.Ledger.Once(req.Context(), u, func(ctx context.Context) Answer {
		p := &page{header: w.Header()}
		req := req.WithContext(s.answering(ctx, req, o))
		req.Body = io.NopCloser(&body)
		if failed = s.run(p, req, o, func(in any) error { return o.bind(req, in) }); failed != nil {
			s.fail(p, req, o, ended(req, failed))
		}
		return p.answer()
	})
	if err != nil {
		return err
	}
	h := w.Header()
	if replayed {
		h.Set("X-Idempotent-Replayed", "true")
		if got.ContentType == problemType {
			got.Body = again(h, got.Body, RequestOf(req.Context()).ID)
		}
	}
	h.Set("Content-Type", got.ContentType)
	o.deliver(w, req, got.Status, got.Body)
	return failed
}

// again makes a problem that was told before one of this request.
func again(h http.Header, body []byte, requestID string) []byte {
	var p Problem
	if json.Unmarshal(body, &p) != nil {
		return body
	}
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter != nil {
		h.Set("Retry-After", strconv.Itoa(*p.RetryAfter))
	}
	p.RequestID = requestID
	if b, err := json.Marshal(p); err == nil {
		return b
	}
	return body
}

// page is a response that is written to memory.
type page struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (p *page) answer() Answer { return Answer{p.status, p.header.Get("Content-Type"), p.body.Bytes()} }

func (p *page) Header() http.Header         { return p.header }
func (p *page) WriteHeader(status int)      { p.status = status }
func (p *page) Write(b []byte) (int, error) { return p.body.Write(b) }
