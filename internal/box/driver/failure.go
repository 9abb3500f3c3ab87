package driver

import (
	"errors"
	"fmt"
	"regexp"
	"sync"

	"yardmaster/internal/box/acp"
)

// ErrAgentExited means that the agent's output ended before an answer.
var ErrAgentExited = errors.New("the agent exited before it answered")

// The failure kinds of runs that end because of their agent.
const (
	KindAuth            = "provider_auth"
	KindQuota           = "provider_quota"
	KindRateLimit       = "provider_rate_limit"
	KindUnavailable     = "provider_unavailable"
	KindModel           = "model_unavailable"
	KindContextOverflow = "context_overflow"
	KindCrashed         = "agent_crashed"
	KindError           = "agent_error"
)

// AgentError is an error answer of the agent or, with code 0, an error that it only
// mentioned in its text. Kind is a failure kind.
type AgentError struct {
	Kind    string
	Code    int // of JSON-RPC, or 0
	Message string
}

func (e *AgentError) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Kind, e.Message, e.Code) }

// FailureKind returns the failure kind of an error of Drive; "" for nil.
func FailureKind(err error) string {
	var e *AgentError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, ErrAgentExited):
		return KindCrashed
	}
	return KindError
}

// FailureText returns the text of an error of Drive without its kind.
func FailureText(err error) string {
	var e *AgentError
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// agentFailure turns an error of the connection into one of this package.
func agentFailure(err error) error {
	var e *acp.Error
	switch {
	case errors.As(err, &e):
		text := e.Message
		if len(e.Data) > 0 {
			text += ": " + string(e.Data)
		}
		return &AgentError{Kind: classify(e.Code, text), Code: e.Code, Message: text}
	case errors.Is(err, acp.ErrClosed):
		return fmt.Errorf("%w: %w", ErrAgentExited, err)
	}
	return err
}

// NoRunToken is a part of the model proxy's answer to a call without the run's
// token.
const NoRunToken = "does not carry the token of a run"

// failureWords finds the failure kind in a provider's message, which agents repeat
// in words of their own. The first match counts: providers answer an exhausted
// quota with the status of a rate limit, and an overlong prompt with that of any
// bad request.
var failureWords = sync.OnceValue(func() []saying {
	return []saying{
		{KindError, regexp.MustCompile(regexp.QuoteMeta(NoRunToken))}, // not the provider's refusal of a key
		{KindContextOverflow, regexp.MustCompile(`(?i)context[ _-]?(length|window)|prompt is too long|` +
			`maximum context|too many tokens|input is too long`)},
		{KindQuota, regexp.MustCompile(`(?i)insufficient[ _]quota|quota|billing|credit balance|payment required|usage limit|\b402\b`)},
		{KindRateLimit, regexp.MustCompile(`(?i)\b429\b|rate[ _-]?limit|too many requests`)},
		{KindAuth, regexp.MustCompile(`(?i)\b40[13]\b|unauthori[sz]ed|authenticat|permission_error|` +
			`(invalid|incorrect|missing)[ _]api[ _]?key|forbidden`)},
		{KindModel, regexp.MustCompile(`(?i)model[ _]not[ _]found|(unknown|no such|unsupported|invalid) model|` +
			`model\b.{0,80}\b(does not exist|not found|not supported|unavailable)`)},
		{KindUnavailable, regexp.MustCompile(`(?i)\b5(00|02|03|04|29)\b|overloaded|unavailable|internal server error|bad gateway|` +
			`econn|connection (refused|reset|error)|stream (disconnected|ended)|fetch failed|time[d]?[ -]?out|unreachable|no such host|` +
			`cut its answer short|answer is not one of a model|model provider failed`)},
	}
})

// saying is a kind of failure and the words for it.
type saying struct {
	kind  string
	words *regexp.Regexp
}

func classify(code int, text string) string {
	for _, f := range failureWords() {
		if f.words.MatchString(text) {
			return f.kind
		}
	}
	if code == acp.CodeAuthRequired {
		return KindAuth
	}
	return KindError
}
