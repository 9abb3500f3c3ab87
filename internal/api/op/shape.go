package op

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Where is the place of an input in a request.
type Where uint8

// The places of an input.
const (
	InBody Where = iota
	InPath
	InQuery
	InHeader
)

func (w Where) String() string { return [...]string{"body", "path", "query", "header"}[w] }

// Shape is a struct with its tags, compiled once.
type Shape struct {
	Fields []Field
	Body   bool // at least one field travels in the body
	Need   bool // at least one field of the body is required
	Open   bool // the struct may have further members, with any name

	byName map[string]*Field
}

// Field is a field of a struct that is sent or answered.
type Field struct {
	reflect.StructField
	Name     string // of the member or parameter; it hides the name of the StructField
	Where    Where
	Required bool
	Also     bool // a member of the body that the query may hold instead

	checks   []check // of the value, or of each element of a list
	maxItems int
	elem     *Shape // of a struct, or of the elements of a slice or map of structs
}

// inputShape compiles the In of a row and decides where each field travels. It panics
// if a path parameter is no field of t.
func inputShape(r *Row, t reflect.Type) *Shape {
	s := compile(t, nil)
	path := map[string]bool{}
	for _, seg := range strings.Split(r.Path, "/") {
		if strings.HasPrefix(seg, "{") && strings.HasSuffix(seg, "}") {
			path[strings.TrimSuffix(strings.Trim(seg, "{}"), "...")] = true
		}
	}
	kept := s.Fields[:0]
	for _, f := range s.Fields {
		switch {
		case f.Tag.Get("header") != "":
			f.Where, f.Name, f.Required = InHeader, f.Tag.Get("header"), f.Tag.Get("required") == "true"
		case path[f.Name]:
			f.Where, f.Required = InPath, true
			delete(path, f.Name)
		case f.Tag.Get("paging") != "":
			if !r.Paging.publishes(f.Name) {
				continue
			}
			f.Where, f.Required = InQuery, false
		case r.Method == "GET" || r.Method == "DELETE":
			f.Where = InQuery
			f.Required = f.Tag.Get("required") == "true"
		default:
			f.Also = f.Tag.Get("also") == "query"
			s.Body = true
			s.Need = s.Need || f.Required
		}
		kept = append(kept, f)
	}
	for name := range path {
		panic(fmt.Sprintf("op %s: path parameter {%s} is no field of %v", r.ID, name, t))
	}
	s.Fields = kept
	s.index()
	return s
}

func (s *Shape) index() {
	s.byName = make(map[string]*Field, len(s.Fields))
	for i := range s.Fields {
		s.byName[s.Fields[i].Name] = &s.Fields[i]
	}
}

// ShapeOf compiles the tags of a struct that is no In. It panics if t is not a struct,
// and for a field without a JSON name.
func ShapeOf(t reflect.Type) *Shape { return compile(t, nil) }

// Opaque tells whether a struct type of Go is a scalar in JSON, such as time.Time.
func Opaque(t reflect.Type) bool { return t == reflect.TypeFor[time.Time]() }

// compile reads the tags of a struct. The stack holds the structs around t: compile
// returns nil for a type that contains itself.
func compile(t reflect.Type, stack []reflect.Type) *Shape {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("op: %v is not a struct", t))
	}
	for _, up := range stack {
		if up == t {
			return nil
		}
	}
	stack = append(stack, t)
	s := &Shape{}
	for _, sf := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if opts == "embed" {
			s.Open = true
			continue
		}
		if !sf.IsExported() || sf.Anonymous && name == "" || name == "-" {
			continue
		}
		if name == "" && sf.Tag.Get("header") == "" {
			panic(fmt.Sprintf("op: %v.%s has no json name", t, sf.Name))
		}
		f := Field{StructField: sf, Name: name, checks: checks(sf)}
		f.Required = !strings.Contains(opts, "omit") && sf.Type.Kind() != reflect.Pointer
		if tag, ok := sf.Tag.Lookup("required"); ok {
			f.Required = tag == "true"
		}
		if v := sf.Tag.Get("maxItems"); v != "" {
			f.maxItems, _ = strconv.Atoi(v)
		}
		el := sf.Type
		for el.Kind() == reflect.Pointer || el.Kind() == reflect.Slice || el.Kind() == reflect.Map {
			el = el.Elem()
		}
		if el.Kind() == reflect.Struct && !Opaque(el) {
			f.elem = compile(el, stack)
		}
		s.Fields = append(s.Fields, f)
	}
	s.index()
	return s
}
