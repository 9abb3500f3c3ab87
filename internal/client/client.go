// Package client calls the API over HTTP as any caller does: with a base address
// and a token, JSON in both directions, and problem documents as errors. The command
// line and the demo use it.
package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/proxies"
)

// Client calls one server with one credential.
type Client struct {
	URL   string // without a trailing slash
	Token string // personal access token; empty: anonymous
	HTTP  *http.Client
	Steps Steps // is told what goes on in long calls; nil: nobody

	Remark func(text string) // is told what somebody has to know of a call that succeeds; nil: nobody

	most int64 // bytes of an answer that are read: largest, unless a test says otherwise
}

// Problem is a refusal by the server (RFC 9457).
type Problem struct {
	Type      string              `json:"type"`
	Title     string              `json:"title"`
	Status    int                 `json:"status"`
	Detail    string              `json:"detail"`
	Errors    map[string][]string `json:"errors"`
	RequestID string              `json:"request_id"`

	RetryAfter  int    `json:"retry_after"`      // seconds
	CurrentHead string `json:"current_head_sha"` // of a pull request whose head has moved
	Clear       *Clear `json:"clear"`            // the call that resolves the problem; nil: none is known
	ActionID    string `json:"action_id"`        // id of the pending question
	Question    string `json:"question"`         // its text

	MissingScopes []string `json:"missing_scopes"` // that the credential lacks
}

// Slug is the last segment of the problem's type.
func (p *Problem) Slug() string { return p.Type[strings.LastIndex(p.Type, "/")+1:] }

func (p *Problem) Error() string {
	s := fmt.Sprintf("%s (%d %s)", p.Detail, p.Status, p.Slug())
	if p.CurrentHead != "" {
		s += "\n  its head is " + p.CurrentHead + " now"
	}
	for _, field := range slices.Sorted(maps.Keys(p.Errors)) {
		name := field + ": "
		if field == "" { // the whole request
			name = ""
		}
		s += "\n  " + name + strings.Join(p.Errors[field], ", ")
	}
	return s
}

// Unreachable says that the server at URL did not answer.
type Unreachable struct {
	URL string
	Err error
}

func (u *Unreachable) Error() string {
	err := u.Err
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // without the method and the address of the call
	}
	return fmt.Sprintf("no answer from %s: %v", u.URL, err)
}

func (u *Unreachable) Unwrap() error { return u.Err }

// BadAddress is the error of a text that is no address of a server.
type BadAddress string

func (a BadAddress) Error() string {
	return fmt.Sprintf("%q is not an address such as http://127.0.0.1:8080", string(a))
}

// Address validates the address of a server, and answers it without a trailing
// slash. It fails with BadAddress.
func Address(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", BadAddress(s)
	}
	return strings.TrimRight(s, "/"), nil
}

// Call sends in as JSON (nil: no body) and decodes the answer into out (nil:
// discarded). A server that limits calls is waited for. Call fails with *Problem if the
// server refuses, and with *Unreachable if the server does not answer.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	return c.answer(ctx, method, path, in, c.decoded(method, path, out))
}

// decoded reads the body of an answer into out.
func (c *Client) decoded(method, path string, out any) func(io.Reader) error {
	return func(body io.Reader) error {
		if out == nil {
			_, err := io.Copy(io.Discard, io.LimitReader(body, c.limit()))
			return err
		}
		if err := json.NewDecoder(io.LimitReader(body, c.limit())).Decode(out); err != nil {
			return fmt.Errorf("%s %s: the answer is not what was expected: %w", method, path, err)
		}
		return nil
	}
}

// Fetch makes a call and answers the body as the server sent it. It fails as Call
// does.
func (c *Client) Fetch(ctx context.Context, method, path string, in any) (b []byte, err error) {
	err = c.answer(ctx, method, path, in, func(body io.Reader) (err error) {
		b, err = whole(body, c.limit())
		return err
	})
	return b, err
}

// largest is the most bytes of an answer that are read, and largestFrame of a frame of a
// stream.
const (
	largest      = 64 << 20
	largestFrame = 16 << 20
)

// errTooLarge is the error for an answer, or a frame, that goes on and on.
var errTooLarge = errors.New("the server sends more than any answer has")

// longestWait is the longest pause that a server can ask for.
const longestWait = time.Hour

// wait is a number of seconds that a server has named.
func wait(seconds int) time.Duration {
	return time.Duration(min(max(seconds, 0), int(longestWait.Seconds()))) * time.Second
}

// direct calls servers, and goes to no other one that they name: what a call holds is for
// the server alone that was asked.
var direct = &http.Client{CheckRedirect: sameServer}

// sameServer refuses redirects to another scheme, name or port. The standard library
// takes ports of a name, and names below it, for the same, and sends them the token.
func sameServer(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case req.URL.Scheme != from.Scheme || !strings.EqualFold(req.URL.Host, from.Host):
		return fmt.Errorf("it sends on to another server, %s://%s: give that as --url if it is yours", req.URL.Scheme, req.URL.Host)
	case len(via) > 5:
		return errors.New("it sends on and on")
	}
	return nil
}

func (c *Client) limit() int64 { return cmp.Or(c.most, largest) }

