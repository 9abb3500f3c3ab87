package openapi

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// Samples is the material for examples.
type Samples struct {
	BaseURL string // of the server, without a trailing slash
	// Names are examples of members by their names, or by the part of the name
	// after the last _.
	Names map[string]string
	// Formats are examples of strings by their format; the one for date-time is
	// also used for members that end in _at or _iso.
	Formats map[string]string
	// Patterned are tried, in this order, if the schema has a pattern.
	Patterned []string
	// Any is the name of a member if names are free.
	Any string
}

// sample returns an example of a schema; ok is false if it cannot make one. name is
// the name of the member, stack the types that contain it.
func (d *schemas) sample(name string, s *jsonschema.Schema, stack []string) (v any, ok bool) {
	if v, ok := d.examples[s]; ok {
		return v, true
	}
	if ref, is := strings.CutPrefix(s.Ref, d.root); is && s.Ref != "" {
		if slices.Contains(stack, ref) {
			return nil, false
		}
		return d.sample(name, d.named[ref], append(slices.Clone(stack), ref))
	}
	switch {
	case s.Default != nil:
		return s.Default, true
	case len(s.Examples) > 0:
		return s.Examples[0], true
	case len(s.Enum) > 0:
		return s.Enum[0], true
	case len(s.AnyOf) > 0:
		if v, ok := d.sample(name, s.AnyOf[0], stack); ok {
			return v, true
		}
		return nil, s.AnyOf[len(s.AnyOf)-1].Type == "null"
	case name == "next_cursor":
		return nil, true
	}
	kind := s.Type
	if len(s.Types) > 0 {
		kind = s.Types[0]
	}
	switch kind {
	case "object":
		return d.sampleObject(s, stack)
	case "array":
		if v, ok := d.sample(strings.TrimSuffix(name, "s"), s.Items, stack); ok {
			return []any{v}, true
		}
		return []any{}, true
	case "string":
		return d.Samples.text(name, s)
	case "boolean":
		return true, true
	case "integer", "number":
		return sampleNumber(s), true
	}
	return object{}, kind == ""
}

// sampleObject fills the required members, or one if none is required.
func (d *schemas) sampleObject(s *jsonschema.Schema, stack []string) (any, bool) {
	out := object{}
	for _, name := range s.Required {
		v, ok := d.sample(name, s.Properties[name], stack)
		if !ok {
			return nil, false
		}
		out[name] = v
	}
	for _, name := range s.PropertyOrder {
		if _, told := d.examples[s.Properties[name]]; !told && len(out) > 0 {
			continue
		}
		if v, ok := d.sample(name, s.Properties[name], stack); ok {
			out[name] = v
		}
	}
	if more := s.AdditionalProperties; more != nil && more.Not == nil && len(s.Properties) == 0 {
		if v, ok := d.sample("", more, stack); ok {
			out[d.Samples.Any] = v
		}
	}
	return out, true
}

func (x *Samples) text(name string, s *jsonschema.Schema) (string, bool) {
	var list []string
	switch last := name[strings.LastIndexByte(name, '_')+1:]; {
	case x.Formats[s.Format] != "":
		return x.Formats[s.Format], true
	case x.Names[name] != "":
		list = append(list, x.Names[name])
	case last == "iso" || last == "at":
		list = append(list, x.Formats["date-time"])
	case x.Names[last] != "":
		list = append(list, x.Names[last])
	}
	if s.Pattern == "" && name != "" { // a poor example, which a test finds
		list = append(list, strings.ReplaceAll(name, "_", " "))
	}
	list = append(list, x.Patterned...)
	var like *regexp.Regexp
	if s.Pattern != "" {
		like = regexp.MustCompile(s.Pattern)
	}
	for _, v := range list {
		n := utf8.RuneCountInString(v)
		if s.MinLength != nil && n < *s.MinLength {
			v += strings.Repeat(" and more", *s.MinLength/9+1)
			n = len(v)
		}
		if (s.MaxLength == nil || n <= *s.MaxLength) && (like == nil || like.MatchString(v)) {
			return v, true
		}
	}
	return "", false
}

func sampleNumber(s *jsonschema.Schema) any {
	n := 1.0
	if s.Minimum != nil {
		n = math.Max(n, *s.Minimum)
	}
	if s.Maximum != nil {
		n = math.Min(n, *s.Maximum)
	}
	return n
}

// literal returns the value of an example tag: JSON, or a string without its
// quotes; null if the schema allows it.
func literal(s *jsonschema.Schema, tag string) any {
	switch {
	case tag == "null" && slices.Contains(s.Types, "null"):
		return nil
	case s.Type == "string" || slices.Contains(s.Types, "string"):
		return tag
	}
	var v any
	if json.Unmarshal([]byte(tag), &v) != nil {
		return tag
	}
	return v
}

// line returns an example of a schema as one line of JSON.
func (d *schemas) line(s *jsonschema.Schema) string {
	v, _ := d.sample("", s, nil)
	b, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}
