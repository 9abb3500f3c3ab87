package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm/answer"
	"yardmaster/internal/observe"
)

// Caller makes the platform's own model calls. They go through a gateway like the
// calls of agents, so the same keys, prices and budgets apply.
type Caller struct {
	Gateway http.Handler
}

// Prompt is one call for a text, without tools and without a stream.
type Prompt struct {
	API      API // Messages or Chat
	Provider Provider
	Model    string
	System   string
	// Turns are the conversation so far: prompts and answers alternate, and the
	// first and the last are prompts.
	Turns     []string
	MaxTokens int // of the answer
}

// maxText is the longest answer that Caller reads, in bytes.
const maxText = 1 << 20

type said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Complete makes a call with a token that the gateway's Authorizer accepts, and
// returns the text of the answer. It fails with the fault of the gateway's
// refusal, and with provider_unavailable for an answer that was cut off.
func (c Caller) Complete(ctx context.Context, token string, p Prompt) (string, error) {
	path, body := "/v1/chat/completions", map[string]any{"model": p.Model}
	var messages []said
	switch p.API {
	case Messages:
		path, body["system"], body["max_tokens"] = "/v1/messages", p.System, p.MaxTokens
	default:
		a, _ := p.Provider.adapter()
		body[cmp.Or(a.outputCap, "max_tokens")] = p.MaxTokens
	}
	if p.API != Messages && p.System != "" {
		messages = append(messages, said{"system", p.System})
	}
	for i, turn := range p.Turns {
		messages = append(messages, said{[]string{"user", "assistant"}[i%2], turn})
	}
	body["messages"] = messages
	text, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	// What the gateway notes is not about the request that this is done for.
	req, err := http.NewRequestWithContext(observe.With(ctx, nil), http.MethodPost, path, bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	w := &kept{header: http.Header{}}
	if err := w.serve(c.Gateway, req); err != nil {
		return "", err
	}
	return w.text(p.API)
}

// kept keeps the response of a gateway.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *kept) Header() http.Header { return a.header }

func (a *kept) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *kept) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.body.Len()+len(p) > maxText {
		return 0, errors.New("the answer is too long")
	}
	return a.body.Write(p)
}

// Flush is there for a provider that streams though no stream was asked for.
func (a *kept) Flush() {}

// serve runs the handler as a server would. A gateway aborts an answer that has
// begun by panicking with http.ErrAbortHandler, which becomes ErrCut; any other
// panic becomes an error.
func (a *kept) serve(h http.Handler, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = unavailable("The model provider cut its answer short.", ErrCut)
		default:
			err = fmt.Errorf("the model gateway panicked: %v\n%s", p, debug.Stack())
		}
	}()
	h.ServeHTTP(a, r)
	return r.Context().Err()
}

// text reads the answer of the Messages or the Chat API.
func (a *kept) text(api API) (string, error) {
	r := answer.New(answer.Options{API: answer.API(api), Status: a.status, Header: a.header, Keep: true})
	r.Write(a.body.Bytes())
	r.End(nil)
	got := r.Answer()
	switch f := got.Failure; {
	case f != nil && a.status != http.StatusOK:
		err := refused(a.status, a.header.Get(FaultHeader), f.Code, f.Message)
		if f.RetryAfter != nil {
			err = err.After(*f.RetryAfter)
		}
		return "", err
	case f != nil:
		return "", unavailable(refusalOf(f, api, Route{}).Message, f)
	case got.Stop == answer.Length, got.Stop == answer.Context:
		return "", unavailable("The model's answer was longer than it may be.", ErrCut)
	}
	return got.Text + got.Refusal, nil
}

// refused turns a gateway's refusal back into a fault.
func refused(status int, slug, code, message string) *fault.Error {
	kind := fault.Unprocessable
	switch {
	case status == http.StatusTooManyRequests:
		kind = fault.RateLimited
	case status >= 500:
		kind = fault.Unavailable
	case status == http.StatusPaymentRequired:
		kind = fault.PaymentRequired
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		kind = fault.Forbidden
	case status == http.StatusNotFound:
		kind = fault.NotFound
	}
	if slug == "" {
		slug = code
	}
	if message == "" {
		message = fmt.Sprintf("The model provider answered %d.", status)
	}
	return fault.New(kind, slug, message)
}