// whole reads an answer.
func whole(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, errTooLarge
	}
	return b, err
}

// send makes a request whose body is in as JSON, or in itself if it is an io.Reader.
func (c *Client) send(ctx context.Context, method, path string, in any, header http.Header) (*http.Response, error) {
	body, raw := in.(io.Reader)
	if in != nil && !raw {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	proxies.SpareServer(ctx, c.URL)
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if in != nil && !raw {
		req.Header.Set("Content-Type", "application/json")
		c.tell(req)
	}
	if c.Token != "" && req.Header.Get("Authorization") == "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	hc := c.HTTP
	if hc == nil {
		hc = direct
	}
	resp, err := hc.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &Unreachable{c.URL, err}
	}
	if resp.StatusCode < 400 {
		return resp, nil
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	p := &Problem{Status: resp.StatusCode}
	if json.Unmarshal(b, p) != nil || p.Type == "" {
		*p = Problem{} // it may be half read
		p.Type, p.Detail = "about:blank", fmt.Sprintf("%s %s answered %s%s", method, path, resp.Status, plainly(resp, path, b))
	}
	p.Status = resp.StatusCode
	return nil, p
}

// largeBody is the size in bytes from which Steps is told how much of a body is sent.
const largeBody = 256 << 10

// tell has Steps told how much of a large body is sent.
func (c *Client) tell(req *http.Request) {
	if c.Steps == nil || req.ContentLength < largeBody || req.GetBody == nil {
		return
	}
	again := req.GetBody
	req.GetBody = func() (io.ReadCloser, error) {
		body, err := again()
		return &told{ReadCloser: body, of: req.ContentLength, part: c.Steps.Part}, err
	}
	req.Body = &told{ReadCloser: req.Body, of: req.ContentLength, part: c.Steps.Part}
}

// told is a body that tells how much of it was read.
type told struct {
	io.ReadCloser
	read, of int64
	part     func(string)
}

func (t *told) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	t.read += int64(n)
	t.part(fmt.Sprintf("%d%% of %s sent", t.read*100/t.of, Size(t.of)))
	return n, err
}

// Size is a number of bytes for people, in KiB or MiB.
func Size(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// Frame is one server-sent event.
type Frame struct {
	ID    string
	Event string
	Data  json.RawMessage
}

// ErrStop is the error with which the function given to Stream ends the stream.
var ErrStop = errors.New("stop")

// Stream reads an SSE route from the event after lastID until the server ends the
// stream. When the connection breaks, Stream reconnects and resumes. When the server refuses
// it for now, Stream says so, waits as long as the server asks, and tries again. It fails
// with *Problem for a refusal that will not pass.
func (c *Client) Stream(ctx context.Context, path, lastID string, fn func(Frame) error) error {
	for {
		h := http.Header{"Accept": {"text/event-stream"}}
		if lastID != "" {
			h.Set("Last-Event-ID", lastID)
		}
		resp, err := c.send(ctx, http.MethodGet, path, nil, h)
		if err == nil {
			ended := resp.StatusCode == http.StatusNoContent // the end was heard before
			if !ended {
				ended, err = frames(resp.Body, func(f Frame) error {
					if f.ID != "" {
						lastID = f.ID
					}
					return fn(f)
				})
			}
			resp.Body.Close()
			if errors.Is(err, ErrStop) || ended {
				return nil
			}
			if errors.Is(err, errTooLarge) {
				return err
			}
		}
		var p *Problem
		pause, again := tryAgain(ctx, err)
		if errors.As(err, &p) && !again {
			return err
		}
		pause = max(pause, 500*time.Millisecond)
		if p != nil && p.later() {
			tell(ctx, fmt.Sprintf("%s: the next try is in %s; Ctrl-C ends it", c.why(p), pause))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// lineOf reads a line of a stream, without its end.
func lineOf(br *bufio.Reader) (string, error) {
	var b []byte
	for {
		part, err := br.ReadSlice('\n')
		b = append(b, part...)
		switch {
		case err == nil:
			return strings.TrimRight(string(b), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		case len(b) > largestFrame:
			return "", errTooLarge
		}
	}
}

// frames reads SSE frames. ended is true after an event named end.
func frames(r io.Reader, fn func(Frame) error) (ended bool, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var f Frame
	var has bool
	for {
		line, err := lineOf(br)
		if err != nil {
			return false, err
		}
		if len(f.Data)+len(line) > largestFrame {
			return false, errTooLarge
		}
		if line == "" {
			if has {
				if err := fn(f); err != nil {
					return false, err
				}
				if f.Event == "end" {
					return true, nil
				}
			}
			f, has = Frame{}, false
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch key {
		case "id":
			f.ID = value
		case "event":
			f.Event, has = value, true
		case "data":
			f.Data, has = append(f.Data, value...), true
		}
	}
}

// Clock is the time of the server as its health check says it, to the second; zero if it
// does not.
func (c *Client) Clock(ctx context.Context) (time.Time, error) {
	resp, err := c.send(ctx, http.MethodGet, "/healthz", nil, nil)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return time.Time{}, nil
	}
	return at, nil
}
