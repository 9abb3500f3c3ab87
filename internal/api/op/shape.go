package op

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

type where uint8

const (
	inBody where = iota
	inPath
	inQuery
	inHeader
)

func (w where) String() string { return [...]string{"body", "path", "query", "header"}[w] }

// shape is what the tags of a struct say, compiled once.
type shape struct {
	fields []field
	byName map[string]*field
	body   bool // some field travels in the body
	need   bool // some body field is required
	open   bool // it may have members that nobody knows beforehand
}

type field struct {
	reflect.StructField
	name     string
	where    where
	required bool
	also     bool    // a member of the body that the query may hold instead
	checks   []check // of the value, or of each element of a list
	maxItems int
	elem     *shape // of a struct, or of the elements of a slice or map of structs
}

// check answers what is wrong with a value, or "".
type check func(reflect.Value) string

// inputShape decides where each field travels.
func inputShape(r *Row, t reflect.Type) *shape {
	s := compile(t, nil)
	path := map[string]bool{}
	for _, seg := range strings.Split(r.Path, "/") {
		if strings.HasPrefix(seg, "{") && strings.HasSuffix(seg, "}") {
			path[strings.TrimSuffix(strings.Trim(seg, "{}"), "...")] = true
		}
	}
	kept := s.fields[:0]
	for _, f := range s.fields {
		switch {
		case f.Tag.Get("header") != "":
			f.where, f.name, f.required = inHeader, f.Tag.Get("header"), f.Tag.Get("required") == "true"
		case path[f.name]:
			f.where, f.required = inPath, true
			delete(path, f.name)
		case f.Tag.Get("paging") != "":
			if !r.Paging.publishes(f.name) {
				continue
			}
			f.where, f.required = inQuery, false
		case r.Method == "GET" || r.Method == "DELETE":
			f.where = inQuery
			f.required = f.Tag.Get("required") == "true"
		default:
			f.also = f.Tag.Get("also") == "query"
			s.body = true
			s.need = s.need || f.required
		}
		kept = append(kept, f)
	}
	for name := range path {
		panic(fmt.Sprintf("op %s: path parameter {%s} is no field of %v", r.ID, name, t))
	}
	s.fields = kept
	s.index()
	return s
}

func (s *shape) index() {
	s.byName = make(map[string]*field, len(s.fields))
	for i := range s.fields {
		s.byName[s.fields[i].name] = &s.fields[i]
	}
}

// compile reads the tags of a struct. The stack ends recursive types.
func compile(t reflect.Type, stack []reflect.Type) *shape {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("op: %v is not a struct", t))
	}
	for _, up := range stack {
		if up == t {
			return nil
		}
	}
	stack = append(stack, t)
	s := &shape{}
	for _, sf := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if opts == "embed" {
			s.open = true
			continue
		}
		if !sf.IsExported() || sf.Anonymous && name == "" || name == "-" {
			continue
		}
		if name == "" && sf.Tag.Get("header") == "" {
			panic(fmt.Sprintf("op: %v.%s has no json name", t, sf.Name))
		}
		f := field{StructField: sf, name: name, checks: checks(sf)}
		f.required = !strings.Contains(opts, "omit") && sf.Type.Kind() != reflect.Pointer || sf.Tag.Get("required") == "true"
		if v := sf.Tag.Get("maxItems"); v != "" {
			f.maxItems, _ = strconv.Atoi(v)
		}
		el := sf.Type
		for el.Kind() == reflect.Pointer || el.Kind() == reflect.Slice || el.Kind() == reflect.Map {
			el = el.Elem()
		}
		if el.Kind() == reflect.Struct && !opaque(el) {
			f.elem = compile(el, stack)
		}
		s.fields = append(s.fields, f)
	}
	s.index()
	return s
}

