package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
)

const documentFile = "../../docs/openapi.json"

func TestDocumentIsCommitted(t *testing.T) {
	generated, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(generated, '\n'), committed) {
		t.Error("docs/openapi.json is not what the rows say. Run: go run ./cmd/yardmaster openapi > docs/openapi.json")
	}
}

// document is what the tests read of the OpenAPI document.
type document struct {
	OpenAPI    string `json:"openapi"`
	Tags       []struct{ Name, Description string }
	Paths      map[string]pathItem
	Components struct {
		Schemas   map[string]*jsonschema.Schema
		Responses map[string]response
	}
}

// pathItem is the operations of a path by method.
type pathItem map[string]operation

func (p *pathItem) UnmarshalJSON(b []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return err
	}
	*p = pathItem{}
	for name, raw := range members {
		if name == "parameters" { // which all of them have
			continue
		}
		var x operation
		if err := json.Unmarshal(raw, &x); err != nil {
			return err
		}
		(*p)[name] = x
	}
	return nil
}

type operation struct {
	ID          string `json:"operationId"`
	Summary     string
	Description string
	Tags        []string
	Parameters  []parameter
	RequestBody *struct {
		Content map[string]media
	} `json:"requestBody"`
	Responses map[string]response
	Security  []map[string][]string
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]media
}

type parameter struct {
	Name, In, Description string
	Schema                *jsonschema.Schema
}

type media struct {
	Schema   *jsonschema.Schema
	Example  json.RawMessage
	Examples map[string]struct{ Value json.RawMessage }
}

// all are the examples by their names.
func (m media) all() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if m.Example != nil {
		out["the one"] = m.Example
	}
	for name, e := range m.Examples {
		out[name] = e.Value
	}
	return out
}

const (
	schemaRoot   = "#/components/schemas/"
	responseRoot = "#/components/responses/"
)

func parseDocument() (d document, err error) {
	b, err := Document()
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(b, &d)
}

// operations are those of the document by id.
func (d document) operations() map[string]operation {
	out := map[string]operation{}
	for _, methods := range d.Paths {
		for _, x := range methods {
			out[x.ID] = x
		}
	}
	return out
}

// schemas walks every schema below s, s included.
func schemas(s *jsonschema.Schema, fn func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	fn(s)
	schemas(s.Items, fn)
	schemas(s.AdditionalProperties, fn)
	schemas(s.ContentSchema, fn)
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.AllOf, s.OneOf} {
		for _, x := range list {
			schemas(x, fn)
		}
	}
	for _, x := range s.Properties {
		schemas(x, fn)
	}
}

func TestDocument(t *testing.T) {
	d := newJudge(t).document
	if d.OpenAPI != "3.1.1" {
		t.Errorf("openapi is %q", d.OpenAPI)
	}
	var tags []string
	for _, tag := range d.Tags {
		if tags = append(tags, tag.Name); tag.Description == "" {
			t.Errorf("the group %s is not described (in describe.go)", tag.Name)
		}
	}
	used := map[string]bool{"Problem": true}
	resolves := func(at string, s *jsonschema.Schema) {
		schemas(s, func(s *jsonschema.Schema) {
			if s.Ref == "" {
				return
			}
			name, ok := strings.CutPrefix(s.Ref, schemaRoot)
			used[name] = true
			if !ok || d.Components.Schemas[name] == nil {
				t.Errorf("%s: %s leads nowhere", at, s.Ref)
			}
		})
	}
	for name, s := range d.Components.Schemas {
		resolves(name, s)
		if _, err := closed(d, &jsonschema.Schema{Ref: schemaRoot + name}); err != nil {
			t.Errorf("%s is no JSON Schema: %v", name, err)
		}
	}
	ids := map[string]string{}
	for path, methods := range d.Paths {
		for method, x := range methods {
			at := method + " " + path
			if other := ids[x.ID]; other != "" {
				t.Errorf("%s and %s are both %s", at, other, x.ID)
			}
			ids[x.ID] = at
			if x.Summary == "" || len(x.Tags) != 1 || !slices.Contains(tags, x.Tags[0]) {
				t.Errorf("%s: summary %q, tags %v", at, x.Summary, x.Tags)
			}
			for _, name := range pathParams(path) {
				if !slices.ContainsFunc(x.Parameters, func(p parameter) bool { return p.Name == name && p.In == "path" }) {
					t.Errorf("%s does not declare {%s}", at, name)
				}
			}
			if x.RequestBody != nil {
				for _, m := range x.RequestBody.Content {
					resolves(at, m.Schema)
				}
			}
			for status, r := range x.Responses {
				if r.Ref != "" {
					name := strings.TrimPrefix(r.Ref, responseRoot)
					var ok bool
					if r, ok = d.Components.Responses[name]; !ok {
						t.Errorf("%s %s leads nowhere", at, status)
					}
				}
				if r.Description == "" {
					t.Errorf("%s %s has no description", at, status)
				}
				for kind, m := range r.Content {
					resolves(at, m.Schema)
					if strings.HasSuffix(kind, "json") && m.Schema.Ref == "" && x.ID != "service.openapi" {
						t.Errorf("%s %s answers a schema without a name", at, status)
					}
				}
			}
		}
	}
	for name, s := range d.Components.Schemas {
		schemas(s, func(x *jsonschema.Schema) {
			if x != s && len(x.Properties) > 0 {
				t.Errorf("%s holds an object without a name", name)
			}
		})
		if !used[name] {
			t.Errorf("nothing refers to %s", name)
		}
	}
	for _, o := range Ops() {
		if strings.HasPrefix(o.Path, "/v1/") != (ids[o.ID] != "") {
			t.Errorf("%s at %s: documented at %q", o.ID, o.Path, ids[o.ID])
		}
	}
}

