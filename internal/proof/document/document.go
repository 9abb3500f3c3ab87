// Package document reads the OpenAPI document as its users do, and validates requests
// and answers against it. It knows no server: the tests of the program and the
// transcripts of the domains pass it the bytes.
package document

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Document is the part of the OpenAPI document that tests read.
type Document struct {
	OpenAPI    string `json:"openapi"`
	Tags       []struct{ Name, Description string }
	Paths      map[string]PathItem
	Webhooks   map[string]PathItem // what the server sends, by the type of event
	Components struct {
		Schemas    map[string]*jsonschema.Schema
		Responses  map[string]Response
		Parameters map[string]Parameter
		Examples   map[string]Example
	}
}

// UnmarshalJSON resolves references to shared responses, parameters and examples. It returns the error of
// encoding/json, or names the reference that leads nowhere.
func (d *Document) UnmarshalJSON(b []byte) error {
	type plain Document
	if err := json.Unmarshal(b, (*plain)(d)); err != nil {
		return err
	}
	for name, r := range d.Components.Responses {
		for _, m := range r.Content {
			for slug, e := range m.Examples {
				of, is := strings.CutPrefix(e.Ref, "#/components/examples/")
				if !is {
					continue
				}
				if m.Examples[slug], is = d.Components.Examples[of]; !is {
					return fmt.Errorf("the response %s refers to an example that is not there: %s", name, of)
				}
			}
		}
	}
	for path, methods := range d.Paths {
		for _, x := range methods {
			for status, r := range x.Responses {
				name, is := strings.CutPrefix(r.Ref, "#/components/responses/")
				if !is {
					continue
				}
				if r, is = d.Components.Responses[name]; !is {
					return fmt.Errorf("%s: %s refers to a response that is not there: %s", path, status, name)
				}
				x.Responses[status] = r
			}
			for i, p := range x.Parameters {
				name, is := strings.CutPrefix(p.Ref, "#/components/parameters/")
				if !is {
					continue
				}
				if x.Parameters[i], is = d.Components.Parameters[name]; !is {
					return fmt.Errorf("%s refers to a parameter that is not there: %s", path, name)
				}
			}
		}
	}
	return nil
}

// PathItem holds the operations of a path by method.
type PathItem map[string]Operation

// UnmarshalJSON skips the member that is no operation. It returns the error of
// encoding/json.
func (p *PathItem) UnmarshalJSON(b []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return err
	}
	*p = PathItem{}
	for name, raw := range members {
		if name == "parameters" { // those of all operations of the path
			continue
		}
		var x Operation
		if err := json.Unmarshal(raw, &x); err != nil {
			return err
		}
		(*p)[name] = x
	}
	return nil
}

// Operation is one method of one path.
type Operation struct {
	ID          string `json:"operationId"`
	Summary     string
	Description string
	Tags        []string
	Parameters  []Parameter
	RequestBody *struct {
		Content map[string]Media
	} `json:"requestBody"`
	Responses map[string]Response
	Security  []map[string][]string
}

// Response is an answer of an operation. Ref is of a shared one, and resolved in a Document.
type Response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]Media
}

// Parameter is an input outside of the body.
type Parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Schema                *jsonschema.Schema
}

// Media is a body of one content type.
type Media struct {
	Schema   *jsonschema.Schema
	Example  json.RawMessage
	Examples map[string]Example
}

// Example is an example of an answer. Ref is of a shared one, and resolved in a Document.
type Example struct {
	Ref   string `json:"$ref"`
	Value json.RawMessage
}

// All returns the examples by their names.
func (m Media) All() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if m.Example != nil {
		out["the one"] = m.Example
	}
	for name, e := range m.Examples {
		out[name] = e.Value
	}
	return out
}

// SchemaRoot is the prefix of a reference to a named schema.
const SchemaRoot = "#/components/schemas/"

// Operations returns the operations by id.
func (d Document) Operations() map[string]Operation {
	out := map[string]Operation{}
	for _, methods := range d.Paths {
		for _, x := range methods {
			out[x.ID] = x
		}
	}
	return out
}

