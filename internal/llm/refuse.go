package llm

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/fault"
)

// FaultHeader carries the slug of an error answer, so that the gateway before this
// one need not read the body.
const FaultHeader = "X-Gateway-Fault"

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
	Fault      string // sent as FaultHeader
	RetryAfter time.Duration
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
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))))
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

// upstreamRefusal turns a provider's error answer into ours. It keeps the
// provider's message where the agent can act on it (a prompt that is too long, a
// bad parameter), replaces it where the account's key is at fault, and always
// removes the key and the address.
func upstreamRefusal(resp *http.Response, route Route) Refusal {
	var said struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    any    `json:"code"`
		} `json:"error"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_ = json.Unmarshal(text, &said) // an answer that is not JSON has no message
	code, _ := said.Error.Code.(string)
	out := Refusal{Status: resp.StatusCode, Code: code, Type: said.Error.Type, Message: said.Error.Message}
	broke := code == "insufficient_quota" || out.Type == "insufficient_quota" || out.Type == "billing_error" ||
		strings.Contains(out.Message, "credit balance is too low")
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden && !broke, refusesKey(status, text):
		// Not 401: the caller's own token is good. Clients do not retry a 403.
		return Refusal{Status: http.StatusForbidden, Code: SlugAuth, Fault: SlugAuth,
			Message: "The model provider refused the account's key. An administrator of the account must replace it."}
	case broke, status == http.StatusPaymentRequired:
		return Refusal{Status: http.StatusPaymentRequired, Code: SlugQuota, Fault: SlugQuota,
			Message: "The account's key has no quota left at the model provider."}
	case status == http.StatusTooManyRequests:
		out.Fault = SlugRateLimit
	case status == http.StatusNotFound:
		out.Fault = SlugModel
	case status >= 500:
		out.Fault = SlugUnavailable
	case status < 400:
		return Refusal{Status: http.StatusBadGateway, Code: SlugUnavailable, Fault: SlugUnavailable,
			Message: "The model provider answered with a redirect."}
	}
	if out.Message == "" {
		out.Message = "The model provider answered " + strconv.Itoa(resp.StatusCode) + "."
	}
	if out.Code == "" {
		out.Code = out.Fault
	}
	out.Code, out.Type, out.Message = conceal(out.Code, route), conceal(out.Type, route), conceal(out.Message, route)
	return out
}

// conceal removes the key and the provider's address from a text for a caller.
func conceal(text string, route Route) string {
	if len(route.Key) > 0 {
		text = strings.ReplaceAll(text, route.Key, "[key]")
	}
	if u, err := route.address(""); err == nil {
		text = strings.ReplaceAll(text, u.Host, "[provider]")
	}
	return text
}
