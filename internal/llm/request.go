package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/fault"
)

// MaxBody is the default limit of a request's body, in bytes.
const MaxBody = 32 << 20

// Request is the body of a call, of which the gateway reads only the members that
// it needs. It passes the rest on unchanged; the provider validates it.
type Request struct {
	Model  string
	Stream bool
	// MaxOutput is the caller's cap on output tokens; 0 without one.
	MaxOutput int64
	// Choices is the number of answers asked for, at least 1.
	Choices int64
	// Tier is the one that the caller asks for, in the provider's words; empty: none.
	Tier string

	body           []byte
	open           int // offset after the opening brace
	model, options span
	output         span // of the cap
	outputName     string
	thoughts       span // of the number of tokens that thinking may have of the cap
	thoughtTokens  int64
	refers         bool     // to input that a provider has kept
	models         bool     // others are named, for the provider to fall back on
	betas          []string // of the header Anthropic-Beta
	seen           *beside  // once it was looked for

	named      bool // the address names the model, and the cap is in config
	config     span
	configOpen int // offset after its opening brace; 0: config is absent or null
}

type span struct{ from, to int }

// readMembers are the members of a call that a gateway reads, among them the cap on
// the output under the names of the three APIs.
var readMembers = []string{
	"model", "stream", "stream_options", "thinking", "n",
	"max_tokens", "max_completion_tokens", "max_output_tokens",
	"service_tier", "background", "previous_response_id", "conversation", "prompt", "models",
}

// amount reads a count of tokens or answers; null is 0.
func amount(raw []byte) (int64, error) {
	if string(raw) == "null" {
		return 0, nil
	}
	var n int64
	if err := json.Unmarshal(raw, &n); err != nil || n < 0 || n > 1<<31 {
		return 0, errors.New("not a count")
	}
	return n, nil
}

var (
	errNotObject = errors.New("the body is not a JSON object")
	errBehind    = errors.New("there is something behind the JSON object")
)

func errMalformed(at int) error { return fmt.Errorf("malformed JSON at byte %d", at) }
func errTwice(key string) error { return fmt.Errorf("%q is there twice, or misspelt", key) }
func errType(name string) error { return fmt.Errorf("%s has the wrong type", name) }

// readRequest reads and parses the body of a call to an endpoint, of at most limit
// bytes, and counts its bytes in admission. It fails with a fault: UnsupportedMedia,
// TooLarge, RateLimited or Invalid.
func readRequest(w http.ResponseWriter, r *http.Request, at Endpoint, limit int64, admission *Admission) (*Request, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, fault.New(fault.UnsupportedMedia, "", "The body must not be compressed.")
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	in := io.Reader(http.MaxBytesReader(w, r.Body, limit))
	if r.ContentLength < 0 {
		in = countedReader{in, admission}
	} else if err := admission.addBytes(r.ContentLength); err != nil {
		return nil, err
	}
	body := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	if _, err := body.ReadFrom(in); err != nil {
		if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
			return nil, tooLarge(limit)
		}
		if fault.IsKind(err, fault.RateLimited) {
			return nil, err
		}
		return nil, fault.New(fault.Invalid, "", "The body ended early.").Because(err)
	}
	var q *Request
	var err error
	if at.namesModel() {
		q, err = parseGemini(at, body.Bytes())
	} else {
		q, err = ParseRequest(body.Bytes())
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "", "Bad request: "+err.Error()+".")
	}
	q.betas = r.Header.Values("Anthropic-Beta")
	return q, nil
}

func tooLarge(limit int64) error {
	return fault.Newf(fault.TooLarge, "", "The body is larger than %d bytes.", limit)
}

// ParseRequest reads the members of a JSON object that a gateway must know. It
// refuses a body with a member twice: two parsers could read two different calls
// from such a body.
func ParseRequest(body []byte) (*Request, error) {
	q := &Request{body: body, Choices: 1}
	s := cursor{b: body}
	if !s.take('{') {
		return nil, errNotObject
	}
	q.open = s.at
	var seen []string
	for first := true; ; first = false {
		if s.take('}') {
			break
		}
		if !first && !s.take(',') {
			return nil, errMalformed(s.at)
		}
		key, ok := s.key()
		if !ok {
			return nil, errMalformed(s.at)
		}
		value, ok := s.value()
		if !ok {
			return nil, errMalformed(s.at)
		}
		known := slices.IndexFunc(readMembers, func(m string) bool { return strings.EqualFold(m, key) })
		if known < 0 {
			continue
		}
		name := readMembers[known]
		if slices.Contains(seen, name) || name != key {
			return nil, errTwice(key)
		}
		seen = append(seen, name)
		raw := body[value.from:value.to]
		var err error
		switch name {
		case "model":
			q.model, err = value, json.Unmarshal(raw, &q.Model)
		case "stream":
			err = json.Unmarshal(raw, &q.Stream)
		case "stream_options":
			q.options = value
		case "thinking":
			err = q.readThoughts(value, "budgetTokens")
		case "service_tier":
			if string(raw) != "null" {
				err = json.Unmarshal(raw, &q.Tier)
			}
		case "background":
			if string(raw) != "null" && string(raw) != "false" {
				return nil, errors.New("a call in the background is not served: its answer does not show its cost")
			}
		case "previous_response_id", "conversation", "prompt":
			q.refers = q.refers || string(raw) != "null"
		case "models":
			q.models = string(raw) != "null"
		case "n":
			q.Choices, err = amount(raw)
			q.Choices = max(q.Choices, 1)
		default: // a cap on the output, under one of its names
			if string(raw) == "null" {
				continue
			}
			if q.output.to > 0 {
				return nil, errors.New("the output is capped twice")
			}
			q.output, q.outputName = value, name
			q.MaxOutput, err = amount(raw)
		}
		if err != nil {
			return nil, errType(name)
		}
	}
	if s.space(); s.at != len(body) {
		return nil, errBehind
	}
	return q, nil
}

