// Package jsonschema reads JSON Schemas that people write and programs of
// others are held against. What one may cost is bounded beforehand: a schema
// that refers to itself, or to the same part often enough, would take for ever,
// or the whole process with it. Reading and judging are the library's.
package jsonschema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

const (
	// MaxBytes is how long a schema may be.
	MaxBytes = 64 << 10
	// MaxDepth is how many schemas may be within each other.
	MaxDepth = 32
	// MaxParts is how many subschemas there may be once each reference stands
	// for what it refers to.
	MaxParts = 2000
	// MaxPatterns is how many steps the regular expressions may have in all,
	// counted the same way: a repetition is as many as it may repeat. To match a
	// text takes a time that grows with this times its length.
	MaxPatterns = 5_000
)

// drafts are those that a schema may be of, by $schema.
var drafts = map[string]*jsonschema.Draft{
	"": jsonschema.Draft2020,
	"https://json-schema.org/draft/2020-12/schema": jsonschema.Draft2020,
	"http://json-schema.org/draft-07/schema#":      jsonschema.Draft7,
}

// Schema is a schema to hold values against. It may be used concurrently.
type Schema struct{ compiled *jsonschema.Schema }

// Parse reads a schema of draft 2020-12 or draft-07. It has to stand on its
// own: nothing it refers to is fetched, from the disk neither. Formats are not
// asserted. An error is in words for the schema's author, and begins with a verb.
func Parse(text []byte) (*Schema, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("must have at most %d bytes", MaxBytes)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil || doc == nil {
		return nil, errors.New("must be an object")
	}
	named, _ := doc["$schema"].(string)
	draft, ok := drafts[named]
	if !ok {
		return nil, errors.New("$schema must be that of JSON Schema 2020-12 or draft-07")
	}
	if err := bound(doc); err != nil {
		return nil, err
	}
	const name = "urn:schema"
	c := jsonschema.NewCompiler()
	c.UseLoader(alone{})
	c.DefaultDraft(draft)
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %w", err)
	}
	compiled, err := c.Compile(name)
	if err != nil {
		if meta, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
			return nil, fmt.Errorf("is not a JSON Schema %w", told(meta.Err))
		}
		return nil, fmt.Errorf("is not a JSON Schema that stands on its own: %w", err)
	}
	return &Schema{compiled}, nil
}

// Validate holds a value, as JSON decodes into any, against the schema. Its
// error tells what is wrong and where, and begins with "at".
func (s *Schema) Validate(value any) error {
	return told(s.compiled.Validate(value))
}

// alone is a loader that loads nothing.
type alone struct{}

func (alone) Load(string) (any, error) { return nil, errors.New("nothing outside of it is read") }

// maxTold is how much of what is wrong is told.
const maxTold = 20

var english = message.NewPrinter(language.English)

// told is what is wrong with a value, by place.
func told(err error) error {
	wrong, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var all [][2]string // place and what is wrong there
	var visit func(*jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			visit(cause)
		}
		if len(e.Causes) == 0 {
			at := ""
			for _, name := range e.InstanceLocation {
				at += "/" + pointerEscapes.Replace(name)
			}
			all = append(all, [2]string{cmp.Or(at, "its top"), e.ErrorKind.LocalizedString(english)})
		}
	}
	visit(wrong)
	slices.SortFunc(all, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	all = slices.Compact(all)
	var b strings.Builder
	last := ""
	for i, e := range all {
		if i > 0 {
			b.WriteString("; ")
		}
		if i == maxTold {
			fmt.Fprintf(&b, "and %d more", len(all)-i)
			break
		}
		if i == 0 || e[0] != last {
			fmt.Fprintf(&b, "at %s: ", e[0])
		}
		last = e[0]
		b.WriteString(e[1])
	}
	return errors.New(b.String())
}
