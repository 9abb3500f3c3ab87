package sink

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"yardmaster/internal/llm"
	"yardmaster/internal/llm/answer"
)

// Call is the copy of a call as it leaves, without secrets: a line of NDJSON.
type Call struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	AccountID string    `json:"account_id"`
	SessionID string    `json:"session_id"`
	API       string    `json:"api"`
	Provider  string    `json:"provider"`
	Model     string    `json:"model"`
	Streamed  bool      `json:"streamed"`
	Status    int       `json:"status"`
	Duration  int64     `json:"duration_ms"`
	Usage     usage     `json:"usage"`
	Cost      *int64    `json:"cost_micros"`
	Fault     string    `json:"fault,omitempty"`
	Aborted   bool      `json:"aborted"`
	// System, Input and Output are in the form of the semantic conventions.
	System    list      `json:"system_instructions"`
	Input     []message `json:"input_messages"`
	Output    []message `json:"output_messages"`
	InputCut  bool      `json:"input_cut"`
	OutputCut bool      `json:"output_cut"`
}

// usage are the tokens of a call; the four do not overlap.
type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Estimated  bool  `json:"estimated"`
}

var errCut = errors.New("the end of the answer is missing")

// Form is the copy of a call without secrets.
func Form(r *Made, clean Cleaner) Call {
	u := r.Usage
	out := Call{
		ID: r.ID, At: r.At.UTC(), AccountID: r.Account, SessionID: r.Session,
		API: string(r.API), Provider: string(r.Provider), Model: clean.text(r.Model),
		Streamed: u.Streamed, Status: r.Status, Duration: u.Duration.Milliseconds(), Cost: u.CostMicros, Fault: u.Fault, Aborted: u.Aborted,
		Usage: usage{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.Written(), u.Estimated},
		Input: []message{}, InputCut: r.Asked > len(r.Body), OutputCut: r.Cut,
	}
	c := asked(r.API, r.Body)
	out.System, _ = clean.value(c.system, true).(list)
	if out.System == nil {
		out.System = list{}
	}
	for _, m := range c.input {
		m.Role = clean.text(m.Role)
		m.Parts, _ = clean.value(m.Parts, true).(list)
		out.Input = append(out.Input, m)
	}
	out.Output = r.answered(clean)
	return out
}

// answered reads the answer. The pieces of a stream are put together first, since a secret may
// be spread over several.
func (r *Made) answered(clean Cleaner) []message {
	if r.Status/100 != 2 {
		return []message{}
	}
	whole := !r.Cut && !r.Usage.Aborted
	var broken error
	if !whole {
		broken = errCut
	}
	reader := answer.New(answer.Options{
		API: answer.API(r.API), Status: r.Status, Header: http.Header{"Content-Type": {r.Type}}, Keep: true,
	})
	reader.Write(r.Answer)
	reader.End(broken)
	got := reader.Answer()
	m := message{Role: "assistant", Parts: list{}, Finish: finish(got.Stop)}
	for _, t := range got.Thinking {
		if t.Text != "" {
			m.Parts = append(m.Parts, object{"type": "reasoning", "content": t.Text})
		}
	}
	for _, text := range []string{got.Text, got.Refusal} {
		if text != "" {
			m.Parts = append(m.Parts, object{"type": "text", "content": text})
		}
	}
	for _, t := range append(got.Served, got.Tools...) {
		m.Parts = append(m.Parts, toolCall(t.ID, t.Name, string(t.Arguments)))
	}
	if len(m.Parts) == 0 {
		return []message{}
	}
	m.Parts, _ = clean.value(m.Parts, whole).(list)
	return []message{m}
}

// finish is why an answer has ended, as the semantic conventions name it, where they do.
func finish(s answer.Stop) string {
	switch s {
	case answer.End, answer.StopSequence:
		return "stop"
	case answer.Length, answer.Context:
		return "length"
	case answer.ToolUse:
		return "tool_call"
	case answer.Refused, answer.Filtered:
		return "content_filter"
	case answer.Broken, answer.BadTool:
		return "error"
	}
	return string(s)
}

// lines are calls as NDJSON.
func lines(calls []Call) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	for i := range calls {
		if err := e.Encode(&calls[i]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// isGemini tells whether an API is that of Gemini, whose operation has a name of its own.
func isGemini(api string) bool { return api == string(llm.Gemini) }
