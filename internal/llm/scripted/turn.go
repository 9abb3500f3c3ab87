package scripted

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"yardmaster/internal/lazy"
)

// turn is a request of any API, reduced to the parts that scenarios need.
type turn struct {
	model   string
	stream  bool
	system  string
	tools   []tool
	events  []event
	size    int // bytes of the request
	request [32]byte
}

// event is a prompt, or the result of a tool.
type event struct {
	result bool
	prompt string
}

type tool struct {
	name      string
	namespace string // of the responses API
	freeform  bool   // takes text instead of a JSON object
	schema    schema
}

type schema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

type property struct {
	Type        any    `json:"type"` // a name, or a list of names
	Enum        []any  `json:"enum"`
	Description string `json:"description"`
}

// UnmarshalJSON keeps a schema that is an object, and ignores any other: a schema
// may also be true or false.
func (p *property) UnmarshalJSON(b []byte) error {
	type plain property
	var v plain
	if json.Unmarshal(b, &v) == nil {
		*p = property(v)
	}
	return nil
}

func (p property) is(name string) bool {
	if list, ok := p.Type.([]any); ok {
		return len(list) > 0 && list[0] == name
	}
	text, _ := p.Type.(string)
	return strings.EqualFold(text, name) // Gemini's own schemas write types in capitals
}

// content is a text, or a list of parts, of which some have a text.
type content struct {
	text    string
	results int
}

func (c *content) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &c.text) == nil {
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return fmt.Errorf("content is neither a text nor a list of parts")
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "tool_result" {
			c.results++
		} else if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

type message struct {
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Content content `json:"content"`
}

func (t *turn) add(m message) {
	switch {
	case m.Role == "system" || m.Role == "developer":
		t.system += "\n" + m.Content.text
	case m.Role == "tool" || strings.HasSuffix(m.Type, "_call_output"):
		t.events = append(t.events, event{result: true})
	case m.Role == "user" && m.Content.results > 0:
		// A text beside tool results is a reminder from the agent, not a prompt.
		for range m.Content.results {
			t.events = append(t.events, event{result: true})
		}
	case m.Role == "user":
		t.events = append(t.events, event{prompt: m.Content.text})
	}
}

// head has the members that the APIs of Anthropic and OpenAI share.
type head struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
}

func (h head) turn(size int) *turn { return &turn{model: h.Model, stream: h.Stream, size: size} }

func parseChat(body []byte) (*turn, error) {
	var q struct {
		head
		Messages []message `json:"messages"`
		Tools    []struct {
			Function struct {
				Name       string `json:"name"`
				Parameters schema `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := q.turn(len(body))
	for _, f := range q.Tools {
		t.tools = append(t.tools, tool{name: f.Function.Name, schema: f.Function.Parameters})
	}
	for _, m := range q.Messages {
		t.add(m)
	}
	return t, nil
}

func parseMessages(body []byte) (*turn, error) {
	var q struct {
		head
		System   content   `json:"system"`
		Messages []message `json:"messages"`
		Tools    []struct {
			Name        string `json:"name"`
			InputSchema schema `json:"input_schema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := q.turn(len(body))
	t.system = q.System.text
	for _, f := range q.Tools {
		t.tools = append(t.tools, tool{name: f.Name, schema: f.InputSchema})
	}
	for _, m := range q.Messages {
		t.add(m)
	}
	return t, nil
}

func parseResponses(body []byte) (*turn, error) {
	type offered struct {
		Type       string `json:"type"`
		Name       string `json:"name"`
		Parameters schema `json:"parameters"`
	}
	var q struct {
		head
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []struct {
			offered
			Tools []offered `json:"tools"` // of a namespace
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := q.turn(len(body))
	t.system = q.Instructions
	for _, o := range q.Tools {
		if o.Type != "namespace" {
			t.tools = append(t.tools, tool{name: o.Name, schema: o.Parameters, freeform: o.Type == "custom"})
			continue
		}
		for _, f := range o.Tools {
			t.tools = append(t.tools, tool{name: f.Name, schema: f.Parameters, namespace: o.Name})
		}
	}
	var text string
	if json.Unmarshal(q.Input, &text) == nil {
		t.add(message{Role: "user", Content: content{text: text}})
		return t, nil
	}
	var items []message
	if err := json.Unmarshal(q.Input, &items); err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	for _, m := range items {
		t.add(m)
	}
	return t, nil
}

var workingDirectory = lazy.New("(?i)(?:<cwd>|\\bcwd[\"']?\\s*[:=]\\s*|working directory(?: is)?[:=]?\\s*)[`\"']?(/[^\\s<>`\"',;]*)")

// cwd is the working directory that the agent's prompts name, or /task.
func (t *turn) cwd() string {
	texts := []string{t.system}
	for _, e := range t.events {
		texts = append(texts, e.prompt)
	}
	for i := len(texts) - 1; i >= 0; i-- {
		if all := workingDirectory.FindAllStringSubmatch(texts[i], -1); all != nil {
			return path.Clean(strings.TrimRight(all[len(all)-1][1], "."))
		}
	}
	return "/task"
}
