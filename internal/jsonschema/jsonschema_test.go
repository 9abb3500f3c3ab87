package jsonschema

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// TestParse holds that an invalid schema is reported with the place of its fault,
// and that no schema costs more than the limits allow.
func TestParse(t *testing.T) {
	deep, wide := `true`, `"$defs": {"a0": true`
	for range MaxDepth {
		deep = `{"items": ` + deep + `}`
	}
	for i := range 40 {
		wide += fmt.Sprintf(`, "a%d": {"allOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]}`, i+1, i, i)
	}
	steps := func(times int) string { return `{"pattern": "` + strings.Repeat("(ab?){1,125}", times) + `"}` }
	for text, want := range map[string]string{
		`{"type": "object"}`: "",
		`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://acme.example/x", "type": ["object", "null"], ` +
			`"additionalProperties": false}`: "",
		`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}, true], "dependencies": {"a": ["b"], "c": ` +
			`{"required": ["d"]}}}`: "",
		`{"$defs": {"a/b": {"type": "string"}, "c d": {"$ref": "#/$defs/a~1b"}}, "properties": {"x": {"$ref": "#/$defs/c%20d"}, "y": ` +
			`{"$ref": "#/properties/x"}}}`: "",
		`{"enum": [{"$ref": "http://nowhere.example"}], "const": {"type": "nope"}, "properties": {"$ref": {"type": "string"}}}`: "",
		`{"type": "nope"}`: "at /type: ",
		`{"type": []}`:     "at /type: ",
		`{"properties": {"a": {"type": "nope"}}}`:      "at /properties/a/type: ",
		`{"allOf": [true, {"minLength": -1}]}`:         "at /allOf/1/minLength: ",
		`{"required": "x"}`:                            "at /required: ",
		`{"additionalProperties": 3}`:                  "at /additionalProperties",
		`{"properties": {"a": null}}`:                  "at /properties/a",
		`{"properties": {"a": []}}`:                    "at /properties",
		`{"pattern": "("}`:                             "missing closing",
		`[]`:                                           "must be an object",
		`{"a": 1, "a": 2}`:                             "must be an object",
		`{"$schema": "http://acme.example/schema"}`:    "$schema must be",
		`{"$ref": "http://127.0.0.1:1/schema"}`:        "leads out of it",
		`{"$ref": "other.json#/a"}`:                    "leads out of it",
		`{"items": {"$ref": "#anchor"}}`:               "leads out of it",
		`{"items": {"$ref": "#/$defs/none"}}`:          "where there is no schema",
		`{"items": {"$ref": "#/title"}, "title": "a"}`: "where there is no schema",
		`{"items": {"$id": "http://127.0.0.1:1/"}}`:    "/items/$id",
		`{"$dynamicRef": "#"}`:                         "/$dynamicRef",
		`{"$ref": "#"}`:                                "cannot be recursive",
		`{"properties": {"a": {"$ref": "#"}}}`:         "cannot be recursive",
		`{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}`: "cannot be recursive",
		`{` + wide + `}, "$ref": "#/$defs/a40"}`:                                       "not be of more than",
		deep:                                                                           "schemas deep",
		steps(6):                                                                       "",
		steps(9):                                                                       "more than 5000 steps",
		`{"properties": {"a": ` + steps(5) + `, "b": {"$ref": "#/properties/a"}, "c": {"$ref": "#/properties/a"}}}`: "more than 5000 steps",
		`{"patternProperties": {"^.{0,999}$": true, "(": true}}`:                                                    "missing closing",
		`{"type": "nope", "minLength": -1, "x": {"type": 1}}`:                                                       "at /minLength: ",
		`{"format": 5}`:          "at /format: ",
		`{"$schema": ["a"]}`:     "at /$schema: ",
		`{"$ref": 5}`:            "leads out of it",
		`{"$ref": "file:///a"}`:  "leads out of it",
		`{"$id": "file:///a#b"}`: "at /$id: ",
		`{"title": "` + strings.Repeat("a", MaxBytes) + `"}`: "bytes",
	} {
		schema, err := Parse([]byte(text))
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.200s: %v, want %s", text, err, want)
		case err == nil:
			_ = schema.Validate(map[string]any{"x": "y"})
		}
	}
}

// TestValidate holds that all faults of a value are reported, in one order, each
// place once, up to a limit.
func TestValidate(t *testing.T) {
	const base = `"type": "object", "required": ["a", "b"], "additionalProperties": {"type": "integer"}, ` +
		`"properties": {"when": {"format": "date"}, "re": {"format": "regex"}}`
	for _, schema := range []string{"{" + base + "}", `{"$schema": "http://json-schema.org/draft-07/schema#", ` + base + `}`} {
		s, err := Parse([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		for want, value := range map[string]any{
			"":                                   map[string]any{"a": 1.0, "b": 2.0, "when": "never", "re": "("},
			"at its top: got array, want object": []any{},
			"at /a~1b: got string, want integer; at its top: missing property 'b'": map[string]any{"a": 1.0, "a/b": "x"},
		} {
			for range 5 {
				if err := s.Validate(value); fmt.Sprint(err) != cmp.Or(want, "<nil>") {
					t.Errorf("%v: %v, want %s", value, err, want)
				}
			}
		}
		many := map[string]any{}
		for i := range 1000 {
			many[fmt.Sprint(i)] = "x"
		}
		if err := s.Validate(many); err == nil || !strings.HasSuffix(err.Error(), "; and 981 more") {
			t.Error(err)
		}
	}
}