func checks(sf reflect.StructField) (out []check) {
	number := func(key string) (float64, bool) {
		v, ok := sf.Tag.Lookup(key)
		if !ok {
			return 0, false
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			panic(fmt.Sprintf("op: tag %s of %s: %v", key, sf.Name, err))
		}
		return n, true
	}
	if n, ok := number("minLength"); ok {
		out = append(out, func(v reflect.Value) string {
			if utf8.RuneCountInString(v.String()) < int(n) {
				if n == 1 {
					return "must not be empty"
				}
				return fmt.Sprintf("must have at least %d characters", int(n))
			}
			return ""
		})
	}
	if n, ok := number("maxLength"); ok {
		out = append(out, func(v reflect.Value) string {
			if s := v.String(); len(s) > int(n) && utf8.RuneCountInString(s) > int(n) {
				return fmt.Sprintf("must have at most %d characters", int(n))
			}
			return ""
		})
	}
	if p := sf.Tag.Get("pattern"); p != "" {
		re, wrong := regexp.MustCompile(p), "must match "+p
		if says, ok := spelled[p]; ok {
			wrong = says
		}
		out = append(out, func(v reflect.Value) string {
			if !re.MatchString(v.String()) {
				return wrong
			}
			return ""
		})
	}
	if e := sf.Tag.Get("enum"); e != "" {
		list := strings.Split(e, ",")
		out = append(out, func(v reflect.Value) string {
			s := v.String()
			for _, x := range list {
				if s == x {
					return ""
				}
			}
			return "must be one of " + strings.Join(list, ", ")
		})
	}
	if n, ok := number("minimum"); ok {
		out = append(out, func(v reflect.Value) string {
			if numeric(v) < n {
				return "must be at least " + strconv.FormatFloat(n, 'f', -1, 64)
			}
			return ""
		})
	}
	if n, ok := number("maximum"); ok {
		out = append(out, func(v reflect.Value) string {
			if numeric(v) > n {
				return "must be at most " + strconv.FormatFloat(n, 'f', -1, 64)
			}
			return ""
		})
	}
	return out
}

// spelled says for people what common patterns ask for.
var spelled = map[string]string{
	`^[^/]+/[^/]+$`:              "must have the form OWNER/NAME",
	`^[^/\s]+/[^/\s]+$`:          "must have the form OWNER/NAME",
	`^[^@\s]+@[^@\s]+$`:          "must be an e-mail address",
	`^[^@\s<>]+@[^@\s<>]+$`:      "must be an e-mail address",
	`^[0-9a-f]{40}$`:             "must be the 40 hexadecimal digits of a commit",
	`^[0-9]{4}-(0[1-9]|1[0-2])$`: "must have the form YYYY-MM",
}

func numeric(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	}
	return v.Float()
}

// errs collects messages by dotted path.
type errs map[string][]string

func (e *errs) add(path, msg string) {
	if *e == nil {
		*e = errs{}
	}
	(*e)[path] = append((*e)[path], msg)
}

// check runs the compiled checks on a decoded struct. Zero values of optional
// fields were absent.
func (s *shape) check(v reflect.Value, prefix string, e *errs) {
	for i := range s.fields {
		f := &s.fields[i]
		if len(f.checks) == 0 && f.elem == nil {
			continue
		}
		fv := v.FieldByIndex(f.Index)
		if !f.required && fv.IsZero() {
			continue
		}
		f.check(fv, prefix+f.name, e)
	}
}

func (f *field) check(v reflect.Value, path string, e *errs) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Slice:
		if f.maxItems > 0 && v.Len() > f.maxItems {
			e.add(path, fmt.Sprintf("must have at most %d entries", f.maxItems))
			return
		}
		for i := range v.Len() {
			f.one(reflect.Indirect(v.Index(i)), path+"."+strconv.Itoa(i), e)
		}
	case reflect.Map:
		if f.maxItems > 0 && v.Len() > f.maxItems {
			e.add(path, fmt.Sprintf("must have at most %d entries", f.maxItems))
			return
		}
		for it := v.MapRange(); it.Next(); {
			f.one(reflect.Indirect(it.Value()), path+"."+it.Key().String(), e)
		}
	default:
		f.one(v, path, e)
	}
}

// one checks a single value: the field itself or an element of it.
func (f *field) one(v reflect.Value, path string, e *errs) {
	for _, c := range f.checks {
		if m := c(v); m != "" {
			e.add(path, m)
			return
		}
	}
	if f.elem != nil && v.Kind() == reflect.Struct {
		f.elem.check(v, path+".", e)
	}
}