// What the document gives as examples is what it says is right.
func TestExamples(t *testing.T) {
	j := newJudge(t)
	for _, o := range Ops() {
		x := j.ops[o.ID]
		try := func(key string, m media) {
			all := m.all()
			if len(all) == 0 {
				t.Errorf("%s %s has no example: give the field whose pattern asks too much an example tag", o.ID, key)
			}
			for _, example := range all {
				if err := j.valid(o.ID+key, m.Schema, example); err != nil {
					t.Errorf("the example of %s %s: %v\n%s", o.ID, key, err, example)
				}
			}
		}
		if x.RequestBody != nil && o.ID != "mcp.rpc" { // which is a protocol of its own
			try("request", x.RequestBody.Content["application/json"])
		}
		for status, r := range x.Responses {
			if r.Ref != "" {
				r = j.Components.Responses[strings.TrimPrefix(r.Ref, responseRoot)]
			}
			for kind, m := range r.Content {
				if strings.HasSuffix(kind, "json") && o.ID != "service.openapi" { // which is its own example
					try(status, m)
				}
			}
		}
	}
}

// closed is a schema of the document with all it refers to, which takes no
// member that the document does not name, and times in RFC 3339 UTC only.
func closed(d document, s *jsonschema.Schema) (*jsonschema.Resolved, error) {
	const root = "#/$defs/"
	all := s.CloneSchemas()
	all.Defs = map[string]*jsonschema.Schema{}
	var strict func(s *jsonschema.Schema)
	strict = func(s *jsonschema.Schema) {
		if name, ok := strings.CutPrefix(s.Ref, schemaRoot); ok {
			s.Ref = root + name
			if x := d.Components.Schemas[name]; x != nil && all.Defs[name] == nil {
				x = x.CloneSchemas()
				all.Defs[name] = x
				schemas(x, strict)
				if name == "Problem" {
					x.AdditionalProperties = nil // problems may say more
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
	schemas(all, strict)
	return all.Resolve(nil)
}

// common are the slugs that any row may fail with.
func common() []string {
	out := []string{"missing-scope", "user-required", "session-required", "cross-origin", "not-a-member"}
	for _, k := range fault.Kinds() {
		out = append(out, k.Slug())
	}
	return out
}

// published tells whether the document says that a row may fail as it did.
func published(r response, a answer) error {
	var p struct{ Type string }
	if err := json.Unmarshal(a.body, &p); err != nil {
		return err
	}
	slug := p.Type[strings.LastIndex(p.Type, "/")+1:]
	if _, ok := r.Content["application/problem+json"].Examples[slug]; ok {
		return nil
	}
	return fmt.Errorf("it fails with %d %s, which the row does not name", a.StatusCode, slug)
}

// judge holds what was sent and answered against the document. It keeps the
// schemas it has made, for all tests: making them is the slowest part.
type judge struct {
	document
	ops map[string]operation

	mu   sync.Mutex
	made map[string]*jsonschema.Resolved
}

var theJudge = sync.OnceValues(func() (*judge, error) {
	d, err := parseDocument()
	return &judge{document: d, ops: d.operations(), made: map[string]*jsonschema.Resolved{}}, err
})

func newJudge(t *testing.T) *judge {
	t.Helper()
	j, err := theJudge()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *judge) schema(key string, s *jsonschema.Schema) (r *jsonschema.Resolved, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r = j.made[key]; r == nil {
		if r, err = closed(j.document, s); err == nil {
			j.made[key] = r
		}
	}
	return r, err
}

func (j *judge) valid(key string, s *jsonschema.Schema, body []byte) error {
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

// exchange tells what in a request and its answer the document does not allow.
func (j *judge) exchange(o op.Op, sent []byte, a answer) error {
	x, ok := j.ops[o.ID]
	if !ok {
		return nil // not under /v1
	}
	status := strconv.Itoa(a.StatusCode)
	r, ok := x.Responses[status]
	if !ok {
		return fmt.Errorf("the document knows no answer %s of %s", status, o.ID)
	}
	if r.Ref != "" {
		r = j.Components.Responses[strings.TrimPrefix(r.Ref, responseRoot)]
	}
	if a.StatusCode >= 400 {
		if err := published(r, a); err != nil {
			return err
		}
	}
	kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	if m, ok := r.Content[kind]; ok && strings.HasSuffix(kind, "json") {
		if err := j.valid(o.ID+status, m.Schema, a.body); err != nil {
			return fmt.Errorf("the answer is not as documented: %w\n%s", err, a.body)
		}
	} else if !ok && r.Content != nil {
		return fmt.Errorf("the answer is %s, which the document does not know", kind)
	}
	if a.StatusCode < 300 && x.RequestBody != nil && len(sent) > 0 {
		if err := j.valid(o.ID, x.RequestBody.Content["application/json"].Schema, sent); err != nil {
			return fmt.Errorf("the request was taken and is not as documented: %w", err)
		}
	}
	return nil
}
