package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/op"
)

// schemas collects named struct types under root, "#/components/schemas/".
type schemas struct {
	*About
	root     string
	flat     bool // anything is a list of all types
	shared   shared
	named    map[string]*jsonschema.Schema
	types    map[string]reflect.Type
	examples map[*jsonschema.Schema]any // values of example tags
}

// Decimal is the pattern of a number that is sent as text, because the value must be
// exact.
const Decimal = `^-?[0-9]+(\.[0-9]+)?$`

func newSchemas(root string, about *About) *schemas {
	return &schemas{
		About: about, root: root,
		named: map[string]*jsonschema.Schema{}, types: map[string]reflect.Type{}, examples: map[*jsonschema.Schema]any{},
	}
}

func (d *schemas) of(t reflect.Type) *jsonschema.Schema {
	if op.Opaque(t) {
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.of(t.Elem())
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return &jsonschema.Schema{Type: "integer", Format: "int64"}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number", Format: "double"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return d.anything()
		}
		return &jsonschema.Schema{Type: "array", Items: d.of(t.Elem())}
	case reflect.Map:
		if d.flat && t.Elem().Kind() == reflect.Interface {
			return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{}}
		}
		return &jsonschema.Schema{Type: "object", AdditionalProperties: d.of(t.Elem())}
	case reflect.Interface:
		return d.anything()
	case reflect.Struct:
		name := schemaName(t)
		if name == "" {
			return d.object(op.ShapeOf(t))
		}
		if other, ok := d.types[name]; ok && other != t {
			panic(fmt.Sprintf("op: two types want the schema name %s: %v and %v", name, other, t))
		}
		if d.named[name] == nil {
			d.types[name] = t
			d.named[name] = &jsonschema.Schema{} // ends cycles
			*d.named[name] = *d.object(op.ShapeOf(t))
			d.named[name].Description = own(t, "doc")
		}
		return &jsonschema.Schema{Ref: d.root + name}
	}
	panic(fmt.Sprintf("op: no schema for %v", t))
}

// anything returns a schema that accepts every value. It spells that out, because
// some readers do not know the schema true, and none takes null for a value unless
// it is named. A flat one lists the types: clients of tools take no schema without any.
func (d *schemas) anything() *jsonschema.Schema {
	if d.flat {
		return &jsonschema.Schema{Types: []string{"object", "array", "string", "number", "boolean", "null"}}
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Description: "Any JSON value."}, {Type: "null"}}}
}

func (d *schemas) object(s *op.Shape) *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	if s.Open {
		out.AdditionalProperties = &jsonschema.Schema{}
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		out.Properties[f.Name] = d.field(f)
		out.PropertyOrder = append(out.PropertyOrder, f.Name)
		// An answer's pointer is always present, though it may be null.
		if f.Required || f.Type.Kind() == reflect.Pointer && !strings.Contains(f.Tag.Get("json"), "omit") {
			out.Required = append(out.Required, f.Name)
		}
	}
	return out
}

func (d *schemas) field(f *op.Field) *jsonschema.Schema {
	s := d.of(f.Type)
	target := s
	if s.Type == "array" && f.Type.Kind() == reflect.Slice && s.Items.Ref == "" {
		target = s.Items
	}
	if s.Type == "object" && s.AdditionalProperties != nil && s.Ref == "" {
		target = s.AdditionalProperties // the checks of a map are those of its values
	}
	num := func(k string) *float64 {
		if v, err := strconv.ParseFloat(f.Tag.Get(k), 64); err == nil {
			return &v
		}
		return nil
	}
	whole := func(k string) *int {
		if v, err := strconv.Atoi(f.Tag.Get(k)); err == nil {
			return &v
		}
		return nil
	}
	if target.Ref == "" {
		target.Pattern = f.Tag.Get("pattern")
		target.MinLength, target.MaxLength = whole("minLength"), whole("maxLength")
		target.Minimum, target.Maximum = num("minimum"), num("maximum")
		if form := f.Tag.Get("format"); form != "" {
			target.Format = form
		}
		if target.Format == "decimal" {
			target.Pattern = Decimal
		}
		for _, v := range op.Values(f.StructField) {
			target.Enum = append(target.Enum, v)
		}
	}
	if s.Type == "object" {
		s.MaxProperties = whole("maxItems")
	} else {
		s.MaxItems = whole("maxItems")
	}
	if v, ok := f.Tag.Lookup("default"); ok {
		s.Default = json.RawMessage(v)
		if s.Type == "string" {
			s.Default, _ = json.Marshal(v)
		}
	}
	// A member that may be left out takes null only if that has a meaning of its own.
	if f.Type.Kind() == reflect.Pointer && !strings.Contains(f.Tag.Get("json"), "omit") || f.Tag.Get("null") != "" {
		s = nullable(s)
	}
	if doc := f.Tag.Get("doc"); doc != "" {
		s.Description = doc + d.known(f, s)
	}
	if v, ok := f.Tag.Lookup("example"); ok {
		d.examples[s] = literal(s, v)
	}
	return s
}

// known lists the values that a field of an open kind may have as examples, and returns
// the words for them. It panics if a document that knows values lacks those of the
// field.
func (d *schemas) known(f *op.Field, s *jsonschema.Schema) string {
	name := f.Tag.Get("known")
	if name == "" || d.About.Known == nil {
		return ""
	}
	all := d.About.Known[name]
	if len(all) == 0 {
		panic(fmt.Sprintf("op: no values are known as %q", name))
	}
	for _, v := range all {
		s.Examples = append(s.Examples, v)
	}
	return ". Known are " + strings.Join(all, ", ") + "; there may be others."
}

func nullable(s *jsonschema.Schema) *jsonschema.Schema {
	if len(s.AnyOf) > 0 || len(s.Types) > 0 {
		return s // anything, which accepts null
	}
	if s.Ref != "" || s.Type == "" {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
	}
	s.Types, s.Type = []string{s.Type, "null"}, ""
	if len(s.Enum) > 0 {
		s.Enum = append(s.Enum, nil)
	}
	return s
}
