package llm

import (
	"bytes"
	"strings"
	"time"
)

// Tokens are the token counts of one call, in the same terms for every API. The
// four counts do not overlap.
type Tokens struct {
	InputTokens      int64 // neither read from a cache nor written to one
	OutputTokens     int64
	CacheReadTokens  int64
	CacheWriteTokens int64
}

// Add sums two counts.
func (t Tokens) Add(o Tokens) Tokens {
	return Tokens{
		t.InputTokens + o.InputTokens, t.OutputTokens + o.OutputTokens,
		t.CacheReadTokens + o.CacheReadTokens, t.CacheWriteTokens + o.CacheWriteTokens,
	}
}

// Usage is the record of one billed call.
type Usage struct {
	Tokens
	API        API
	Model      string // the name sent to the provider
	CostMicros *int64 // micro-dollars; nil: the model has no price
	Reserved   int64  // micro-dollars that were reserved for the call
	Duration   time.Duration
	Status     int // of the answer to the caller; 0 when there was none
	Streamed   bool
	Aborted    bool   // the caller did not get the whole answer
	Estimated  bool   // the provider's own count did not arrive
	Fault      string // slug of the upstream's fault, such as provider_auth
}

// Meter reads the token counts from an answer as its bytes pass, in any chunking
// and in constant memory. The answer is a stream of server-sent events, or one JSON
// document. Repeated counts are running totals; the last one counts.
type Meter struct {
	sse    bool
	field  int // bytes of "data:" matched on this line; skipLine: another field
	empty  bool
	events int64
	doc    document
}

const (
	dataField = "data:"
	skipLine  = -1
)

// NewMeter makes a meter for an answer of the given Content-Type.
func NewMeter(contentType string) *Meter {
	return &Meter{sse: strings.HasPrefix(contentType, "text/event-stream"), empty: true}
}

// Streamed tells whether the answer is a stream of events.
func (m *Meter) Streamed() bool { return m.sse }

// Write takes the next bytes of the answer. It never fails.
func (m *Meter) Write(p []byte) (int, error) {
	if !m.sse {
		m.doc.feed(p)
		return len(p), nil
	}
	for rest := p; len(rest) > 0; {
		line, next, ended := bytes.Cut(rest, []byte{'\n'})
		m.line(line)
		if ended {
			m.endLine()
		}
		rest = next
	}
	return len(p), nil
}

// line reads a piece of a line without its end.
func (m *Meter) line(p []byte) {
	for len(p) > 0 && m.field >= 0 && m.field < len(dataField) {
		if p[0] == '\r' && m.field == 0 {
			p = p[1:]
			continue
		}
		m.empty = false
		if p[0] != dataField[m.field] {
			m.field = skipLine
			return
		}
		p = p[1:]
		if m.field++; m.field == len(dataField) {
			m.events++
		}
	}
	if m.field == len(dataField) {
		m.doc.feed(p)
	}
}

// endLine ends a line; an empty line ends the event and its document.
func (m *Meter) endLine() {
	if m.empty {
		m.doc.reset()
	}
	m.field, m.empty = 0, true
}

// Tokens are the counts so far; false when the provider has sent none.
func (m *Meter) Tokens() (Tokens, bool) {
	f := &m.doc.found
	// Gemini counts thinking, and the input from its own tools, separately.
	t := Tokens{f[input] + f[toolInput], f[output] + f[thoughts], f[cacheRead], f[cacheWrite]}
	// The OpenAI forms and Gemini report cached tokens as a part of the input.
	cached := min(f[cachedInput], t.InputTokens)
	t.InputTokens -= cached
	t.CacheReadTokens += cached
	return t, m.doc.any
}

// Estimate replaces a count that never arrived, for example because the caller
// disconnected during a stream: four bytes of a request are about one token, and
// an event carries about one.
func (m *Meter) Estimate(requestBytes int) Tokens {
	return Tokens{InputTokens: int64(requestBytes) / 4, OutputTokens: m.events}
}

// count is a member of a usage object whose number the meter reads.
type count uint8

const (
	none count = iota
	input
	output
	cacheRead
	cacheWrite
	cachedInput
	thoughts
	toolInput
	counts
)

type place uint8

const (
	elsewhere place = iota
	root
	envelope // "message" of a message_start, "response" of a response.completed
	usage
	details
)

