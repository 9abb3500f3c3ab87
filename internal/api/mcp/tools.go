package mcp

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/openapi"
	"yardmaster/internal/policy"
)

// tool is an op in the list of tools. Agents read the whole list before their first call,
// so a tool has no title, which its description begins with, and no schema of its answer,
// which would be two thirds of the list; the description of the API has it.
type tool struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	InputSchema any         `json:"inputSchema"`
	Annotations annotations `json:"annotations"`

	rule policy.Rule
}

// annotations are hints for clients. What the protocol takes for granted is left out:
// that a tool is no reader, destroys, and is not idempotent. The last two say nothing of
// a reader.
type annotations struct {
	ReadOnly    bool  `json:"readOnlyHint,omitzero"`
	Destructive *bool `json:"destructiveHint,omitzero"`
	Idempotent  bool  `json:"idempotentHint,omitzero"`
	OpenWorld   bool  `json:"openWorldHint"`
}

// undoing lists the verbs that delete or end something.
var undoing = []string{"delete", "remove", "revoke", "cancel", "decommission", "clear", "decline", "drop"}

func annotate(o *op.Op) annotations {
	if o.Method == "GET" {
		return annotations{ReadOnly: true}
	}
	_, verb, _ := strings.Cut(o.ID, ".")
	a := annotations{Idempotent: o.Method == "PUT" || o.Method == "DELETE"}
	undoes := func(u string) bool { return strings.Contains(verb, u) }
	if destroys := false; o.Method != "DELETE" && !slices.ContainsFunc(undoing, undoes) {
		a.Destructive = &destroys
	}
	return a
}

// longestDescription is what a tool's description may have, in bytes, before what it needs; its first
// sentence stays whole.
const longestDescription = 150

// brief is the summary of a row and as many of the first sentences of what it says besides as there
// is room for: the list is read whole, and the description of the API has the rest.
func brief(summary, doc string) string {
	text := summary + "."
	for doc != "" {
		sentence, rest, more := strings.Cut(doc, ". ")
		if more {
			sentence += "."
		}
		if len(text)+1+len(sentence) > longestDescription {
			break
		}
		text, doc = text+" "+sentence, rest
	}
	return text
}

func (s *Server) describe() {
	for i := range s.ops {
		o := &s.ops[i]
		t := tool{
			Name: o.ID, Description: brief(o.Summary, o.Doc),
			Annotations: annotate(o), rule: o.Rule,
		}
		if scope := o.Rule.Names(); len(scope) > 0 {
			t.Description += " Needs " + strings.Join(scope, " and ") + "."
		}
		input, _ := Schemas(o)
		unbounded(input)
		t.InputSchema = input
		s.tools = append(s.tools, t)
	}
}

// unbounded takes lengths, formats and patterns out of a schema: they are a tenth of the list, a call
// that is out of bounds is told its field, and the description of the API has them.
func unbounded(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.Format, s.Pattern, s.MinLength, s.MaxLength, s.MinItems, s.MaxItems, s.MaxProperties = "", "", nil, nil, nil, nil, nil
	unbounded(s.Items)
	unbounded(s.AdditionalProperties)
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.AllOf, s.OneOf} {
		for _, part := range list {
			unbounded(part)
		}
	}
	for _, named := range []map[string]*jsonschema.Schema{s.Properties, s.Defs} {
		for _, part := range named {
			unbounded(part)
		}
	}
}

// Conversation is the argument of writes that names a conversation; others take it, and
// do nothing with it. No op has an input of
// that name.
const Conversation = "conversation_ref"

// Schemas returns the schemas of a tool's arguments and of its answer.
func Schemas(o *op.Op) (input, output *jsonschema.Schema) {
	input, output = openapi.Of(o)
	for _, name := range []string{"cursor", "per_page"} { // the name says it, sixty times
		if of := input.Properties[name]; of != nil {
			plain := *of
			plain.Description = ""
			input.Properties[name] = &plain
		}
	}
	if !o.Changes() {
		return input, output
	}
	longest := 200
	input.Properties[Conversation] = &jsonschema.Schema{Type: "string", MaxLength: &longest}
	input.PropertyOrder = append(input.PropertyOrder, Conversation)
	return input, output
}

// maxLists limits the cached lists; few scope sets are in use.
const maxLists = 256

// list returns the encoded tools that scopes allow.
func (s *Server) list(scopes policy.Set) (jsontext.Value, error) {
	s.once.Do(s.describe)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.lists[scopes]; b != nil {
		return b, nil
	}
	seen := []tool{}
	for _, t := range s.tools {
		need, _ := policy.ParseScopes(t.rule.Names())
		if scopes.Has(need) {
			seen = append(seen, t)
		}
	}
	b, err := json.Marshal(seen, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	if len(s.lists) >= maxLists {
		clear(s.lists)
	}
	s.lists[scopes] = b
	return b, nil
}

type called struct {
	ResultType string         `json:"resultType,omitempty"`
	Content    []text         `json:"content"`
	Structured jsontext.Value `json:"structuredContent,omitempty"`
	IsError    bool           `json:"isError"`
	Meta       map[string]any `json:"_meta,omitempty"`

	encoded bool // Structured is JSON that this program has encoded
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// tool runs a tool. A refusal of the tool is a result, not an error of the
// protocol.
func (x *exchange) tool(ctx context.Context, f *frame) (any, *rpcError) {
	o := x.names[f.Params.Name]
	if o == nil {
		return nil, failure(200, invalidParams, "There is no tool of that name.")
	}
	var conversation string
	if v, ok := f.Params.Arguments[Conversation]; ok {
		if json.Unmarshal(v, &conversation) != nil || len(conversation) > 200 {
			return nil, failure(200, invalidParams, Conversation+" must be a string of at most 200 bytes.")
		}
		delete(f.Params.Arguments, Conversation)
	}
	if f.Params.Arguments == nil {
		f.Params.Arguments = map[string]jsontext.Value{}
	}
	a := x.p.Serve(ctx, x.who, &op.Call{
		Op: o, Request: x.call.Request, Presented: x.call.Presented, Keys: x.call.Keys,
		Arguments: f.Params.Arguments, Changes: o.Changes(), Conversation: conversation,
	})
	x.ran = &a
	body := bytes.TrimSpace(a.Body)
	r := called{Content: []text{{"text", string(body)}}, Structured: body, IsError: a.Status >= 400, encoded: a.Encoded()}
	if !r.encoded && !r.Structured.IsValid() { // it is a text
		r.Structured = nil
	}
	if x.call.Header("Mcp-Protocol-Version") == modern {
		r.ResultType = "complete"
	}
	if a.Replayed {
		r.Meta = map[string]any{"yardmaster/idempotent-replayed": true}
	}
	return r, nil
}
