package coder

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/box/acp"
)

const (
	maxTries      = 6
	maxBackoff    = 30 * time.Second
	maxRetryAfter = 2 * time.Minute // for a longer Retry-After the client gives up
	maxOutput     = 8192            // tokens of one answer, for APIs that require a limit
	maxErrorBody  = 64 << 10
	maxEvent      = 8 << 20 // bytes of one server-sent event
)

// reply is one answer of a model; stop is an ACP stop reason.
type reply struct {
	text  string
	calls []call
	stop  string
}

// wire is one provider API: it encodes a conversation and decodes the streamed
// answer. event takes the data of one event of the stream, nil at its end, and
// tells whether the answer is complete.
type wire struct {
	path    string
	headers func(token string) map[string]string
	request func(model, system string, tools []tool, history []message) any
	decoder func(say func(string)) decoder
}

type decoder interface {
	event(data []byte) (done bool, err error)
	reply() reply
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
	return &client{cfg: cfg, http: http.Client{Transport: t}, wait: wait}
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

// modelError is a failure of the provider or of the connection to it. status is 0
// if there was no answer.
type modelError struct {
	status     int
	text       string
	retryAfter time.Duration
	retry      bool
}

func (e *modelError) Error() string { return e.text }

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
		var failed *modelError
		if err == nil || ctx.Err() != nil || !errors.As(err, &failed) {
			return r, err
		}
		delay := failed.retryAfter
		if delay == 0 {
			delay = min(maxBackoff, time.Second<<(try-1))
			delay = delay/2 + rand.N(delay/2+1)
		}
		if !failed.retry || try == maxTries || delay > maxRetryAfter {
			return r, c.explain(failed, try)
		}
		if err := c.wait(ctx, max(delay, 0)); err != nil {
			return r, err
		}
	}
}

// explain turns a failure into an *acp.Error whose text shows the failure's kind.
func (c *client) explain(e *modelError, tries int) error {
	what, code := "the model provider failed", acp.CodeInternal
	switch {
	case e.status == 401 || e.status == 403:
		what, code = "the model provider refused the credential", acp.CodeAuthRequired
	case e.status == 402:
		what = "the model provider's quota is spent"
	case e.status == 404:
		what = fmt.Sprintf("model not found at the provider: %q", c.cfg.model)
	case e.status == 429:
		what = "the model provider's rate limit holds"
	case e.status >= 400 && e.status < 500:
		what = "the model provider refused the request"
	case e.status == 0:
		what = "the model provider is unavailable"
	}
	if tries > 1 {
		what += fmt.Sprintf(" after %d tries", tries)
	}
	data, _ := encode(map[string]any{"status": e.status})
	return &acp.Error{Code: code, Message: what + ": " + e.text, Data: data}
}

func overflows(err error) bool {
	var e *acp.Error
	if !errors.As(err, &e) {
		return false
	}
	text := strings.ToLower(e.Message)
	for _, s := range []string{"context length", "context_length", "context window", "prompt is too long", "maximum context"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
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
		return reply{}, &modelError{text: err.Error(), retry: true}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return reply{}, refusal(resp)
	}
	d := w.decoder(say)
	if err := events(resp.Body, d.event); err != nil {
		var e *modelError
		if !errors.As(err, &e) {
			e = &modelError{text: "the answer's stream ended early: " + err.Error(), retry: true}
		}
		return reply{text: d.reply().text}, e // the calls may be incomplete
	}
	return d.reply(), nil
}

func refusal(resp *http.Response) *modelError {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e := &modelError{status: resp.StatusCode, text: resp.Status}
	if text := errorText(body); text != "" {
		e.text += ": " + text
	}
	// An exhausted quota has the status of a rate limit, too, but waiting does not
	// end it.
	e.retry = e.status >= 500 || e.status == 408 || e.status == 429 && !strings.Contains(e.text, "insufficient_quota")
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.retryAfter = time.Duration(s) * time.Second
		if s <= 0 {
			e.retryAfter = -1 // at once, in contrast to an absent header
		}
	} else if t, err := http.ParseTime(resp.Header.Get("Retry-After")); err == nil {
		e.retryAfter = time.Until(t)
	}
	return e
}

// errorText returns type, message and code from the error bodies of the known APIs.
func errorText(body []byte) string {
	var b struct {
		Error struct {
			Type, Message string
			Code          any
		} `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil || b.Error.Message == "" {
		return strings.TrimSpace(string(body[:min(len(body), 500)]))
	}
	text := b.Error.Message
	if code, ok := b.Error.Code.(string); ok && code != b.Error.Type {
		text += " (" + code + ")"
	}
	if b.Error.Type != "" {
		text = b.Error.Type + ": " + text
	}
	return text
}

// events passes the data of server-sent events to f until f reports that it is
// done.
func events(r io.Reader, f func(data []byte) (bool, error)) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var data []byte
	for sc.Scan() {
		line := sc.Bytes()
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
			continue
		}
		if len(line) > 0 || len(data) == 0 {
			continue // names, ids and comments are not needed
		}
		done, err := f(data)
		if done || err != nil {
			return err
		}
		data = data[:0]
	}
	if err := sc.Err(); err != nil {
		return err
	}
	if done, err := f(nil); done || err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// streamError returns an error that a provider reports within its stream.
func streamError(data []byte) *modelError {
	text := errorText(data)
	retry := slices.ContainsFunc([]string{"overloaded", "server_error", "api_error", "rate_limit"},
		func(kind string) bool { return strings.Contains(text, kind) })
	return &modelError{text: text, retry: retry, status: http.StatusOK}
}
