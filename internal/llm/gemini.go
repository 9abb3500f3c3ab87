package llm

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"yardmaster/internal/lazy"
)

// A call of the Gemini API names the model and the action in its address, and
// wraps the cap on the output into generationConfig. Otherwise it resembles the
// other APIs.

const (
	geminiFolder = "/v1beta/models/"
	streamed     = ":streamGenerateContent"
)

// modelName is the form of a model's name in an address: a name of this form
// cannot lead to another path.
var modelName = lazy.New(`^[A-Za-z0-9][A-Za-z0-9._@-]*(/[A-Za-z0-9][A-Za-z0-9._@-]*)*$`)

func geminiEndpoint(path string) (Endpoint, bool) {
	rest, ok := strings.CutPrefix(path, geminiFolder)
	model, action, found := strings.Cut(rest, ":")
	if !ok || !found || !modelName.MatchString(model) {
		return Endpoint{}, false
	}
	e := Endpoint{API: Gemini, Method: http.MethodPost, path: ":" + action, model: model}
	switch e.path {
	case ":generateContent":
	case streamed:
		e.stream = true
	case ":countTokens":
		e.API = GeminiCount
	default:
		return Endpoint{}, false
	}
	return e, true
}

// namesModel tells whether the endpoint's address names the model.
func (e Endpoint) namesModel() bool { return e.model != "" }

// query is the query of the endpoint's address: a stream is requested as events.
// Without it the provider would stream one long array, which clients do not parse
// piece by piece.
func (e Endpoint) query() string {
	if e.stream {
		return "alt=sse"
	}
	return ""
}

// addressOf is the provider's address of an endpoint for a model, whose answer is a stream or not.
func (r Route) addressOf(e Endpoint, model string, stream bool) (*url.URL, error) {
	if a, _ := r.Provider.adapter(); a.locate != nil {
		return a.locate(r, e, model, stream)
	}
	if !e.namesModel() {
		return r.address(e.path)
	}
	if model = strings.TrimPrefix(model, "models/"); !modelName.MatchString(model) {
		return nil, errors.New("the model's name cannot be part of an address")
	}
	u, err := r.address("")
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(u.Path, chatOfGoogle) + "/models/" + model + e.path
	u.RawQuery = e.query()
	return u, nil
}

// geminiMembers are the members of a call that a gateway reads, and configMembers
// those of its generationConfig. Google accepts each in two spellings.
var (
	geminiMembers = []string{"model", "generationConfig", "cachedContent"}
	configMembers = []string{"maxOutputTokens", "candidateCount", "thinkingConfig"}
)

// geminiMember is the member of known that a key means; "" for any other key. It
// fails for a misspelt known key.
func geminiMember(known []string, key string) (string, error) {
	plain := strings.ReplaceAll(key, "_", "")
	for _, name := range known {
		switch {
		case key == name, key == snake(name):
			return name, nil
		case strings.EqualFold(plain, name):
			return "", errTwice(key)
		}
	}
	return "", nil
}

func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// parseGemini reads the members of a Gemini call that a gateway must know.
func parseGemini(e Endpoint, body []byte) (*Request, error) {
	q := &Request{body: body, Choices: 1, Model: e.model, Stream: e.stream, named: true}
	s := cursor{b: body}
	open, err := s.members(geminiMembers, func(name string, value span) error {
		switch name {
		case "model":
			return errors.New("the model is named by the address, not by the body")
		case "cachedContent": // the call does not show its cost
			return errors.New("a prompt that is kept elsewhere is not served")
		}
		if string(body[value.from:value.to]) == "null" {
			q.config = value
			return nil
		}
		in := cursor{b: body[:value.to], at: value.from}
		open, err := in.members(configMembers, q.configured)
		if err != nil {
			return err
		}
		q.config, q.configOpen = value, open
		return nil
	})
	if err != nil {
		return nil, err
	}
	q.open = open
	if s.space(); s.at != len(body) {
		return nil, errBehind
	}
	return q, nil
}

// configured reads a member of a generationConfig.
func (q *Request) configured(name string, value span) (err error) {
	raw := q.body[value.from:value.to]
	switch name {
	case "candidateCount":
		q.Choices, err = amount(raw)
		q.Choices = max(q.Choices, 1)
	case "thinkingConfig":
		err = q.readThoughts(value, "thinkingBudget")
	case "maxOutputTokens":
		q.output, q.outputName = value, name
		q.MaxOutput, err = amount(raw)
	}
	if err != nil {
		return errType(name)
	}
	return nil
}

// members walks an object and calls each with the members that are known. A known
// member may occur once. members answers the offset of the object's first member.
func (s *cursor) members(known []string, each func(name string, value span) error) (open int, err error) {
	if !s.take('{') {
		return 0, errNotObject
	}
	open = s.at
	seen := map[string]bool{}
	for first := true; ; first = false {
		if s.take('}') {
			return open, nil
		}
		if !first && !s.take(',') {
			return 0, errMalformed(s.at)
		}
		key, ok := s.key()
		if !ok {
			return 0, errMalformed(s.at)
		}
		value, ok := s.value()
		if !ok {
			return 0, errMalformed(s.at)
		}
		name, err := geminiMember(known, key)
		if err != nil {
			return 0, err
		}
		if name == "" {
			continue
		}
		if seen[name] {
			return 0, errTwice(key)
		}
		seen[name] = true
		if err := each(name, value); err != nil {
			return 0, err
		}
	}
}

// capGemini is the edit that caps the output of a Gemini call.
func (q *Request) capGemini(n []byte) edit {
	member := append([]byte(`"maxOutputTokens":`), n...)
	switch {
	case q.output.to > 0:
		return edit{q.output, n}
	case q.configOpen > 0:
		return edit{span{q.configOpen, q.configOpen}, q.before(q.configOpen, member)}
	}
	whole := append(append([]byte{'{'}, member...), '}')
	if q.config.to > 0 { // generationConfig is null
		return edit{q.config, whole}
	}
	return edit{span{q.open, q.open}, q.before(q.open, append([]byte(`"generationConfig":`), whole...))}
}

// geminiStatus is the class of an error in the vocabulary of Google's APIs.
func geminiStatus(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusPaymentRequired, http.StatusUnprocessableEntity:
		return "FAILED_PRECONDITION"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "FAILED_PRECONDITION"
}

// geminiRefusal is the body of an error answer in the form of Google's APIs.
func geminiRefusal(r Refusal) map[string]any {
	inner := map[string]any{"code": r.Status, "message": r.Message, "status": geminiStatus(r.Status)}
	if r.Code != "" {
		inner["details"] = []any{map[string]string{
			"@type":  "type.googleapis.com/google.rpc.ErrorInfo",
			"reason": r.Code,
			"domain": "yardmaster",
		}}
	}
	return map[string]any{"error": inner}
}
