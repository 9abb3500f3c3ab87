package op

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/fault"
)

// bind fills in, a pointer to the In of the op, from a call and checks the fields. It
// fails with fault.Invalid, fault.TooLarge and fault.UnsupportedMedia.
func (o *Op) bind(c *Call, in any) error {
	v := reflect.ValueOf(in).Elem()
	var e errs
	sent, err := o.parameters(c, v, &e)
	if err != nil {
		return err
	}
	var keys map[string]bool
	switch {
	case o.in.Body && c.Arguments != nil:
		keys = o.assign(c.members, in, &e)
	case o.in.Body:
		if keys, err = o.body(c, in, &e); err != nil {
			return err
		}
	case c.Body != nil && c.Length > 0:
		// A body that no field is read from is a mistake that the caller should
		// know of. Many clients send {} or null by habit; that is none.
		if err := o.noBody(c); err != nil {
			return err
		}
	}
	for i := range o.in.Fields {
		f := &o.in.Fields[i]
		if f.Also && keys[f.Name] && sent(f.Name) {
			e.add(f.Name, "was sent in the query and in the body")
		}
		if !f.Required {
			continue
		}
		missing := f.Where == InBody && keys != nil && !keys[f.Name] || (f.Where == InQuery || f.Where == InHeader) && !sent(f.Name)
		if missing && e[f.Name] == nil {
			e.add(f.Name, "is required")
		}
	}
	o.in.checkSent(v, func(f *Field) bool {
		return f.Where == InPath || f.Where == InBody && keys[f.Name] || (f.Where != InBody || f.Also) && sent(f.Name)
	}, &e)
	if p, ok := in.(interface{ page() *PageIn }); ok {
		p.page().settle(&o.Row, sent, &e)
	}
	if len(e) > 0 {
		return invalid(e)
	}
	return nil
}

// Check tells what is wrong with a JSON body, by field, without a call of the op; nil: it is what the op takes. No
// input of the op may travel elsewhere.
func (o *Op) Check(body []byte) (wrong map[string][]string) {
	c := &Call{Op: o, Sent: Sent{ContentType: "application/json", Body: bytes.NewReader(body), Length: int64(len(body))}}
	_, _ = o.run(context.Background(), func(in any) error {
		var f *fault.Error
		if errors.As(o.bind(c, in), &f) {
			if wrong = f.Fields; wrong == nil { // it is too large
				wrong = map[string][]string{"": {f.Detail}}
			}
		}
		return errChecked // else the handler were called
	})
	return wrong
}

var errChecked = errors.New("it was only checked")

func (p *PageIn) page() *PageIn { return p }

func invalid(e errs) *fault.Error {
	f := fault.New(fault.Invalid, "", "The request has invalid fields.")
	f.Fields = e
	return f
}

// checkSent runs the checks of the fields that are present, also of zero values.
func (s *Shape) checkSent(v reflect.Value, present func(*Field) bool, e *errs) {
	for i := range s.Fields {
		f := &s.Fields[i]
		if (len(f.checks) > 0 || f.elem != nil || f.maxItems > 0) && present(f) && (*e)[f.Name] == nil {
			f.check(v.FieldByIndex(f.Index), f.Name, e)
		}
	}
}

// parameters reads path, query and headers into v. sent tells whether a field was in
// the query or the headers. parameters fails with fault.Invalid.
func (o *Op) parameters(c *Call, v reflect.Value, e *errs) (sent func(string) bool, err error) {
	q := c.query
	if c.Query != "" {
		if q, err = url.ParseQuery(c.Query); err != nil {
			return nil, fault.Field("", "the query string is malformed")
		}
	}
	seen := 0
	for i := range o.in.Fields {
		f := &o.in.Fields[i]
		fv := v.FieldByIndex(f.Index)
		switch f.Where {
		case InPath:
			if text := c.path(f.Name); !isText(text) { // possible in Arguments; surfaces refuse such paths
				e.add(f.Name, notText)
			} else if !set(fv, text) {
				e.add(f.Name, "must be "+kindName(fv.Type()))
			}
		case InHeader:
			if v := c.Header(f.Name); !isText(v) {
				e.add(f.Name, notText)
			} else {
				set(fv, v)
			}
		case InBody:
			if vals := q[f.Name]; !f.Also || len(vals) == 0 {
				continue
			} else if seen++; len(vals) > 1 {
				e.add(f.Name, "was sent twice")
			} else if !isText(vals[0]) || !set(fv, vals[0]) {
				e.add(f.Name, "must be "+kindName(fv.Type()))
			}
		case InQuery:
			vals, ok := q[f.Name]
			if !ok {
				if d := f.Tag.Get("default"); d != "" {
					set(fv, d)
				}
				continue
			}
			seen++
			if slices.ContainsFunc(vals, func(v string) bool { return !isText(v) }) {
				e.add(f.Name, notText)
			} else if fv.Kind() == reflect.Slice {
				fv.Set(reflect.ValueOf(vals))
			} else if len(vals) > 1 {
				e.add(f.Name, "was sent twice")
			} else if !set(fv, vals[0]) {
				e.add(f.Name, "must be "+kindName(fv.Type()))
			}
		}
	}
	if seen != len(q) && !o.Lenient {
		for k := range q {
			if f := o.in.byName[k]; f != nil && (f.Where == InQuery || f.Also) {
				continue
			}
			if gone := o.removed(k); gone != nil {
				return nil, gone
			}
			e.add(clip(k), "is not a parameter of this route")
		}
	}
	return func(name string) bool {
		if f := o.in.byName[name]; f != nil && f.Where == InHeader {
			return c.Header(name) != ""
		}
		return q.Has(name)
	}, nil
}

// isText tells whether a string can be stored. PostgreSQL takes no NUL; neither
// database takes bytes that are not UTF-8, nor does JSON.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

const notText = "must be UTF-8 text without NUL"

func set(v reflect.Value, s string) bool {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if !set(p.Elem(), s) {
			return false
		}
		v.Set(p)
		return true
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return false
		}
		v.SetInt(n)
	case reflect.Bool:
		if s != "true" && s != "false" {
			return false
		}
		v.SetBool(s == "true")
	default:
		return false
	}
	return true
}

func kindName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint, reflect.Uint64, reflect.Uint32:
		return "an integer"
	case reflect.Float64, reflect.Float32:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a JSON value"
		}
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a string"
}
