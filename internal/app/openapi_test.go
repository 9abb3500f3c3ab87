package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/openapi"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/fault"
	"yardmaster/internal/hook"
	"yardmaster/internal/proof/document"
)

const documentFile = "../../docs/openapi.json"

func TestDocumentIsCommitted(t *testing.T) {
	t.Parallel()
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

func TestDocument(t *testing.T) {
	t.Parallel()
	d := newJudge(t).Document
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
		document.Schemas(s, func(s *jsonschema.Schema) {
			if s.Ref == "" {
				return
			}
			name, ok := strings.CutPrefix(s.Ref, document.SchemaRoot)
			used[name] = true
			if !ok || d.Components.Schemas[name] == nil {
				t.Errorf("%s: %s leads nowhere", at, s.Ref)
			}
		})
	}
	for name, s := range d.Components.Schemas {
		resolves(name, s)
		if _, err := d.Closed(&jsonschema.Schema{Ref: document.SchemaRoot + name}); err != nil {
			t.Errorf("%s is no JSON Schema: %v", name, err)
		}
	}
	for name, h := range d.Webhooks {
		resolves(name, h["post"].RequestBody.Content["application/json"].Schema)
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
				if !slices.ContainsFunc(x.Parameters, func(p document.Parameter) bool { return p.Name == name && p.In == "path" }) {
					t.Errorf("%s does not declare {%s}", at, name)
				}
			}
			if x.RequestBody != nil {
				for _, m := range x.RequestBody.Content {
					resolves(at, m.Schema)
				}
			}
			for status, r := range x.Responses {
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
		document.Schemas(s, func(x *jsonschema.Schema) {
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
	t.Parallel()
	j := newJudge(t)
	for _, o := range Ops() {
		x := j.Ops[o.ID]
		try := func(key string, m document.Media) {
			all := m.All()
			if len(all) == 0 {
				t.Errorf("%s %s has no example: give the field whose pattern asks too much an example tag", o.ID, key)
			}
			for _, example := range all {
				if err := j.Valid(o.ID+key, m.Schema, example); err != nil {
					t.Errorf("the example of %s %s: %v\n%s", o.ID, key, err, example)
				}
			}
		}
		if x.RequestBody != nil && o.ID != "mcp.rpc" { // which is a protocol of its own
			try("request", x.RequestBody.Content["application/json"])
		}
		for status, r := range x.Responses {
			for kind, m := range r.Content {
				if strings.HasSuffix(kind, "json") && o.ID != "service.openapi" { // which is its own example
					try(status, m)
				}
			}
		}
	}
}

// TestWebhooksAreDescribed holds that the document has every type of event that a webhook
// can ask for, with an example that names the type and the headers of an attempt.
func TestWebhooksAreDescribed(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for _, name := range webhook.Types() {
		x := j.Webhooks[name]["post"]
		if x.RequestBody == nil {
			t.Errorf("%s is not described", name)
			continue
		}
		m := x.RequestBody.Content["application/json"]
		var sent struct{ Type string }
		if err := errors.Join(json.Unmarshal(m.Example, &sent), j.Valid(name, m.Schema, m.Example)); err != nil || sent.Type != name {
			t.Errorf("the example of %s: %v\n%s", name, err, m.Example)
		}
		var headers []string
		for _, p := range x.Parameters {
			headers = append(headers, p.Name)
		}
		if !slices.Equal(headers, slices.Sorted(maps.Keys(hook.Headers()))) {
			t.Errorf("%s comes with %v", name, headers)
		}
	}
	if len(j.Webhooks) != len(webhook.Types()) {
		t.Errorf("%d types of events are described, of %d", len(j.Webhooks), len(webhook.Types()))
	}
}

// documentOf is the description of the API, as JSON values.
func documentOf(t *testing.T) (doc any) {
	t.Helper()
	text, err := Document()
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestNumbersKeepTheirValue holds that every number of the document says how wide it is,
// because clients that are told nothing take 32 bits and lose cents, and that dollars
// which travel as text are told from other texts.
func TestNumbersKeepTheirValue(t *testing.T) {
	t.Parallel()
	doc := documentOf(t)
	formats := map[string]string{"number": "double", "integer": "int64"}
	seen := map[string]int{}
	eachObject(doc, "", func(at string, s schema) {
		for _, kind := range kindsOf(s) {
			want, name := formats[kind], path.Base(at)
			if kind == "string" && (name == "usd" || strings.HasSuffix(name, "_usd")) {
				want = "decimal"
			}
			if want == "" {
				continue
			}
			if seen[want]++; s["format"] != want || want == "decimal" && s["pattern"] != openapi.Decimal {
				t.Errorf("%s is a %s of the format %v, not %s", at, kind, s["format"], want)
			}
		}
	})
	if len(seen) != 3 {
		t.Errorf("the document has numbers of the formats %v", seen)
	}
}

// eachObject calls fn for every object of a JSON value that is no example, with its pointer.
func eachObject(v any, at string, fn func(at string, s schema)) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			eachObject(e, at+"/"+strconv.Itoa(i), fn)
		}
	case schema:
		fn(at, v)
		for name, e := range v {
			if name != "example" && name != "examples" && name != "default" {
				eachObject(e, at+"/"+name, fn)
			}
		}
	}
}

// kindsOf lists the types that a schema takes.
func kindsOf(s schema) (out []string) {
	switch kind := s["type"].(type) {
	case string:
		return []string{kind}
	case []any:
		for _, k := range kind {
			name, _ := k.(string)
			out = append(out, name)
		}
	}
	return out
}

// common are the slugs that any row may fail with.
func common() []string {
	out := []string{"missing-scope", "user-required", "session-required", "cross-origin", "not-a-member"}
	for _, k := range fault.Kinds() {
		out = append(out, k.Slug())
	}
	return out
}

var theJudge = sync.OnceValues(func() (*document.Judge, error) {
	b, err := Document()
	if err != nil {
		return nil, err
	}
	return document.NewJudge(b)
})

func newJudge(t *testing.T) *document.Judge {
	t.Helper()
	j, err := theJudge()
	if err != nil {
		t.Fatal(err)
	}
	return j
}
