package answer

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
)

// said is what an error of any provider says.
type said struct {
	present bool
	status  int // of the answer, or the number in the body
	kind    string
	code    string
	text    string
	delay   string // of Google's RetryInfo
	quotas  string // ids of Google's QuotaFailure
	reason  string // of Google's ErrorInfo
	limit   int64
	asked   int64
}

// readError finds the error in a document or an event. The shapes: {"error":{…}},
// [{"error":{…}}], {"error":"…"}, {"type":"error","error":{…}},
// {"type":"error","code":…}, {"object":"error",…}, {"code":"…","error":"…"},
// {"message":"…"}, or a text that is no JSON.
func readError(body []byte) (s said) {
	v := value(body)
	if i := space(v, 0); i < len(v) && v[i] == '[' {
		v[i:].each(func(n int, e value) {
			if n == 0 {
				v = e
			}
		})
	}
	m := v.pick("error", "type", "object")
	s.present = isError(m[0], m[1], m[2])
	switch {
	case !v.trimmed().object():
		s.text = strings.TrimSpace(string(body))
	case m[0].object() && !m[0].empty():
		s.take(m[0])
	default:
		s.take(v)
		if text := m[0].str(); text != "" {
			s.text = text
		}
	}
	if n, err := strconv.Atoi(s.code); err == nil && n >= 400 && n < 600 {
		s.status = n
	}
	return s
}

// trimmed is v without the space around it.
func (v value) trimmed() value { return bytes.TrimSpace(v) }

// take reads the members of an error.
func (s *said) take(v value) {
	m := v.pick("message", "type", "code", "status", "details", "metadata", "innererror", "n_ctx", "n_prompt_tokens", "detail")
	s.text, s.kind, s.code = m[0].str(), m[1].word(), m[2].word()
	if s.text == "" {
		s.text = m[9].str()
	}
	if s.kind == "" {
		s.kind = m[3].word()
	}
	s.limit, _ = m[7].count()
	s.asked, _ = m[8].count()
	m[4].each(func(_ int, d value) {
		p := d.pick("retryDelay", "reason", "violations")
		if !p[0].empty() {
			s.delay = p[0].str()
		}
		if !p[1].empty() {
			s.reason = p[1].str()
		}
		p[2].each(func(_ int, q value) { s.quotas += q.get("quotaId").str() + " " })
	})
	if raw := m[5].get("raw").str(); raw != "" { // the words of the provider behind a router
		s.text = strings.TrimSpace(s.text + " " + raw)
	}
	if s.code == "" {
		s.code = m[6].get("code").str()
	}
}

// bare tells whether an error has nothing but its words.
func (s *said) bare() bool { return s.status == 0 && s.kind == "" && s.code == "" && s.reason == "" }

// has tells whether a text has any of the words, which are in small letters.
func has(text string, any ...string) bool {
	text = strings.ToLower(text)
	for _, a := range any {
		if strings.Contains(text, a) {
			return true
		}
	}
	return false
}

// classify decides the kind of a failure.
func (s *said) classify(h http.Header) *Failure {
	f := &Failure{Status: s.status, Message: s.text, Type: s.kind, Code: s.code, Elsewhere: true}
	if h.Get("X-Should-Retry") == "false" {
		f.Final = true
	}
	words := s.kind + " " + s.code + " " + s.reason + " " + h.Get("X-Amzn-Errortype")
	long := s.tooLong(words)
	switch {
	case long:
		f.Kind, f.Limit, f.Asked = ContextLength, s.limit, s.asked
		// A limit of a minute is an account's; a model's is everywhere.
		f.Elsewhere = has(s.text, "tokens per min")
	case s.status == http.StatusPaymentRequired, has(words, "insufficient_quota", "billing_error", "billing_hard_limit",
		"exceeded_current_quota", "insufficient_balance"),
		strings.Contains(s.quotas, "PerDay"),
		has(s.text, "credit balance is too low", "run out of credits", "used all available credits", "any credits",
			"insufficient balance"):
		f.Kind = Quota
	case has(words, "model_not_found"): // some say that the key may not use it
		f.Kind, f.Status = BadRequest, http.StatusNotFound
	case s.status == http.StatusUnauthorized, s.status == http.StatusForbidden,
		has(words, "authentication_error", "permission_error", "invalid_api_key", "api_key_invalid", "accessdenied"):
		f.Kind = Auth
	case s.status == http.StatusTooManyRequests, has(words, "rate_limit", "throttling", "too_many_requests"):
		f.Kind = RateLimited
	case s.status == 529, s.status == http.StatusServiceUnavailable,
		has(words, "overloaded", "unavailable", "modelnotready", "slow_down"), has(s.text, "overloaded"):
		f.Kind = Overloaded
	case s.status >= 400 && s.status < 500,
		has(words, "invalid_request", "invalid_prompt", "validation", "not_found", "tool_use_failed", "badrequest"):
		f.Kind = BadRequest
		f.Elsewhere = s.status == http.StatusNotFound || s.status == http.StatusRequestTimeout
	default:
		f.Kind = Server
	}
	if f.Kind == RateLimited || f.Kind == Overloaded || f.Kind == Quota {
		f.RetryAfter = s.wait(h)
	}
	return f
}
