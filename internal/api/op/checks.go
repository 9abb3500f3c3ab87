package op

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// check returns what is wrong with a value, or "".
type check func(reflect.Value) string

// checks compiles the tags of a field. It panics if a tag is not a number where it
// must be one, or no regular expression.
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
		if says := sf.Tag.Get("says"); says != "" {
			wrong = says
		}
		out = append(out, func(v reflect.Value) string {
			if !re.MatchString(v.String()) {
				return wrong
			}
			return ""
		})
	}
	if sf.Tag.Get("format") == "email" {
		out = append(out, func(v reflect.Value) string {
			if !IsAddress(v.String()) {
				return noAddress
			}
			return ""
		})
	}
	if list := Values(sf); len(list) > 0 {
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

// Values lists the values that a field may have; none: it may have any. Those of a type
// that has a method Values are its own, and a tag or names one more; a tag enum is for the
// values of one field.
func Values(sf reflect.StructField) (all []string) {
	if e := sf.Tag.Get("enum"); e != "" {
		return strings.Split(e, ",")
	}
	t := sf.Type
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.String || !t.Implements(valued) {
		return nil
	}
	all = reflect.Zero(t).Interface().(interface{ Values() []string }).Values()
	if more, ok := sf.Tag.Lookup("or"); ok {
		all = append(all, more)
	}
	return all
}

var valued = reflect.TypeFor[interface{ Values() []string }]()

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

// check runs the compiled checks on a decoded struct. It takes optional fields with
// zero values for absent.
func (s *Shape) check(v reflect.Value, prefix string, e *errs) {
	for i := range s.Fields {
		f := &s.Fields[i]
		if len(f.checks) == 0 && f.elem == nil {
			continue
		}
		fv := v.FieldByIndex(f.Index)
		if !f.Required && fv.IsZero() {
			continue
		}
		f.check(fv, prefix+f.Name, e)
	}
}

func (f *Field) check(v reflect.Value, path string, e *errs) {
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

// one checks a single value: that of the field, or an element of it.
func (f *Field) one(v reflect.Value, path string, e *errs) {
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
