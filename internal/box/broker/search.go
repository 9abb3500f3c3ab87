package broker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"yardmaster/internal/box/scrub"
)

// refusal says why an answer is not passed on, in words for the agent.
type refusal string

func (r refusal) Error() string { return string(r) }

// searching sends a request to a host and returns the part of the answer that the
// agent may see. It makes a new answer from the status, the allowed headers and the
// body, each without secrets. Nothing else passes, even if the reverse proxy would
// pass it on: no trailer, no change of protocol and no interim answer.
type searching struct {
	// ctx is the context of the original request: ReverseProxy's own makes the
	// transport report interim answers.
	ctx  context.Context
	run  *Run
	set  http.Header // headers that the broker adds to the request
	base string      // relative reference from the request to the root of the host
	send http.RoundTripper
}

// RoundTrip sends a request. Its error is a refusal if the answer may not be passed
// on.
func (t *searching) RoundTrip(out *http.Request) (*http.Response, error) {
	if agent, ok := out.Header["User-Agent"]; ok && slices.Equal(agent, []string{""}) {
		delete(out.Header, "User-Agent") // some hosts refuse requests without one; Go's is sent
	}
	resp, err := t.send.RoundTrip(out.WithContext(t.ctx))
	if err != nil {
		return nil, err
	}
	if why := unsearchable(resp); why != "" {
		resp.Body.Close()
		return nil, refusal("The answer " + why + " and was not passed on.")
	}
	if !redirect(resp, out.URL, t.base) {
		resp.Body.Close()
		return nil, refusal("The host redirects to another, which is not followed.")
	}
	body := io.Reader(resp.Body)
	if out.Method == http.MethodGet && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body = &endpoint{lines: bufio.NewReader(resp.Body), at: out.URL, base: t.base}
	}
	return &http.Response{
		StatusCode: resp.StatusCode, Header: t.headers(resp.Header), ContentLength: -1, Request: out,
		Body: newSearched(t.ctx, body, resp.Body, t.run.Scrubber),
	}, nil
}

// ofOriginal lists headers that describe the original answer and would be wrong for
// the changed one.
var ofOriginal = []string{
	"Content-Length", "Etag", "Alt-Svc", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "Use-As-Dictionary",
}

// headers returns the headers of an answer without secrets. A header's name can
// contain a credential too, in any case.
func (t *searching) headers(from http.Header) http.Header {
	var parts []string
	for _, values := range t.set {
		for _, v := range values {
			parts = append(parts, strings.Fields(strings.ToLower(v))...)
		}
	}
	to := http.Header{}
	for name, values := range from {
		secret := func(p string) bool { return len(p) >= 8 && strings.Contains(strings.ToLower(name), p) }
		if slices.Contains(ofOriginal, name) || slices.ContainsFunc(parts, secret) {
			continue
		}
		for _, v := range values {
			to.Add(t.run.Scrubber.String(name), t.run.Scrubber.String(v))
		}
	}
	return to
}

// searched reads a body and removes secrets as it arrives.
type searched struct {
	ctx   context.Context // of the request
	from  io.Reader
	whole io.Closer
	into  io.WriteCloser // removes the secrets and writes to ready
	ready bytes.Buffer
	buf   []byte
	err   error
}

func newSearched(ctx context.Context, from io.Reader, whole io.Closer, secrets *scrub.Scrubber) *searched {
	s := &searched{ctx: ctx, from: from, whole: whole, buf: make([]byte, 32<<10)}
	s.into = secrets.Writer(&s.ready)
	return s
}

// Read returns bytes that certainly contain no secret. When the body ends with an
// error, Read returns that error and drops the bytes that it held back. A body that
// ends after the request was cancelled ends with an error: the host saw the
// connection close, and may have ended its answer as if nothing were missing before
// the transport stopped reading.
func (s *searched) Read(p []byte) (int, error) {
	for s.ready.Len() == 0 {
		if s.err != nil {
			return 0, s.err
		}
		n, err := s.from.Read(s.buf)
		if _, werr := s.into.Write(s.buf[:n]); werr != nil {
			err = werr
		}
		if errors.Is(err, io.EOF) && s.ctx.Err() != nil {
			err = context.Cause(s.ctx)
		}
		if errors.Is(err, io.EOF) {
			if cerr := s.into.Close(); cerr != nil {
				err = cerr
			}
		}
		s.err = err
	}
	return s.ready.Read(p)
}

// Close closes the original body.
func (s *searched) Close() error { return s.whole.Close() }

// redirect changes a redirect within the host so that it leads back to the broker.
// It returns false for a redirect to another host.
func redirect(resp *http.Response, from *url.URL, base string) bool {
	places := resp.Header["Location"]
	if len(places) == 0 {
		return true
	}
	there := within(places[0], from, base)
	if there == "" || len(places) > 1 {
		return false
	}
	resp.Header.Set("Location", there)
	return true
}

// within changes a reference within the host of from into one relative to base. It
// returns "" for a reference to another host.
func within(reference string, from *url.URL, base string) string {
	to, err := from.Parse(reference)
	if err != nil || to.Scheme != "https" || strings.TrimSuffix(strings.ToLower(to.Host), ":443") != from.Host {
		return ""
	}
	there := base + to.EscapedPath()
	if to.RawQuery != "" {
		there += "?" + to.RawQuery
	}
	return there
}