func (at place) enter(key string) place {
	switch {
	case (at == root || at == envelope) && key == "usage", at == root && key == "usageMetadata":
		return usage
	case at == root && (key == "message" || key == "response"):
		return envelope
	case at == usage && (key == "prompt_tokens_details" || key == "input_tokens_details"):
		return details
	}
	return elsewhere
}

func (at place) count(key string) count {
	switch {
	case at == usage && (key == "input_tokens" || key == "prompt_tokens" || key == "promptTokenCount"):
		return input
	case at == usage && (key == "output_tokens" || key == "completion_tokens" || key == "candidatesTokenCount"):
		return output
	case at == usage && key == "thoughtsTokenCount":
		return thoughts
	case at == usage && key == "toolUsePromptTokenCount":
		return toolInput
	case at == usage && key == "cache_read_input_tokens":
		return cacheRead
	case at == usage && key == "cache_creation_input_tokens":
		return cacheWrite
	case at == details && key == "cached_tokens", at == usage && key == "cachedContentTokenCount":
		return cachedInput
	}
	return none
}

// document walks one JSON document byte by byte. It follows only the objects that
// can contain a usage object, and counts brackets in all others.
type document struct {
	found [counts]int64
	any   bool

	path    [4]place
	depth   int // open objects in path
	skipped int // open brackets outside path
	wantKey bool

	inString, inKey, escaped bool
	key                      [32]byte
	keyLen                   int // over len(key): the key is too long to matter

	number count // the count being read; none: no number
	value  int64
	whole  bool // value is an integer so far
}

func (d *document) reset() { *d = document{found: d.found, any: d.any} }

func (d *document) feed(p []byte) {
	for i := 0; i < len(p); i++ {
		if d.inString {
			i += d.text(p[i:])
			continue
		}
		d.structure(p[i])
	}
}

// text consumes bytes of a string, and answers how many beyond the first.
func (d *document) text(p []byte) int {
	if d.escaped {
		d.escaped = false
		return 0
	}
	end := bytes.IndexByte(p, '"')
	if end < 0 {
		end = len(p)
	}
	if esc := bytes.IndexByte(p[:end], '\\'); esc >= 0 {
		d.escaped = true
		d.keyLen = len(d.key) + 1 // no key that the meter reads has an escape
		return esc
	}
	if d.inKey {
		if d.keyLen+end <= len(d.key) {
			copy(d.key[d.keyLen:], p[:end])
		}
		d.keyLen += end
	}
	if end == len(p) {
		return end - 1
	}
	d.inString = false
	return end
}

func (d *document) name() string {
	if d.keyLen > len(d.key) {
		return ""
	}
	return string(d.key[:d.keyLen])
}

func (d *document) structure(c byte) {
	if d.number != none {
		if d.digit(c) {
			return
		}
		if d.whole {
			d.found[d.number], d.any = d.value, true
		}
		d.number = none
	}
	switch c {
	case '"':
		d.inString = true
		if d.inKey = d.skipped == 0 && d.depth > 0 && d.wantKey; d.inKey {
			d.keyLen = 0
		}
	case '{':
		next := elsewhere
		if d.skipped == 0 && d.depth < len(d.path) {
			if next = root; d.depth > 0 {
				next = d.path[d.depth-1].enter(d.name())
			}
		}
		if next == elsewhere {
			d.skipped++
			return
		}
		d.path[d.depth] = next
		d.depth++
		d.wantKey = true
	case '[':
		d.skipped++
	case '}', ']':
		if d.skipped > 0 {
			d.skipped--
		} else if d.depth > 0 {
			d.depth--
			d.wantKey = false
		}
	case ':':
		d.wantKey = d.wantKey && d.skipped > 0
	case ',':
		d.wantKey = d.wantKey || d.skipped == 0
	default:
		if (c == '-' || c >= '0' && c <= '9') && d.skipped == 0 && d.depth > 0 && !d.wantKey {
			d.number = d.path[d.depth-1].count(d.name())
			d.value, d.whole = 0, true
			d.digit(c)
		}
	}
}

// maxTokens exceeds every real count, and is small enough for sums of costs. The
// meter ignores a larger count.
const maxTokens = 100_000_000

// digit reads one more byte of a number; false when the number has ended.
func (d *document) digit(c byte) bool {
	switch {
	case c >= '0' && c <= '9':
		if d.value = d.value*10 + int64(c-'0'); d.value > maxTokens {
			d.value, d.whole = 0, false
		}
	case c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-':
		d.whole = false
	default:
		return false
	}
	return true
}
