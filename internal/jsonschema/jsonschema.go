// Package jsonschema reads JSON Schemas that people write and validates the output
// of other programs against them. It limits the cost of a schema beforehand: a
// schema that refers to itself, or to one part very often, could take unlimited
// time or memory. A library parses and validates.
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
	// MaxBytes limits the text of a schema.
	MaxBytes = 64 << 10
	// MaxDepth limits how many schemas may be nested.
	MaxDepth = 32
	// MaxParts limits the number of subschemas, with each reference counted as the
	// schema that it refers to.
	MaxParts = 2000
	// MaxPatterns limits the steps of all regular expressions, counted the same
	// way; a repetition counts as often as it may repeat. The time to match a text
	// grows with this number multiplied by the length of the text.
	MaxPatterns = 5_000
)

// drafts are the supported drafts, by $schema.
var drafts = map[string]*jsonschema.Draft{
	"": jsonschema.Draft2020,
	"https://json-schema.org/draft/2020-12/schema": jsonschema.Draft2020,
	"http://json-schema.org/draft-07/schema#":      jsonschema.Draft7,
}

// Schema is a schema that validates values. Its methods may be called concurrently.
type Schema struct{ compiled *jsonschema.Schema }

// Parse reads a schema of draft 2020-12 or draft-07. The schema has to be
// self-contained: Parse fetches no references, neither from the network nor from the
// disk. Formats are not asserted. An error is a text for the schema's author, and
// begins with a verb.
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
			return nil, fmt.Errorf("is not a JSON Schema %w", describe(meta.Err))
		}
		return nil, fmt.Errorf("is not a JSON Schema that stands on its own: %w", err)
	}
	return &Schema{compiled}, nil
}

// Validate checks a value, as JSON decodes into any, against the schema. Its error
// tells what is wrong and where, and begins with "at".
func (s *Schema) Validate(value any) error {
	return describe(s.compiled.Validate(value))
}

// alone is a loader that loads nothing.
type alone struct{}

func (alone) Load(string) (any, error) { return nil, errors.New("nothing outside of it is read") }

// maxReported limits the number of reported errors.
const maxReported = 20

var english = message.NewPrinter(language.English)

// describe returns an error with all that is wrong with a value, by place.
func describe(err error) error {
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
		if i == maxReported {
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
