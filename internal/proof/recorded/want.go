package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Table is a NAME.want.json.
type Table struct {
	About    string   `json:"about"`                // what the case is for, in one sentence
	API      string   `json:"api"`                  // the wire form, one of APIs
	Version  string   `json:"version"`              // of the API, or of the server that speaks so
	Provider string   `json:"provider"`             // who sends it
	Call     Call     `json:"call"`                 // the call that it answers
	Known    string   `json:"known"`                // read, general or made
	Sources  []string `json:"sources"`              // names that README.md explains
	Rule     string   `json:"rule,omitempty"`       // the rule of README.md that decides the case, where another answer could be defended
	Times    int      `json:"text_times,omitempty"` // want.text is this many times over
	Want     Want     `json:"want"`
}

// Call is the call that an answer is for.
type Call struct {
	Path   string `json:"path"`
	Stream bool   `json:"stream"` // events are asked for
}

// Want is what a reader must make of an answer.
type Want struct {
	Thinking     []Thought `json:"thinking,omitempty"`
	Text         string    `json:"text"`
	Refusal      string    `json:"refusal,omitempty"`
	Tools        []Tool    `json:"tools,omitempty"`        // for the caller to run
	ServerTools  []Tool    `json:"server_tools,omitempty"` // the provider has run them
	Stop         string    `json:"stop"`                   // "": the answer has not ended
	StopRaw      string    `json:"stop_raw"`
	Usage        *Usage    `json:"usage"` // null: the provider has told none
	Error        *Failure  `json:"error"`
	AnotherRoute bool      `json:"another_route"` // may the call be made again over another route
}

// Thought is a piece of thinking.
type Thought struct {
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// Tool is a call of a tool.
type Tool struct {
	ID        string `json:"id"` // "": the provider gives none; the reader's user makes one
	Name      string `json:"name"`
	Arguments any    `json:"arguments,omitempty"` // the object
	Text      string `json:"text,omitempty"`      // instead of it, where the text is no JSON object
	Signature string `json:"signature,omitempty"`
}

// Usage is in the same terms for every API. The first five do not overlap;
// Reasoning is a part of Output.
type Usage struct {
	Input        int64  `json:"input"`
	Output       int64  `json:"output"`
	CacheRead    int64  `json:"cache_read"`
	CacheWrite5m int64  `json:"cache_write_5m"`
	CacheWrite1h int64  `json:"cache_write_1h"`
	Reasoning    int64  `json:"reasoning"`
	Cost         string `json:"cost,omitempty"` // US dollars, as the provider reports them; not to be believed where it is zero
}

// Failure is why there is no whole answer.
type Failure struct {
	Kind         string `json:"kind"`
	RetryAfterMS *int64 `json:"retry_after_ms,omitempty"`
	Limit        *int64 `json:"limit,omitempty"`
	Asked        *int64 `json:"asked,omitempty"`
}

// APIs are the wire forms.
func APIs() []string {
	return []string{
		"anthropic.messages", "openai.chat", "openai.responses", "google.generate", "bedrock.converse", "bedrock.invoke", "ollama.chat",
	}
}

// Kinds are the kinds of failures.
func Kinds() []string {
	return []string{
		"rate_limited", "overloaded", "quota", "auth", "context_length", "bad_request", "server", "cut", "not_a_model_answer",
	}
}

// Stops are the reasons for which answers end.
func Stops() []string {
	return []string{
		"", "end", "length", "context", "stop_sequence", "tool", "refusal", "filter", "pause", "bad_tool", "error",
	}
}

func (t *Table) load(at string) error {
	text, err := files.ReadFile(at)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(t); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if err := t.check(); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if t.Times > 0 {
		t.Want.Text = strings.Repeat(t.Want.Text, t.Times)
	}
	return nil
}

// check holds the table against the form.
func (t *Table) check() error {
	w := &t.Want
	for _, one := range []struct {
		what, value string
		of          []string
	}{{"api", t.API, APIs()}, {"known", t.Known, []string{"read", "general", "made"}}, {"stop", w.Stop, Stops()}} {
		if !slices.Contains(one.of, one.value) {
			return fmt.Errorf("%s is %q, which is none of %q", one.what, one.value, one.of)
		}
	}
	if t.About == "" || t.Version == "" || t.Provider == "" || t.Call.Path == "" {
		return fmt.Errorf("about, version, provider and call.path are needed")
	}
	if t.Known == "read" && len(t.Sources) == 0 {
		return fmt.Errorf("a form that was read has a source")
	}
	for _, c := range w.Tools {
		if c.Name == "" || (c.Arguments == nil) == (c.Text == "") {
			return fmt.Errorf("a tool call has a name, and either arguments or text")
		}
	}
	if u := w.Usage; u != nil &&
		(min(u.Input, u.Output, u.CacheRead, u.CacheWrite5m, u.CacheWrite1h, u.Reasoning) < 0 || u.Reasoning > u.Output) {
		return fmt.Errorf("the counts contradict each other")
	}
	f := w.Error
	switch {
	case f == nil && (w.AnotherRoute || w.Stop == ""):
		return fmt.Errorf("an answer without a stop or for another route has an error")
	case f == nil:
	case !slices.Contains(Kinds(), f.Kind):
		return fmt.Errorf("error.kind is %q, which is none of %q", f.Kind, Kinds())
	case f.Kind != "context_length" && (f.Limit != nil || f.Asked != nil):
		return fmt.Errorf("only context_length has a limit")
	case w.AnotherRoute && w.Begun():
		return fmt.Errorf("an answer that has begun cannot go over another route")
	}
	return nil
}

// Begun tells whether the caller may have seen a part of the answer.
func (w *Want) Begun() bool {
	return w.Text != "" || w.Refusal != "" || len(w.Thinking)+len(w.Tools)+len(w.ServerTools) > 0
}

// CutIsRight holds what a reader has made of a cut answer against what it makes of
// the whole; closed says that the end of the transport looked proper. It answers
// what is wrong, "" for nothing.
func CutIsRight(whole, got Want, closed bool) string {
	if whole.Error != nil && strings.HasPrefix(got.Text, whole.Text) {
		return "" // cut twice: a last event without its empty line counts where the body ends properly
	}
	switch {
	case !strings.HasPrefix(whole.Text, got.Text):
		return "the text is no beginning of the whole text"
	case !strings.HasPrefix(whole.Refusal, got.Refusal):
		return "the refusal is no beginning"
	case len(got.Tools) > len(whole.Tools):
		return "there are more tool calls than in the whole"
	case got.Error == nil && got.Stop == "":
		return "an answer that has not ended has no error"
	case got.Error == nil && (got.Text != whole.Text || got.Stop != whole.Stop || len(got.Tools) != len(whole.Tools)):
		return "a cut answer passes for a whole one"
	case got.Error != nil && got.Error.Kind == "not_a_model_answer" && !closed && whole.Error == nil:
		return "a broken connection is called an answer that is none"
	case got.AnotherRoute && got.Begun():
		return "another route after the answer has begun"
	case got.Error != nil && got.Error.Kind == "cut" && !got.AnotherRoute && !got.Begun():
		return "no other route although nothing has come"
	}
	return ""
}
