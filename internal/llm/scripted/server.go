package scripted

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request, in bytes.
const maxBody = 64 << 20

// Server answers model calls from scenarios. It checks no credential.
type Server struct {
	scenarios *Scenarios

	mu     sync.Mutex
	failed map[[32]byte]int // how often a request was refused; deleted when it is let through
}

// New makes a server of scenarios.
func New(s *Scenarios) *Server {
	return &Server{scenarios: s, failed: map[[32]byte]int{}}
}

type object = map[string]any

// created is the time in every answer that needs one: answers do not depend on the
// clock.
const created = 1_700_000_000

// ServeHTTP answers as the API of a model provider does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		s.listModels(w)
		return
	}
	parse, write := parseMessages, writeMessages
	counts := false
	switch r.URL.Path {
	case "/v1/messages":
	case "/v1/messages/count_tokens":
		counts = true
	case "/v1/chat/completions":
		parse, write = parseChat, writeChat
	case "/v1/responses":
		parse, write = parseResponses, writeResponses
	default:
		if parse, counts = gemini(r.URL.Path, r.URL.Query().Get("alt")); parse == nil {
			refuse(w, http.StatusNotFound, "there is no such address")
			return
		}
		write = writeGemini
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "use POST")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body cannot be read")
		return
	}
	t, err := parse(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body is not a request of this API: "+err.Error())
		return
	}
	if counts {
		document(w, object{"input_tokens": len(body) / 4, "totalTokens": len(body) / 4}) // under the names of both APIs
		return
	}
	t.request = sha256.Sum256(body)
	name, st := s.scenarios.choose(t)
	if st.DelayMS > 0 && !wait(r, st.DelayMS) {
		return
	}
	if st.Fail != nil && s.fails(name, t, *st.Fail) {
		if st.Fail.RetryAfterS > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(st.Fail.RetryAfterS))
		}
		refuse(w, st.Fail.Status, "scripted failure")
		return
	}
	a := &answer{turn: t, text: st.Text, slow: st.SlowMS}
	if a.call, err = t.plan(st); err != nil {
		a.text = err.Error()
	}
	a.count(st.Usage)
	write(&stream{w: w, r: r}, a)
}

// fails counts a request against the failures that its step demands. A retry is
// the same request again; once it is let through, its count starts at zero.
func (s *Server) fails(name string, t *turn, f failStep) bool {
	if f.Times == 0 {
		return true
	}
	key := sha256.Sum256(append([]byte(name+"\x00"), t.request[:]...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed[key] < f.Times {
		if len(s.failed) >= 10_000 {
			clear(s.failed) // the rest are calls that their callers have abandoned
		}
		s.failed[key]++
		return true
	}
	delete(s.failed, key)
	return false
}

func (s *Server) listModels(w http.ResponseWriter) {
	data := []object{}
	for _, m := range s.scenarios.models() {
		data = append(data, object{"id": m, "type": "model", "object": "model", "display_name": m, "owned_by": "scripted",
			"created": created, "created_at": time.Unix(created, 0).UTC().Format(time.RFC3339)})
	}
	document(w, object{"object": "list", "data": data, "has_more": false})
}

// refuse writes an error that clients of every API can read.
func refuse(w http.ResponseWriter, status int, message string) {
	class := map[int]string{
		401: "authentication_error",
		403: "permission_error",
		404: "not_found_error",
		429: "rate_limit_error",
		529: "overloaded_error",
	}[status]
	if class == "" {
		if class = "invalid_request_error"; status >= 500 {
			class = "api_error"
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"type": "error", "error": object{"type": class, "code": class, "message": message}})
}

func document(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails if the caller has disconnected
}

// wait waits for ms milliseconds; it answers false when the caller disconnects.
func wait(r *http.Request, ms int) bool {
	if ms <= 0 {
		return r.Context().Err() == nil
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// answer is the content of a response, for any API.
type answer struct {
	*turn
	text  string
	slow  int
	call  *call
	usage usageStep
}

func (a *answer) count(told *usageStep) {
	if told != nil {
		a.usage = *told
		return
	}
	a.usage = usageStep{Input: a.size / 4, Output: 20 + len(a.text)/4}
	if a.call != nil {
		a.usage.Output += (len(a.call.text) + len(a.call.arguments())) / 4
	}
}

// id is an id in the answer: prefix and a hash of the request.
func (a *answer) id(prefix string) string { return prefix + hex.EncodeToString(a.request[:12]) }

// pieces is the text as it is streamed: whole, or word by word for a slow step.
func (a *answer) pieces() []string {
	switch {
	case a.text == "":
		return nil
	case a.slow == 0:
		return []string{a.text}
	}
	return strings.SplitAfter(a.text, " ")
}

func (c *call) arguments() string { return encode(c.args) }

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	return string(b)
}

// stream writes server-sent events.
type stream struct {
	w     http.ResponseWriter
	r     *http.Request
	begun bool
}

func (s *stream) raw(text string) {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-cache")
	}
	io.WriteString(s.w, text)
	http.NewResponseController(s.w).Flush()
}

func (s *stream) data(v any) { s.raw("data: " + encode(v) + "\n\n") }

func (s *stream) event(name string, v object) {
	v["type"] = name
	s.raw("event: " + name + "\ndata: " + encode(v) + "\n\n")
}
