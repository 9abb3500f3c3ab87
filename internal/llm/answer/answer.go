// Package answer reads the answers of model providers, for everyone in the program
// who gets one: the gateway and the box's proxy count them, the built-in agent and
// the platform's own calls read them. It knows four wire forms, as events and as one
// document, with an error status or without, in any chunking.
//
//   - answer.go: what an answer comes to
//   - reader.go: the Reader
//   - events.go, value.go: server-sent events, JSON
//   - messages.go, chat.go, responses.go, gemini.go: the wire forms
//   - usage.go: counts
//   - failure.go, length.go, wait.go: what an error says
//
// How each form is read in doubt is said in internal/proof/recorded, whose cases are
// its tests.
package answer

import (
	"encoding/json"
	"net/http"
	"time"
)

// API is a wire form.
type API string

// The wire forms.
const (
	Messages  API = "messages"
	Chat      API = "chat"
	Responses API = "responses"
	Gemini    API = "gemini"
)

// Answer is what an answer comes to, in the same terms for every API.
type Answer struct {
	Text     string
	Refusal  string // the model's words, where the API tells them from text
	Thinking []Thought
	Tools    []Tool // for the caller to run
	Served   []Tool // the provider has run them
	Stop     Stop   // None: the answer has not ended
	Reason   string // the provider's word for Stop
	Usage    *Usage // nil: the provider has told none
	Failure  *Failure
}

// Thought is a piece of thinking. Signature and Redacted must go back unchanged.
type Thought struct{ Text, Signature, Redacted string }

// Tool is a call of a tool.
type Tool struct {
	ID        string // "": the provider gives none
	Name      string
	Arguments json.RawMessage // the model's text, {} for none; not always a JSON object
	Signature string
}

// Stop is why an answer has ended.
type Stop string

// The reasons. Length is the cap on the output, Context the model's window.
const (
	None         Stop = ""
	End          Stop = "end"
	Length       Stop = "length"
	Context      Stop = "context"
	StopSequence Stop = "stop_sequence"
	ToolUse      Stop = "tool"
	Refused      Stop = "refusal"
	Filtered     Stop = "filter"
	Paused       Stop = "pause"
	BadTool      Stop = "bad_tool" // the model has made a call that is none
	Broken       Stop = "error"
)

// Usage is the count of an answer, in tokens. The first five do not overlap;
// Reasoning is a part of Output.
type Usage struct {
	Input        int64 // neither read from a cache nor written to one
	Output       int64
	CacheRead    int64
	CacheWrite   int64 // kept for five minutes, or for a time that is not told
	CacheWrite1h int64 // kept for an hour
	Reasoning    int64
	Cost         string // US dollars, as the provider claims; "": it claims none
}

// Kind is the kind of a Failure.
type Kind string

// The kinds. Cut is an answer that ended before its end, NotAnswer one that is none
// of a model.
const (
	RateLimited   Kind = "rate_limited"
	Overloaded    Kind = "overloaded"
	Quota         Kind = "quota"
	Auth          Kind = "auth"
	ContextLength Kind = "context_length"
	BadRequest    Kind = "bad_request"
	Server        Kind = "server"
	Cut           Kind = "cut"
	NotAnswer     Kind = "not_a_model_answer"
)

// Failure is why there is no whole answer. It is an error whose text names the kind
// in words.
type Failure struct {
	Kind       Kind
	Status     int    // of the answer, or the number in its body; 0: neither is an error's
	Message    string // the provider's words; "": none
	Type, Code string // the provider's
	RetryAfter *time.Duration
	// Limit and Asked are tokens of a ContextLength: what the model takes, and what
	// the call had. 0: not told.
	Limit, Asked int64
	// Elsewhere tells that the same call may succeed over another route: the failure
	// is the route's, not the call's, and nothing of the answer had come.
	Elsewhere bool
	// Final tells that nothing says that the failure may pass: an error without a
	// status, type and code in the place of an answer.
	Final bool
}

// MayPass tells whether the same call may succeed later, over the same route.
func (f *Failure) MayPass() bool {
	switch f.Kind {
	case Quota, Auth, ContextLength:
		return false
	case BadRequest:
		return f.Status == http.StatusRequestTimeout
	}
	return !f.Final
}

// Words say what the kind means, as the beginning of a sentence.
func (k Kind) Words() string {
	switch k {
	case RateLimited:
		return "the model provider's rate limit holds"
	case Overloaded:
		return "the model provider is overloaded"
	case Quota:
		return "the model provider's quota is spent"
	case Auth:
		return "the model provider refused the credential"
	case ContextLength:
		return "the prompt is longer than the model's context length"
	case BadRequest:
		return "the model provider refused the request"
	case Cut:
		return "the model provider cut its answer short"
	case NotAnswer:
		return "the model provider's answer is not one of a model"
	}
	return "the model provider failed"
}

func (f *Failure) Error() string {
	text := f.Kind.Words()
	if f.Message != "" {
		text += ": " + f.Message
	}
	return text
}
