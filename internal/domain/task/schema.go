package task

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
)

// A result schema comes from whoever creates a task, and is held against what
// an agent wrote. What it may cost is bounded beforehand: a schema that refers
// to itself, or to the same part often enough, would take for ever, or the
// whole process with it.
const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 32
	// maxSchemaParts is how many subschemas there may be once each reference
	// stands for what it refers to.
	maxSchemaParts = 2000
)

// The schemas of schemas, as json-schema.org publishes them.
//
//go:embed metaschema
var metaschemas embed.FS

const draft7 = "http://json-schema.org/draft-07/schema#"

// dialects are the schemas of schemas, by $schema.
var dialects = map[string]func() (*jsonschema.Resolved, error){
	"": sync.OnceValues(dialect("schema")),
	"https://json-schema.org/draft/2020-12/schema": sync.OnceValues(dialect("schema")),
	draft7: sync.OnceValues(dialect("draft-07")),
}

func dialect(name string) func() (*jsonschema.Resolved, error) {
	return func() (*jsonschema.Resolved, error) {
		s, err := metaschema(name)
		if err != nil {
			return nil, err
		}
		return s.Resolve(&jsonschema.ResolveOptions{Loader: func(u *url.URL) (*jsonschema.Schema, error) { return metaschema(path.Base(u.Path)) }})
	}
}

func metaschema(name string) (*jsonschema.Schema, error) {
	text, err := metaschemas.ReadFile("metaschema/" + name + ".json")
	if err != nil {
		return nil, err
	}
	s := new(jsonschema.Schema)
	return s, s.UnmarshalJSON(text)
}

// parseSchema reads a result schema. It has to stand on its own: nothing it
// refers to is fetched. An error is in words for whoever wrote it, and begins
// with a verb.
func parseSchema(text []byte) (*jsonschema.Resolved, error) {
	if len(text) > maxSchemaBytes {
		return nil, fmt.Errorf("must have at most %d bytes", maxSchemaBytes)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil || doc == nil {
		return nil, errors.New("must be an object")
	}
	named, _ := doc["$schema"].(string)
	known, ok := dialects[named]
	if !ok {
		return nil, errors.New("$schema must be that of JSON Schema 2020-12 or draft-07")
	}
	meta, err := known()
	if err != nil {
		return nil, err
	}
	w := walk{meta: meta, parts: map[string]*part{}}
	if err := w.visit(doc, "", 1); err != nil {
		return nil, err
	}
	if _, err := w.weigh(""); err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := schema.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("is not a JSON Schema that stands on its own: %w", err)
	}
	return resolved, nil
}

// walk goes through a schema. Its parts are the subschemas, by JSON pointer.
type walk struct {
	meta  *jsonschema.Resolved
	parts map[string]*part
}

// part is one subschema: what it is made of, and what it refers to.
type part struct {
	of     []string
	weight int // how many parts it stands for; 0 until weighed
	onPath bool
}

// Where the keywords have subschemas. What is not here has none.
var (
	oneSchema   = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	manySchemas = []string{"$defs", "allOf", "anyOf", "definitions", "dependencies", "dependentSchemas", "items", "oneOf", "patternProperties", "prefixItems", "properties"}
	// Keywords that make a reference lead elsewhere than it says.
	moving = []string{"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"}
)

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// visit checks a subschema keyword by keyword, so that what is wrong can be
// told with its place, and then what it is made of.
func (w *walk) visit(schema any, at string, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("must not be more than %d schemas deep", maxSchemaDepth)
	}
	p := &part{}
	w.parts[at] = p
	keywords, ok := schema.(map[string]any)
	if !ok {
		return w.check(schema, at)
	}
	for _, name := range slices.Sorted(maps.Keys(keywords)) {
		value := keywords[name]
		place := at + "/" + pointerEscapes.Replace(name)
		if slices.Contains(moving, name) || name == "$id" && at != "" {
			return fmt.Errorf("has %s, which is not taken here", place)
		}
		if name == "$ref" {
			ref, _ := value.(string)
			target, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
			if !strings.HasPrefix(ref, "#") || err != nil || target != "" && !strings.HasPrefix(target, "/") {
				return fmt.Errorf("has a %s that leads out of it; write #/$defs/name", place)
			}
			p.of = append(p.of, target)
		}
		inner, rest := subschemas(name, value)
		if err := w.check(map[string]any{name: rest}, place); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(inner)) {
			of := place
			if key != "" {
				of += "/" + key
			}
			p.of = append(p.of, of)
			if err := w.visit(inner[key], of, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// subschemas takes the schemas out of a keyword's value, by what is behind the
// keyword in a pointer, and answers what is left.
func subschemas(name string, value any) (inner map[string]any, rest any) {
	inner = map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		if !slices.Contains(manySchemas, name) || name == "items" {
			break
		}
		left := map[string]any{}
		for key, s := range v {
			if left[key] = s; !isList(s) {
				left[key], inner[pointerEscapes.Replace(key)] = true, s
			}
		}
		return inner, left
	case []any:
		if !slices.Contains(manySchemas, name) {
			break
		}
		left := make([]any, len(v))
		for i, s := range v {
			left[i], inner[strconv.Itoa(i)] = true, s
		}
		return inner, left
	}
	if slices.Contains(oneSchema, name) && !isList(value) {
		return map[string]any{"": value}, true
	}
	return inner, value
}

// isList tells a list of names, which dependencies may have, from a schema.
func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

func (w *walk) check(schema any, place string) error {
	if err := w.meta.Validate(schema); err != nil {
		return fmt.Errorf("is not a JSON Schema at %s: %s", cmp.Or(place, "its top"), found(err))
	}
	return nil
}

var way = regexp.MustCompile(`validating \S+: `)

// found is what a validation found, without the way there.
func found(err error) string {
	var all []string
	for line := range strings.Lines(err.Error()) {
		if at := way.FindAllStringIndex(line, -1); at != nil {
			line = line[at[len(at)-1][1]:]
		}
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "anyOf: ") {
			all = append(all, line)
		}
	}
	return strings.Join(all, "; ")
}

// weigh counts the parts that a part stands for, and finds those that stand for
// themselves.
func (w *walk) weigh(at string) (int, error) {
	p := w.parts[at]
	switch {
	case p == nil:
		return 0, fmt.Errorf("refers to #%s, where there is no schema", at)
	case p.onPath:
		return 0, fmt.Errorf("refers to #%s from within; a result schema cannot be recursive", at)
	case p.weight > 0:
		return p.weight, nil
	}
	p.onPath = true
	sum := 1
	for _, of := range p.of {
		n, err := w.weigh(of)
		if err != nil {
			return 0, err
		}
		if sum += n; sum > maxSchemaParts {
			return 0, fmt.Errorf("must not be of more than %d schemas, each reference counted as what it refers to", maxSchemaParts)
		}
	}
	p.onPath, p.weight = false, sum
	return sum, nil
}
