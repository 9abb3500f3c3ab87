package openapi

import (
	"go/token"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/op"
)

// Hooks are the requests that the server makes to addresses of its clients.
type Hooks struct {
	// Body is the type of what is sent. Its member type names the event, and its member
	// data has what the event carries.
	Body    reflect.Type
	Headers map[string]string // what each says, by its name
	Events  []Hook
}

// Hook is an event that is sent.
type Hook struct {
	Name, Doc string
	Data      reflect.Type
}

// webhooks writes the member webhooks of the document. The schema of pr.merged is
// PrMergedEvent, and that of its data PrMergedData, unless the data are of an exported
// type, which several events may share. What receives it has an id apart from those of the
// capabilities, of which one may be called as the event is.
func (d *schemas) webhooks(h *Hooks) object {
	out := object{}
	var headers []object
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		headers = append(headers, object{"name": name, "in": "header", "required": true, "description": h.Headers[name],
			"schema": object{"type": "string"}})
	}
	for _, e := range h.Events {
		var data *jsonschema.Schema
		if token.IsExported(e.Data.Name()) {
			data = d.of(e.Data)
		} else {
			s := d.object(op.ShapeOf(e.Data))
			s.Description = "The data of " + e.Name + "."
			data = d.name(typeName(e.Name)+"Data", s)
		}
		body := d.object(op.ShapeOf(h.Body))
		body.Description = e.Doc
		data.Description, body.Properties["data"] = body.Properties["data"].Description, data
		body.Properties["type"].Enum = []any{e.Name}
		ref := d.name(typeName(e.Name)+"Event", body)
		m := object{"schema": ref}
		if v, ok := d.sample("", ref, nil); ok {
			m["example"] = v
		}
		out[e.Name] = object{"post": object{
			"operationId": "receive." + e.Name, "summary": e.Name, "description": e.Doc, "security": []object{}, "parameters": headers,
			"requestBody": object{"required": true, "content": object{"application/json": m}},
			"responses": object{
				"2XX":     object{"description": "It has arrived. Answer within 10 seconds."},
				"default": object{"description": "It has not, and is tried again. A redirect is not followed."},
			},
		}}
	}
	return out
}
