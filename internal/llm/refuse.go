package llm

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm/answer"
)

// FaultHeader carries the slug of an error answer, so that the gateway before this
// one need not read the body.
const FaultHeader = "X-Gateway-Fault"

// KindHeader carries the kind of the provider's failure likewise.
const KindHeader = "X-Gateway-Kind"

// KindOf is the kind of failure that a gateway's error answer has; empty: it is not the
// provider's.
func KindOf(h http.Header) answer.Kind { return answer.Kind(h.Get(KindHeader)) }

// Slugs of faults of the upstream; a task's failure_kind has the same values.
const (
	SlugAuth        = "provider_auth"
	SlugQuota       = "provider_quota"
	SlugRateLimit   = "provider_rate_limit"
	SlugUnavailable = "provider_unavailable"
	SlugModel       = "model_unavailable"
)

// Refusal is an error answer in the vocabulary of the models' APIs.
type Refusal struct {
	Status     int
	Code       string // for programs to read
	Type       string // the API's own class of error; empty: the class of the status
	Message    string
	Fault      string      // sent as FaultHeader
	Kind       answer.Kind // sent as KindHeader
	RetryAfter time.Duration
	// Wait is how long the provider tells to wait, which may be no time at all; nil:
	// it tells none.
	Wait *time.Duration
}

// RefusalOf makes an error answer of an error. An error that is no fault is not
// disclosed.
func RefusalOf(err error) Refusal {
	f := fault.From(err)
	return Refusal{Status: f.Kind.Status(), Code: f.Slug, Message: f.Detail, Fault: f.Slug, RetryAfter: f.RetryAfter}
}

// Refuse writes the answer in the shape that the API's clients expect.
func Refuse(w http.ResponseWriter, api API, r Refusal) {
	if r.Type == "" {
		r.Type = errorType(r.Status)
	}
	inner := map[string]any{"type": r.Type, "code": r.Code, "message": r.Message}
	body := map[string]any{"error": inner}
	if api == Messages || api == CountTokens {
		body["type"] = "error"
	} else {
		inner["param"] = nil
	}
	if api == Gemini || api == GeminiCount {
		body = geminiRefusal(r)
	}
	text, _ := json.Marshal(body) // strings and maps always encode
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	if r.Fault != "" {
		h.Set(FaultHeader, r.Fault)
	}
	if r.Kind != "" {
		h.Set(KindHeader, string(r.Kind))
	}
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))))
	}
	if r.Wait != nil {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.Wait.Seconds()))))
		h.Set("Retry-After-Ms", strconv.FormatInt(r.Wait.Milliseconds(), 10))
	}
	w.WriteHeader(r.Status)
	w.Write(text)
}

// errorType is the class of error that the Anthropic and OpenAI APIs use for a
// status.
func errorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// upstreamRefusal turns a provider's error answer into ours.
func upstreamRefusal(resp *http.Response, api API, route Route) (Refusal, *answer.Failure) {
	r := answer.New(answer.Options{API: answer.API(api), Status: resp.StatusCode, Header: resp.Header})
	_, err := io.Copy(r, io.LimitReader(resp.Body, 64<<10))
	r.End(err)
	f := r.Failure()
	return refusalOf(f, api, route), f
}

// refusalOf turns a provider's failure into our answer. It keeps the provider's
// message where the agent can act on it (a prompt that is too long, a bad parameter),
// replaces it where the account's key is at fault, and always removes the key and the
// address.
func refusalOf(f *answer.Failure, api API, route Route) Refusal {
	r := refusalIn(f, api, route)
	r.Kind = f.Kind
	return r
}

func refusalIn(f *answer.Failure, api API, route Route) Refusal {
	out := Refusal{Status: f.Status, Code: f.Code, Type: f.Type, Message: f.Message}
	atLeast := func(least, otherwise int) {
		if out.Status < least || out.Status >= 600 || least < 500 && out.Status >= 500 {
			out.Status = otherwise
		}
	}
	switch f.Kind {
	case answer.Auth:
		// Not 401: the caller's own token is good. Clients do not retry a 403.
		return Refusal{Status: http.StatusForbidden, Code: SlugAuth, Fault: SlugAuth,
			Message: "The model provider refused the account's key. An administrator of the account must replace it."}
	case answer.Quota:
		return Refusal{Status: http.StatusPaymentRequired, Code: SlugQuota, Fault: SlugQuota,
			Message: "The account's key has no quota left at the model provider."}
	case answer.RateLimited:
		out.Status, out.Fault, out.Wait = http.StatusTooManyRequests, SlugRateLimit, f.RetryAfter
	case answer.Overloaded:
		atLeast(500, http.StatusServiceUnavailable)
		out.Fault, out.Wait = SlugUnavailable, f.RetryAfter
	case answer.ContextLength:
		if atLeast(400, http.StatusBadRequest); out.Status == http.StatusTooManyRequests {
			out.Status = http.StatusBadRequest
		}
		out.Code, out.Type, out.Message = "context_length_exceeded", "invalid_request_error", tooLong(f, api)
	case answer.BadRequest:
		if atLeast(400, http.StatusBadRequest); out.Status == http.StatusNotFound {
			out.Fault = SlugModel
		}
	case answer.Cut, answer.NotAnswer:
		text := f.Kind.Words()
		return Refusal{Status: http.StatusBadGateway, Code: string(f.Kind), Fault: SlugUnavailable,
			Message: strings.ToUpper(text[:1]) + text[1:] + "."}
	default:
		if out.Fault = SlugUnavailable; f.Status >= 300 && f.Status < 400 {
			return Refusal{Status: http.StatusBadGateway, Code: SlugUnavailable, Fault: SlugUnavailable,
				Message: "The model provider answered with a redirect."}
		}
		atLeast(500, http.StatusBadGateway)
	}
	if out.Message == "" || strings.HasPrefix(out.Message, "<") { // nothing, or a page
		out.Message = "The model provider answered " + strconv.Itoa(out.Status) + "."
	}
	if out.Code == "" {
		out.Code = out.Fault
	}
	out.Code, out.Type, out.Message = conceal(out.Code, route), conceal(out.Type, route), conceal(out.Message, route)
	return out
}

// tooLong says that a prompt is too long in words that the API's clients know, with
// both numbers where they are told, so that an agent can make its prompt shorter.
func tooLong(f *answer.Failure, api API) string {
	text, numbers := f.Message, ""
	if f.Limit > 0 && f.Asked > 0 {
		numbers = fmt.Sprintf(": %d tokens > %d maximum", f.Asked, f.Limit)
	}
	known := "context"
	if api == Messages {
		known = "prompt is too long"
	}
	if strings.Contains(strings.ToLower(text), known) && (numbers == "" || strings.Contains(text, strconv.FormatInt(f.Limit, 10))) {
		return text
	}
	if text != "" {
		text = " (" + text + ")"
	}
	if api == Messages {
		return known + numbers + text
	}
	return "the prompt is longer than the model's context length" + numbers + text
}

// conceal removes the key and the provider's address from a text for a caller.
func conceal(text string, route Route) string {
	for _, secret := range route.Secrets() {
		text = strings.ReplaceAll(text, secret, "[key]")
	}
	if u, err := route.addressOf(Endpoint{API: Messages}, "m", false); err == nil {
		text = strings.ReplaceAll(text, u.Host, "[provider]")
	}
	return text
}