// readThoughts reads how many tokens of the output thinking may have: a member of an object of
// the body, in either spelling. What is no object is left to the provider.
func (q *Request) readThoughts(object span, member string) error {
	if q.body[object.from] != '{' {
		return nil
	}
	s := cursor{b: q.body[:object.to], at: object.from}
	_, err := s.members([]string{member}, func(_ string, value span) (err error) {
		raw := q.body[value.from:value.to]
		if string(raw) == "null" || raw[0] == '-' { // as many as the model likes
			return nil
		}
		q.thoughts = value
		q.thoughtTokens, err = amount(raw)
		return err
	})
	return err
}

// Bytes is the size of the caller's body.
func (q *Request) Bytes() int { return len(q.body) }

// Edits are the changes that a gateway makes to a call's body.
type Edits struct {
	Model     string // another model, unless empty
	CountChat bool   // ask for a count at the end of a stream of chat completions
	MaxOutput int64  // lower cap on the output, in tokens, unless 0
	API       API    // decides the name of a cap that the body lacks
}

type edit struct {
	span
	text []byte
}

// Body is the body to send on. Unchanged parts are copied, not encoded again.
func (q *Request) Body(e Edits) []byte {
	var edits []edit
	if e.Model != "" && e.Model != q.Model && !q.named {
		encoded, _ := json.Marshal(e.Model) // a string always encodes
		if q.model.to == 0 {
			edits = append(edits, edit{span{q.open, q.open}, q.member("model", encoded)})
		} else {
			edits = append(edits, edit{q.model, encoded})
		}
	}
	if e.CountChat && q.Stream {
		if q.options.to == 0 {
			edits = append(edits, edit{span{q.open, q.open}, q.member("stream_options", []byte(`{"include_usage":true}`))})
		} else if text, ok := withUsage(q.body[q.options.from:q.options.to]); ok {
			edits = append(edits, edit{q.options, text})
		}
	}
	if e.MaxOutput > 0 {
		n := strconv.AppendInt(nil, e.MaxOutput, 10)
		if q.named {
			edits = append(edits, q.capGemini(n))
		} else if q.output.to == 0 {
			edits = append(edits, edit{span{q.open, q.open}, q.member(e.API.capName(), n)})
		} else {
			edits = append(edits, edit{q.output, n})
		}
		if most := max(e.MaxOutput-leastOutput, 1); q.thoughts.to > 0 && q.thoughtTokens > most {
			edits = append(edits, edit{q.thoughts, strconv.AppendInt(nil, most, 10)})
		}
	}
	if len(edits) == 0 {
		return q.body
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	out := make([]byte, 0, len(q.body)+128)
	at := 0
	for _, e := range edits {
		out = append(append(out, q.body[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, q.body[at:]...)
}

// member is the text of a new first member of the body, with a comma if one is
// needed.
func (q *Request) member(name string, value []byte) []byte {
	return q.before(q.open, append([]byte(`"`+name+`":`), value...))
}

// before is the text of a member at the beginning of an object, with a comma if
// one is needed.
func (q *Request) before(open int, text []byte) []byte {
	if rest := bytes.TrimLeft(q.body[open:], " \t\r\n"); len(rest) > 0 && rest[0] != '}' {
		text = append(text, ',')
	}
	return text
}

// withUsage sets include_usage in a stream_options value. It answers false when
// include_usage is set already, and when the value is not an object, which the
// provider refuses.
func withUsage(raw []byte) ([]byte, bool) {
	if string(raw) == "null" {
		return []byte(`{"include_usage":true}`), true
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil || string(o["include_usage"]) == "true" {
		return nil, false
	}
	o["include_usage"] = json.RawMessage("true")
	text, err := json.Marshal(o)
	return text, err == nil
}

// cursor walks JSON text at the speed of a byte search: it distinguishes strings
// and brackets only.
type cursor struct {
	b  []byte
	at int
}

func (s *cursor) space() {
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

func (s *cursor) take(c byte) bool {
	s.space()
	if s.at >= len(s.b) || s.b[s.at] != c {
		return false
	}
	s.at++
	return true
}

// str skips a string whose opening quote has been skipped.
func (s *cursor) str() bool {
	for {
		i := bytes.IndexByte(s.b[s.at:], '"')
		if i < 0 {
			return false
		}
		end := s.at + i
		slashes := 0
		for k := end - 1; k >= s.at && s.b[k] == '\\'; k-- {
			slashes++
		}
		s.at = end + 1
		if slashes%2 == 0 {
			return true
		}
	}
}

// key reads a member's name and skips its colon.
func (s *cursor) key() (string, bool) {
	s.space()
	from := s.at
	if !s.take('"') || !s.str() {
		return "", false
	}
	raw := s.b[from:s.at]
	if !s.take(':') {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var key string
	return key, json.Unmarshal(raw, &key) == nil
}

func (s *cursor) value() (span, bool) {
	s.space()
	from, depth := s.at, 0
	for s.at < len(s.b) {
		c := s.b[s.at]
		switch c {
		case '"':
			s.at++
			if !s.str() {
				return span{}, false
			}
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth == 0 {
				return span{from, s.at}, s.at > from
			}
			depth--
			s.at++
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return span{from, s.at}, s.at > from
			}
			s.at++
			continue
		default:
			s.at++
			continue
		}
		if depth == 0 {
			return span{from, s.at}, true
		}
	}
	return span{}, false
}