// Schemas calls fn for s and every schema below it.
func Schemas(s *jsonschema.Schema, fn func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	fn(s)
	Schemas(s.Items, fn)
	Schemas(s.AdditionalProperties, fn)
	Schemas(s.ContentSchema, fn)
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.AllOf, s.OneOf} {
		for _, x := range list {
			Schemas(x, fn)
		}
	}
	for _, x := range s.Properties {
		Schemas(x, fn)
	}
}

// Closed resolves a schema of the document with all that it refers to. The result
// allows no member that the document does not name, and only times in RFC 3339 UTC.
// It returns an error for a schema that is no JSON Schema.
func (d Document) Closed(s *jsonschema.Schema) (*jsonschema.Resolved, error) {
	const root = "#/$defs/"
	all := s.CloneSchemas()
	all.Defs = map[string]*jsonschema.Schema{}
	var strict func(s *jsonschema.Schema)
	strict = func(s *jsonschema.Schema) {
		if name, ok := strings.CutPrefix(s.Ref, SchemaRoot); ok {
			s.Ref = root + name
			if x := d.Components.Schemas[name]; x != nil && all.Defs[name] == nil {
				x = x.CloneSchemas()
				all.Defs[name] = x
				Schemas(x, strict)
				if name == "Problem" {
					x.AdditionalProperties = nil // problems may have further members
				}
			}
		}
		if s.Format == "date-time" {
			s.Pattern = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$`
		}
		if s.Type == "object" && s.AdditionalProperties == nil {
			s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
		}
	}
	Schemas(all, strict)
	return all.Resolve(nil)
}

// Judge validates requests and answers against the document. It keeps the resolved
// schemas, because resolving is the slowest part. Tests that run in parallel may
// share it.
type Judge struct {
	Document
	Ops map[string]Operation

	mu   sync.Mutex
	made map[string]*jsonschema.Resolved
}

// NewJudge reads the document. It returns the error of encoding/json.
func NewJudge(text []byte) (*Judge, error) {
	var d Document
	err := json.Unmarshal(text, &d)
	return &Judge{Document: d, Ops: d.Operations(), made: map[string]*jsonschema.Resolved{}}, err
}

func (j *Judge) schema(key string, s *jsonschema.Schema) (r *jsonschema.Resolved, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r = j.made[key]; r == nil {
		if r, err = j.Closed(s); err == nil {
			j.made[key] = r
		}
	}
	return r, err
}

// Valid returns an error unless body is JSON that fits the schema. key identifies the
// schema among those that the judge keeps.
func (j *Judge) Valid(key string, s *jsonschema.Schema, body []byte) error {
	r, err := j.schema(key, s)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return r.Validate(v)
}

// Exchange returns an error unless the document allows the request and its answer. It
// ignores operations that the document does not have.
func (j *Judge) Exchange(id string, sent []byte, status int, header http.Header, body []byte) error {
	x, ok := j.Ops[id]
	if !ok {
		return nil // not under /v1
	}
	key := strconv.Itoa(status)
	r, ok := x.Responses[key]
	if !ok {
		return fmt.Errorf("the document knows no answer %s of %s", key, id)
	}
	if status >= 400 {
		if err := published(r, status, body); err != nil {
			return err
		}
	}
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if m, ok := r.Content[kind]; ok && strings.HasSuffix(kind, "json") {
		if err := j.Valid(id+key, m.Schema, body); err != nil {
			return fmt.Errorf("the answer is not as documented: %w\n%s", err, body)
		}
	} else if !ok && r.Content != nil {
		return fmt.Errorf("the answer is %s, which the document does not know", kind)
	}
	if status < 300 && x.RequestBody != nil && len(sent) > 0 {
		if err := j.Valid(id, x.RequestBody.Content["application/json"].Schema, sent); err != nil {
			return fmt.Errorf("the request was taken and is not as documented: %w", err)
		}
	}
	return nil
}

// published returns an error unless the document names the slug of the failure.
func published(r Response, status int, body []byte) error {
	var p struct{ Type string }
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	slug := p.Type[strings.LastIndex(p.Type, "/")+1:]
	if _, ok := r.Content["application/problem+json"].Examples[slug]; ok {
		return nil
	}
	return fmt.Errorf("it fails with %d %s, which the row does not name", status, slug)
}
