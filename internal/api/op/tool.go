package op

import (
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Conversation is the argument that names a conversation. It is no input of
// any op.
const Conversation = "conversation_ref"

// IsTool tells whether the op can be called with JSON and answers it: it is
// part of the API, behind the guard, and no stream.
func (o *Op) IsTool() bool {
	return strings.HasPrefix(o.Path, "/v1/") && !o.Rule.IsPublic() && !o.Inside && !o.raw && o.stream == nil && o.Status < 400 && o.output != replyType && o.output != assetType
}

// Schemas describes what Call takes and answers: the inputs of path, query and
// body in one flat object, and the answer or a problem.
func (o *Op) Schemas() (input, output *jsonschema.Schema) {
	d := newSchemas("#/$defs/")
	flat := &shape{}
	for _, f := range o.in.fields {
		if f.where != inHeader {
			flat.fields = append(flat.fields, f)
		}
	}
	input = d.object(flat)
	input.Required = nil
	for i := range flat.fields {
		f := &flat.fields[i]
		if f.required {
			input.Required = append(input.Required, f.name)
		}
		if f.Tag.Get("paging") != "" {
			d.publishPaging(o.Paging, f, input.Properties[f.name])
		}
	}
	longest := 200
	input.Properties[Conversation] = &jsonschema.Schema{Type: "string", MaxLength: &longest, Description: "Names the conversation that a write is counted for; 120 a minute each."}
	input.PropertyOrder = append(input.PropertyOrder, Conversation)
	input.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	input.Defs = d.named

	d = newSchemas("#/$defs/")
	output = &jsonschema.Schema{Type: "object", AnyOf: []*jsonschema.Schema{d.of(o.output), d.of(reflect.TypeFor[Problem]())}}
	output.Defs = d.named
	return input, output
}

var replyType = reflect.TypeFor[Reply]()
