package task

import (
	"fmt"
	"strings"
	"testing"
)

// TestParseSchema holds that what is no schema is told with its place, and that
// no schema costs more than it may, whatever result it is held against.
func TestParseSchema(t *testing.T) {
	deep, wide := `true`, `"$defs": {"a0": true`
	for range maxSchemaDepth {
		deep = `{"items": ` + deep + `}`
	}
	for i := range 40 {
		wide += fmt.Sprintf(`, "a%d": {"allOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]}`, i+1, i, i)
	}
	for text, want := range map[string]string{
		`{"type": "object"}`: "",
		`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://acme.example/x", "type": ["object", "null"], "additionalProperties": false}`:  "",
		`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}, true], "dependencies": {"a": ["b"], "c": {"required": ["d"]}}}`:      "",
		`{"$defs": {"a/b": {"type": "string"}, "c d": {"$ref": "#/$defs/a~1b"}}, "properties": {"x": {"$ref": "#/$defs/c%20d"}, "y": {"$ref": "#/properties/x"}}}`: "",
		`{"enum": [{"$ref": "http://nowhere.example"}], "const": {"type": "nope"}, "properties": {"$ref": {"type": "string"}}}`:                                    "",
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
		`{"title": "` + strings.Repeat("a", maxSchemaBytes) + `"}`: "bytes",
	} {
		schema, err := parseSchema([]byte(text))
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.200s: %v, want %s", text, err, want)
		case err == nil:
			_ = schema.Validate(map[string]any{"x": "y"})
		}
	}
}
