package coder

import (
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"yardmaster/internal/box/acp"
	"yardmaster/internal/llm/answer"
)

const (
	maxTries      = 6
	maxBackoff    = 30 * time.Second
	maxRetryAfter = 2 * time.Minute // for a longer Retry-After the client gives up
	maxOutput     = 8192            // tokens of one answer, for APIs that require a limit
	maxWords      = 4 << 10         // bytes of a provider's words in an error
)

// reply is one answer of a model; stop is an ACP stop reason.
type reply struct {
	text  string
	calls []call
	stop  string
}

// wire is one provider API: it encodes a conversation. Package answer reads what
// comes back.
type wire struct {
	api     answer.API
	path    string
	headers func(token string) map[string]string
	request func(model, system string, tools []tool, history []message) any
}

var wires = map[string]wire{
	"chat":      chatWire,
	"messages":  messagesWire,
	"responses": responsesWire,
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

// client calls a model, and repeats calls where that may help.
type client struct {
	cfg  config
	http http.Client
	wait func(ctx context.Context, d time.Duration) error
}

func newClient(cfg config, t http.RoundTripper) *client {
	// A redirect is not followed: it would carry the conversation elsewhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{cfg: cfg, http: http.Client{Transport: t, CheckRedirect: stay}, wait: wait}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// complete asks for the next message of the conversation and passes text to say as
// it arrives. With an error, reply holds the text that was passed on. An error is
// an *acp.Error that says what happened, or ctx's error.
func (c *client) complete(ctx context.Context, system string, tools []tool, history []message, say func(string)) (reply, error) {
	body, err := encode(c.cfg.wire.request(c.cfg.model, system, tools, history))
	if err != nil {
		return reply{}, fmt.Errorf("encode the model request: %w", err)
	}
	for try := 1; ; try++ {
		r, err := c.once(ctx, body, say)
		var failed *answer.Failure
		if err == nil || ctx.Err() != nil || !errors.As(err, &failed) {
			return r, err
		}
		delay := min(maxBackoff, time.Second<<(try-1))
		delay = delay/2 + rand.N(delay/2+1)
		if failed.RetryAfter != nil {
			delay = *failed.RetryAfter
		}
		if !failed.MayPass() || try == maxTries || delay > maxRetryAfter {
			return r, c.explain(failed, try)
		}
		if err := c.wait(ctx, delay); err != nil {
			return r, err
		}
	}
}

// detail is the data of an *acp.Error about a failed call.
type detail struct {
	Kind   answer.Kind `json:"kind"`
	Status int         `json:"status"`
	Limit  int64       `json:"limit,omitempty"` // of the context, in tokens
}

// explain turns a failure into an *acp.Error whose text names the failure's kind.
func (c *client) explain(f *answer.Failure, tries int) error {
	what, code := f.Kind.Words(), acp.CodeInternal
	switch {
	case f.Kind == answer.Auth:
		code = acp.CodeAuthRequired
	case f.Kind == answer.BadRequest && f.Status == http.StatusNotFound:
		what = fmt.Sprintf("model not found at the provider: %q", c.cfg.model)
	case f.Kind == answer.Cut && f.Message != "":
		what = "the model provider is unavailable"
	}
	if tries > 1 {
		what += fmt.Sprintf(" after %d tries", tries)
	}
	if f.Status != 0 {
		what += fmt.Sprintf(": %d %s", f.Status, http.StatusText(f.Status))
	}
	words := f.Message
	if f.Type != "" {
		words = f.Type + ": " + words
	}
	if f.Code != "" && f.Code != f.Type {
		words += " (" + f.Code + ")"
	}
	if words = strings.TrimSpace(words[:min(len(words), maxWords)]); words != "" {
		what += ": " + strings.ToValidUTF8(words, "")
	}
	data, _ := encode(detail{f.Kind, f.Status, f.Limit})
	return &acp.Error{Code: code, Message: what, Data: data}
}

// overflow tells whether a call failed because the conversation is too long for the
// model, and how many tokens the model takes; 0: that is not told.
func overflow(err error) (limit int64, ok bool) {
	var e *acp.Error
	var d detail
	if !errors.As(err, &e) || json.Unmarshal(e.Data, &d) != nil {
		return 0, false
	}
	return d.Limit, d.Kind == answer.ContextLength
}

func (c *client) once(ctx context.Context, body []byte, say func(string)) (reply, error) {
	w := c.cfg.wire
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.url+w.path, bytes.NewReader(body))
	if err != nil {
		return reply{}, fmt.Errorf("model request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	for k, v := range w.headers(c.cfg.token) {
		req.Header.Set(k, v)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return reply{}, &answer.Failure{Kind: answer.Cut, Message: err.Error()}
	}
	defer resp.Body.Close()
	read := answer.New(answer.Options{API: w.api, Status: resp.StatusCode, Header: resp.Header, Keep: true, Text: say})
	read.End(feed(read, resp.Body))
	a := read.Answer()
	r := reply{text: a.Text + a.Refusal, stop: acp.StopEndTurn}
	if a.Failure != nil {
		return r, a.Failure // the calls may be incomplete
	}
	for _, t := range a.Tools {
		// Some providers give no id, and one of another form than this is refused by some.
		r.calls = append(r.calls, call{cmp.Or(t.ID, crand.Text()[:9]), t.Name, t.Arguments})
	}
	switch a.Stop {
	case answer.Length, answer.Context:
		r.stop = acp.StopMaxTokens
	case answer.Refused, answer.Filtered:
		r.stop = acp.StopRefusal
	}
	return r, nil
}

// feed passes an answer to its reader until nothing of it follows. It fails with what
// broke the connection.
func feed(read *answer.Reader, body io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		read.Write(buf[:n])
		switch {
		case err == io.EOF || read.Over():
			return nil
		case err != nil:
			return err
		}
	}
}
