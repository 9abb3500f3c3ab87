package app

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/op"
	"yardmaster/internal/proof/document"
)

// What the document leaves unsaid. Each number may only become smaller: who
// describes something lowers it here, and at 0 nothing comes back.
const (
	unsaidSchemas    = 0 // types without a description: a blank field with a doc tag
	unsaidFields     = 0 // members of types: a doc tag
	unsaidParameters = 0
	guessedExamples  = 0 // texts whose example is their own name: an enum, format or example tag
)

func TestUnsaid(t *testing.T) {
	t.Parallel()
	d := newJudge(t).Document
	var types, fields, parameters, guesses []string
	for name, s := range d.Components.Schemas {
		if s.Description == "" {
			types = append(types, name)
		}
		document.Schemas(s, func(s *jsonschema.Schema) {
			for field, m := range s.Properties {
				if m.Description == "" {
					fields = append(fields, name+"."+field)
				}
			}
		})
	}
	for id, x := range d.Operations() {
		for _, p := range x.Parameters {
			if p.Description == "" {
				parameters = append(parameters, id+" "+p.Name)
			}
		}
		bodies := map[string]document.Media{}
		for status, r := range x.Responses {
			for _, m := range r.Content {
				for name, example := range m.All() {
					for _, v := range stands(t, example) {
						guesses = append(guesses, guessed(id+" "+status+" "+name, "", v)...)
					}
				}
			}
		}
		if x.RequestBody != nil {
			bodies["of the body"] = x.RequestBody.Content["application/json"]
		}
		for status, r := range x.Responses {
			if status < "4" {
				bodies[status] = r.Content["application/json"]
			}
		}
		for at, m := range bodies {
			if m.Schema != nil && x.RequestBody != nil && at == "of the body" {
				for field, f := range m.Schema.Properties {
					if f.Description == "" {
						fields = append(fields, id+" "+field)
					}
				}
			}
			if at == "of the body" {
				for _, v := range stands(t, m.Example) {
					guesses = append(guesses, guessed(id+" "+at, "", v)...)
				}
			}
		}
	}
	for _, c := range []struct {
		what string
		list []string
		most int
	}{
		{"types without a description", types, unsaidSchemas}, {"members without a description", fields, unsaidFields},
		{"parameters without a description", parameters, unsaidParameters}, {"examples that are only a name", guesses, guessedExamples},
	} {
		slices.Sort(c.list)
		switch {
		case len(c.list) > c.most:
			t.Errorf("%d %s, and there may be %d: describe the new ones.\n%s", len(c.list), c.what, c.most, strings.Join(c.list, "\n"))
		case len(c.list) < c.most:
			t.Logf("%d %s: lower the number from %d", len(c.list), c.what, c.most)
		}
	}
}

// stands is what an example holds, or each frame of one of a stream.
func stands(t *testing.T, example json.RawMessage) (out []any) {
	var v any
	if len(example) == 0 {
		return nil
	}
	if err := json.Unmarshal(example, &v); err != nil {
		t.Fatalf("%v: %s", err, example)
	}
	stream, is := v.(string)
	if !is {
		return []any{v}
	}
	for line := range strings.Lines(stream) {
		data, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, v)
	}
	return out
}

// guessed finds texts in an example that say no more than what they are called,
// and members that stand for any.
func guessed(at, name string, v any) (out []string) {
	switch v := v.(type) {
	case string:
		if name = strings.ReplaceAll(name, "_", " "); v == name || v+"s" == name {
			return []string{at + "." + name}
		}
	case []any:
		for _, x := range v {
			out = append(out, guessed(at, name, x)...)
		}
	case map[string]any:
		for k, x := range v {
			if k == "area" {
				out = append(out, at+"."+name+"."+k)
			}
			out = append(out, guessed(at, k, x)...)
		}
	}
	return out
}

