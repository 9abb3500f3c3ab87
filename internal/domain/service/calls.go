package service

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
)

// callsName is the file that lists what can be called.
const callsName = "calls.json"

// callable is a capability as the dashboard offers it: what the document says of it, in
// short.
type callable struct {
	ID      string          `json:"id"`
	Summary string          `json:"summary"`
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Scope   string          `json:"scope"`
	Args    []argument      `json:"args"`           // of the path and the query
	Body    json.RawMessage `json:"body,omitempty"` // example with the members that a body must have
	Members []string        `json:"members"`        // that a body may have as well
}

type argument struct {
	Name string `json:"name"`
	In   string `json:"in"` // path or query
	Need bool   `json:"need"`
	Many bool   `json:"many"`
	Doc  string `json:"doc"`
}

// bodySchema is what callables reads of the schema of a body.
type bodySchema struct {
	Properties map[string]json.RawMessage
	Required   []string
}

// parameter is an input outside of the body, or refers to one that many operations have.
type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                struct{ Type any }
}

// operation is what callables reads of an operation of the document.
type operation struct {
	OperationID string
	Summary     string
	Scope       string `json:"x-scope"`
	Parameters  []parameter
	RequestBody struct {
		Content map[string]struct {
			Example map[string]json.RawMessage
			Schema  struct {
				Ref string `json:"$ref"`
			}
		}
	}
	Responses map[string]struct{ Content map[string]json.RawMessage }
}

// callables reads an OpenAPI document. It leaves out streams, which have no end.
func callables(document []byte) (*op.Asset, error) {
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas    map[string]bodySchema
			Parameters map[string]parameter
		}
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	out := []callable{}
	for route, methods := range doc.Paths {
		for method, raw := range methods {
			if !slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
				continue
			}
			var o operation
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, err
			}
			for i, p := range o.Parameters {
				if p.Ref != "" {
					o.Parameters[i] = doc.Components.Parameters[path.Base(p.Ref)]
				}
			}
			if _, stream := o.Responses["200"].Content["text/event-stream"]; stream {
				continue
			}
			c, err := o.callable(strings.ToUpper(method), route, doc.Components.Schemas)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b callable) int { return strings.Compare(a.ID, b.ID) })
	text, err := json.Marshal(out)
	return &op.Asset{ContentType: "application/json", Cache: "no-cache", Body: text}, err
}

func (o operation) callable(method, route string, schemas map[string]bodySchema) (callable, error) {
	c := callable{
		ID: o.OperationID, Summary: o.Summary, Method: method, Path: route, Scope: o.Scope, Args: []argument{}, Members: []string{},
	}
	for _, p := range o.Parameters {
		if p.In == "path" || p.In == "query" {
			c.Args = append(c.Args, argument{p.Name, p.In, p.Required || p.In == "path", p.Schema.Type == "array", p.Description})
		}
	}
	body, ok := o.RequestBody.Content["application/json"]
	if !ok {
		return c, nil
	}
	example := map[string]json.RawMessage{}
	schema := schemas[path.Base(body.Schema.Ref)]
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains(schema.Required, name) {
			c.Members = append(c.Members, name)
			continue
		}
		if example[name] = body.Example[name]; example[name] == nil {
			example[name] = json.RawMessage("null")
		}
	}
	var err error
	c.Body, err = json.Marshal(example)
	return c, err
}
