package openapi

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/op"
)

// Of returns the schemas of one op: the inputs of path, query and body in one flat
// object, and the answer or a problem.
func Of(o *op.Op) (input, output *jsonschema.Schema) {
	d := newSchemas("#/$defs/", &About{})
	d.flat = true
	flat := &op.Shape{}
	for _, f := range o.Shape().Fields {
		if f.Where != op.InHeader {
			flat.Fields = append(flat.Fields, f)
		}
	}
	input = d.object(flat)
	input.Required = nil
	for i := range flat.Fields {
		f := &flat.Fields[i]
		if f.Required {
			input.Required = append(input.Required, f.Name)
		}
		if f.Tag.Get("paging") != "" {
			d.publishPaging(o.Paging, f, input.Properties[f.Name])
		}
	}
	input.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	input.Defs = d.named

	d = newSchemas("#/$defs/", &About{})
	d.flat = true
	output = &jsonschema.Schema{
		Type: "object", AnyOf: []*jsonschema.Schema{d.of(o.Output()), d.of(reflect.TypeFor[op.Problem]())},
	}
	output.Defs = d.named
	return input, output
}
