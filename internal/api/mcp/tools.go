package mcp

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/openapi"
	"yardmaster/internal/policy"
)

// tool is an op in the list of tools.
type tool struct {
	Name         string      `json:"name"`
	Title        string      `json:"title"`
	Description  string      `json:"description"`
	InputSchema  any         `json:"inputSchema"`
	OutputSchema any         `json:"outputSchema"`
	Annotations  annotations `json:"annotations"`

	rule policy.Rule
}

type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// undoing lists the verbs that delete or end something.
var undoing = []string{"delete", "remove", "revoke", "cancel", "decommission", "clear", "decline", "drop"}

func annotate(o *op.Op) annotations {
	a := annotations{ReadOnly: o.Method == "GET"}
	a.Idempotent = a.ReadOnly || o.Method == "PUT" || o.Method == "DELETE"
	a.Destructive = o.Method == "DELETE"
	_, verb, _ := strings.Cut(o.ID, ".")
	for _, u := range undoing {
		a.Destructive = a.Destructive || !a.ReadOnly && strings.Contains(verb, u)
	}
	return a
}

func (s *Server) describe() {
	for i := range s.ops {
		o := &s.ops[i]
		t := tool{
			Name: o.ID, Title: o.Summary, Description: strings.TrimSpace(o.Summary + ". " + o.Doc),
			Annotations: annotate(o), rule: o.Rule,
		}
		if scope := o.Rule.Names(); len(scope) > 0 {
			t.Description += " Needs " + strings.Join(scope, " and ") + "."
		}
		input, output := Schemas(o)
		wordless(output)
		t.InputSchema, t.OutputSchema = input, output
		s.tools = append(s.tools, t)
	}
}

// Conversation is the argument that names a conversation. No op has an input of
// that name.
const Conversation = "conversation_ref"

// Schemas returns the schemas of a tool's arguments and of its answer.
func Schemas(o *op.Op) (input, output *jsonschema.Schema) {
	input, output = openapi.Of(o)
	longest := 200
	input.Properties[Conversation] = &jsonschema.Schema{Type: "string", MaxLength: &longest,
		Description: fmt.Sprintf("Names the conversation that a write is counted for; %d a minute each.", op.WritesPerConversation)}
	input.PropertyOrder = append(input.PropertyOrder, Conversation)
	return input, output
}

// wordless removes the descriptions from the schema of an answer. They would be two
// fifths of the list, which agents read completely before their first call; the
// description of the API explains the fields.
func wordless(s *jsonschema.Schema) {
	for _, part := range schemas(s) {
		part.Description = ""
		wordless(part)
	}
}

// schemas lists the direct subschemas of a schema.
func schemas(s *jsonschema.Schema) []*jsonschema.Schema {
	parts := slices.Concat(s.AnyOf, s.AllOf, s.OneOf,
		slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.Defs)),
		[]*jsonschema.Schema{s.Items, s.AdditionalProperties, s.Not})
	return slices.DeleteFunc(parts, func(p *jsonschema.Schema) bool { return p == nil })
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
	Structured jsontext.Value `json:"structuredContent"`
	IsError    bool           `json:"isError"`
	Meta       map[string]any `json:"_meta,omitempty"`
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
	r := called{Content: []text{{"text", string(body)}}, Structured: body, IsError: a.Status >= 400}
	if x.call.Header("Mcp-Protocol-Version") == modern {
		r.ResultType = "complete"
	}
	if a.Replayed {
		r.Meta = map[string]any{"yardmaster/idempotent-replayed": true}
	}
	return r, nil
}
