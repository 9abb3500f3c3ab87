package modelproxy

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"yardmaster/internal/box/gate"
	"yardmaster/internal/llm"
)

// session is a registered run.
type session struct {
	run      Run
	upstream string
	rules    rules
	dialer   *net.Dialer
	plain    *http.Transport // forwards requests that are not tunnelled

	mu        sync.Mutex
	totals    Totals
	permanent int // consecutive failures
	transient int
	fatal     bool
}

func newSession(run Run, upstream string, rules rules) *session {
	dialer := gate.Dialer(rules.covers)
	return &session{
		run: run, upstream: upstream, rules: rules, totals: Totals{Model: run.Model}, dialer: dialer,
		plain: &http.Transport{DialContext: dialer.DialContext, DisableCompression: true},
	}
}

// model returns the model to call when the agent has asked for asked.
func (s *session) model(asked string) string {
	if s.run.Model == "" || slices.Contains(s.run.Models, asked) {
		return asked
	}
	return s.run.Model
}

func (s *session) sum() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

func (s *session) add(t llm.Tokens, model string) {
	s.mu.Lock()
	s.totals.Tokens = s.totals.Tokens.Add(t)
	s.totals.Calls++
	s.totals.Model = model
	now := s.totals
	s.mu.Unlock()
	if s.run.OnUsage != nil {
		s.run.OnUsage(now)
	}
}

func (s *session) succeeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.permanent, s.transient, s.totals.Refused = 0, 0, ""
}

// failed counts an error answer against the run's limits. An answer that says that
// the request is wrong does not count, because the agent can correct the request.
func (s *session) failed(r llm.Refusal, permanent, transient int) {
	status, slug := r.Status, r.Fault
	hopeless := status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusPaymentRequired ||
		slug == llm.SlugModel
	if !hopeless && status != http.StatusTooManyRequests && status < 500 {
		return
	}
	s.mu.Lock()
	s.totals.Failed++
	s.totals.Refused = ""
	if s.transient++; hopeless {
		s.permanent++
		s.totals.Refused = failureKind(status, slug)
	} else {
		s.permanent = 0
	}
	spent := !s.fatal && (s.permanent >= permanent || s.transient >= transient)
	s.fatal = s.fatal || spent
	s.mu.Unlock()
	if spent && s.run.OnFatal != nil {
		detail := "the model gateway answered " + strconv.Itoa(status) + " again and again"
		if r.Kind != "" {
			detail = r.Kind.Words() + ": " + detail
		}
		s.run.OnFatal(failureKind(status, slug), detail)
	}
}

// failureKind returns a task's failure_kind for an answer of the gateway.
func failureKind(status int, slug string) string {
	switch {
	case status == http.StatusUnauthorized: // the attempt's token no longer holds
		return "no_credential"
	case slug != "":
		return strings.ReplaceAll(slug, "-", "_")
	case status == http.StatusTooManyRequests:
		return llm.SlugRateLimit
	case status >= 500:
		return llm.SlugUnavailable
	}
	return llm.SlugAuth
}