// Every operation says what it is, how it fails and what an answer looks like.
func TestOperationsAreDescribed(t *testing.T) {
	t.Parallel()
	d := newJudge(t).Document
	ops := map[string]Op{}
	for _, o := range Ops() {
		ops[o.ID] = o
	}
	for id, x := range d.Operations() {
		o := ops[id]
		group, _, _ := strings.Cut(id, ".")
		if x.Description == "" || x.Summary == "" || !slices.Equal(x.Tags, []string{group}) {
			t.Errorf("%s: tags %v, described as %q", id, x.Tags, x.Description)
		}
		fails := []int{400, 429, 500, 503}
		if !o.Rule.IsPublic() {
			fails = append(fails, 401, 403)
		}
		if strings.Contains(o.Path, "{") {
			fails = append(fails, 404)
		}
		if o.Method != "GET" {
			fails = append(fails, 413)
		}
		for _, status := range fails {
			if _, ok := x.Responses[strconv.Itoa(status)]; !ok {
				t.Errorf("%s may fail with %d and does not say so", id, status)
			}
		}
		if names := o.Rule.Names(); len(names) > 0 && !o.Rule.TakesAny() {
			if _, ok := x.Responses["403"].Content["application/problem+json"].Examples["missing-scope"]; !ok {
				t.Errorf("%s demands %v and does not say what a token without is answered", id, names)
			}
		}
		for _, r := range o.Refuses {
			if _, ok := x.Responses[strconv.Itoa(r.Status)].Content["application/problem+json"].Examples[r.Slug]; !ok {
				t.Errorf("%s does not show its refusal %d %s", id, r.Status, r.Slug)
			}
		}
		for status, r := range x.Responses {
			for kind, m := range r.Content {
				for name, example := range m.All() {
					if regexp.MustCompile(`"example"`).Match(example) {
						t.Errorf("%s %s: an example says that it is one: %s", id, status, example)
					}
					var p struct{ Type string }
					if kind != "application/problem+json" {
						continue
					}
					if err := json.Unmarshal(example, &p); err != nil || !strings.HasSuffix(p.Type, "/"+name) {
						t.Errorf("%s %s: the example %s is of %s (%v)", id, status, name, p.Type, err)
					}
				}
			}
		}
	}
}

// A stream says what its frames are called and what is in them.
func TestStreamsAreDescribed(t *testing.T) {
	t.Parallel()
	d := newJudge(t).Document
	for _, o := range Ops() {
		if !o.IsStream() || !strings.HasPrefix(o.Path, "/v1/") {
			continue
		}
		x := d.Operations()[o.ID]
		m := x.Responses["200"].Content["text/event-stream"]
		if m.Schema == nil || m.Schema.ContentSchema == nil || m.Schema.ContentSchema.Items == nil {
			t.Errorf("%s does not say what its frames are", o.ID)
			continue
		}
		frames := m.Schema.ContentSchema.Items.OneOf
		if len(frames) < 3 { // of its own, and the one of a failure
			t.Errorf("%s has %d kinds of frames", o.ID, len(frames))
		}
		for _, f := range frames {
			data := f.Properties["data"].ContentSchema
			if f.Description == "" || data == nil || d.Components.Schemas[strings.TrimPrefix(data.Ref, document.SchemaRoot)] == nil {
				t.Errorf("%s: the frame %s is of %v: %q", o.ID, f.Title, data, f.Description)
			}
		}
		if again := slices.ContainsFunc(x.Parameters,
			func(p document.Parameter) bool { return p.Name == "Last-Event-ID" }); again != o.Resume {
			t.Errorf("%s: Last-Event-ID is documented: %v", o.ID, again)
		}
	}
}

// What is said of all streams is true of those that cannot be gone on with.
func TestStreamsAreDescribedTogether(t *testing.T) {
	t.Parallel()
	resumed, refused := 0, 0
	for _, o := range Ops() {
		switch {
		case !o.IsStream() || !strings.HasPrefix(o.Path, "/v1/"):
		case o.Resume:
			resumed++
		case slices.ContainsFunc(o.Events, func(e op.Event) bool { return e.Name == "end" }):
			refused++
		}
	}
	if resumed == 0 || refused == 0 {
		t.Fatalf("%d streams that end can be gone on with, %d cannot: say less of them", resumed, refused)
	}
	for line := range strings.Lines(description) {
		if strings.Contains(line, "Last-Event-ID") && (!strings.Contains(line, "204") || !strings.Contains(line, "400")) {
			t.Errorf("of streams it is said: %s", line)
		}
	}
}
