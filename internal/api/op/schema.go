package op

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemas collects named struct types under root, "#/components/schemas/".
type schemas struct {
	root  string
	named map[string]*jsonschema.Schema
	types map[string]reflect.Type
	told  map[*jsonschema.Schema]any // what example tags say

	meaning func(slug string) string
}

func newSchemas(root string) *schemas {
	return &schemas{root: root, named: map[string]*jsonschema.Schema{}, types: map[string]reflect.Type{}, told: map[*jsonschema.Schema]any{}}
}

// opaque types are scalars on the wire although structs in Go.
func opaque(t reflect.Type) bool { return t == reflect.TypeFor[time.Time]() }

func (d *schemas) of(t reflect.Type) *jsonschema.Schema {
	if opaque(t) {
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
		return &jsonschema.Schema{Type: "integer"}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return anything()
		}
		return &jsonschema.Schema{Type: "array", Items: d.of(t.Elem())}
	case reflect.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: d.of(t.Elem())}
	case reflect.Interface:
		return anything()
	case reflect.Struct:
		name := schemaName(t)
		if name == "" {
			return d.object(compile(t, nil))
		}
		if other, ok := d.types[name]; ok && other != t {
			panic(fmt.Sprintf("op: two types want the schema name %s: %v and %v", name, other, t))
		}
		if d.named[name] == nil {
			d.types[name] = t
			d.named[name] = &jsonschema.Schema{} // ends cycles
			*d.named[name] = *d.object(compile(t, nil))
			d.named[name].Description = about(t)
		}
		return &jsonschema.Schema{Ref: d.root + name}
	}
	panic(fmt.Sprintf("op: no schema for %v", t))
}

// about is the doc tag of a struct's own blank field.
func about(t reflect.Type) string {
	for i := range t.NumField() {
		if f := t.Field(i); f.Name == "_" {
			return f.Tag.Get("doc")
		}
	}
	return ""
}

// anything is a schema in more words than it takes: some readers know no schema
// written as true, and none by which null is a value without being named.
func anything() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Description: "Any JSON value."}, {Type: "null"}}}
}

// schemaName is the Go type's name; Page[task.Task] becomes TaskPage.
func schemaName(t reflect.Type) string {
	name, arg, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return name
	}
	arg = strings.TrimSuffix(arg, "]")
	return arg[strings.LastIndexAny(arg, "./")+1:] + name
}

func (d *schemas) object(s *shape) *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	if s.open {
		out.AdditionalProperties = &jsonschema.Schema{}
	}
	for i := range s.fields {
		f := &s.fields[i]
		out.Properties[f.name] = d.field(f)
		out.PropertyOrder = append(out.PropertyOrder, f.name)
		// An answer's pointer is always there, though it may be null.
		if f.required || f.Type.Kind() == reflect.Pointer && !strings.Contains(f.Tag.Get("json"), "omit") {
			out.Required = append(out.Required, f.name)
		}
	}
	return out
}

func (d *schemas) field(f *field) *jsonschema.Schema {
	s := d.of(f.Type)
	target := s
	if s.Type == "array" && f.Type.Kind() == reflect.Slice && s.Items.Ref == "" {
		target = s.Items
	}
	if s.Type == "object" && s.AdditionalProperties != nil && s.Ref == "" {
		target = s.AdditionalProperties // of a map, whose checks are of its values
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
		target.Pattern, target.MinLength, target.MaxLength = f.Tag.Get("pattern"), whole("minLength"), whole("maxLength")
		target.Minimum, target.Maximum = num("minimum"), num("maximum")
		if form := f.Tag.Get("format"); form != "" {
			target.Format = form
		}
		if e := f.Tag.Get("enum"); e != "" {
			for _, v := range strings.Split(e, ",") {
				target.Enum = append(target.Enum, v)
			}
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
	if f.Type.Kind() == reflect.Pointer && !strings.Contains(f.Tag.Get("json"), "omit") {
		s = nullable(s)
	}
	if doc := f.Tag.Get("doc"); doc != "" {
		s.Description = doc
	}
	if v, ok := f.Tag.Lookup("example"); ok {
		d.told[s] = literal(s, v)
	}
	return s
}

func nullable(s *jsonschema.Schema) *jsonschema.Schema {
	if len(s.AnyOf) > 0 {
		return s // anything, which may be null
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
