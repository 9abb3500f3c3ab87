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

// refusal is why an answer is not passed on, in words for the agent.
type refusal string

func (r refusal) Error() string { return string(r) }

// searching sends a request to a host and answers what the agent may see of the
// answer. That is made anew: its status, the headers that are passed on and its
// body, each without secrets. Nothing else of the answer gets past, whatever
// the reverse proxy above would pass on: no trailer, no change of protocol and
// no interim answer.
type searching struct {
	ctx  context.Context // of the request as it came: the one of ReverseProxy's request asks for interim answers
	run  *Run
	set  http.Header // what the broker adds to the request
	base string      // where the host begins, as seen from the request
	send http.RoundTripper
}

// RoundTrip sends a request. Its error is a refusal for an answer that is not
// passed on.
func (t *searching) RoundTrip(out *http.Request) (*http.Response, error) {
	if agent, ok := out.Header["User-Agent"]; ok && slices.Equal(agent, []string{""}) {
		delete(out.Header, "User-Agent") // some hosts refuse requests without one: Go's is sent
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
	return &http.Response{StatusCode: resp.StatusCode, Header: t.headers(resp.Header), ContentLength: -1, Request: out,
		Body: newSearched(body, resp.Body, t.run.Scrubber)}, nil
}

// ofOriginal are headers about the answer as the host sent it, which is not
// what is passed on.
var ofOriginal = []string{"Content-Length", "Etag", "Alt-Svc", "Content-Md5", "Digest", "Content-Digest",
	"Repr-Digest", "Use-As-Dictionary"}

// headers are those of an answer without secrets. A credential can be the name
// of one, too, and names have no case.
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

// searched reads a body without secrets, as it comes.
type searched struct {
	from  io.Reader
	whole io.Closer
	into  io.WriteCloser // takes the secrets out, and writes to ready
	ready bytes.Buffer
	buf   []byte
	err   error
}

func newSearched(from io.Reader, whole io.Closer, secrets *scrub.Scrubber) *searched {
	s := &searched{from: from, whole: whole, buf: make([]byte, 32<<10)}
	s.into = secrets.Writer(&s.ready)
	return s
}

// Read answers what is known to hold no secret. It returns the error of the
// body behind it, without what was held back at that point.
func (s *searched) Read(p []byte) (int, error) {
	for s.ready.Len() == 0 {
		if s.err != nil {
			return 0, s.err
		}
		n, err := s.from.Read(s.buf)
		if _, werr := s.into.Write(s.buf[:n]); werr != nil {
			err = werr
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

// Close closes the body behind.
func (s *searched) Close() error { return s.whole.Close() }

// redirect makes a redirect within the host lead back here. It is false for
// one that leads elsewhere.
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

// within makes a reference from an address of a host lead back here, where base
// leads to that host. It is empty for one that leads to another.
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
