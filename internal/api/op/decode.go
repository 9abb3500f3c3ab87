package op

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/fault"
)

var (
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	strict  = json.JoinOptions(json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(false))
)

// bind fills the In of an op from a request and checks it.
func (o *Op) bind(req *http.Request, in any) error {
	if body, ok := in.(*[]byte); ok {
		return o.bindRaw(req, body)
	}
	return o.fill(req, in, o.body)
}

// fill is bind with a body that is read by another function, which answers the
// top-level members that were there.
func (o *Op) fill(req *http.Request, in any, body func(*http.Request, any, *errs) (map[string]bool, error)) error {
	v := reflect.ValueOf(in).Elem()
	var e errs
	sent, err := o.parameters(req, v, &e)
	if err != nil {
		return err
	}
	var keys map[string]bool
	if o.in.body {
		if keys, err = body(req, in, &e); err != nil {
			return err
		}
	} else if req.ContentLength > 0 {
		// A body where none is read is a mistake worth telling, but {} and
		// the like from habit are not.
		if err := o.noBody(req); err != nil {
			return err
		}
	}
	for i := range o.in.fields {
		f := &o.in.fields[i]
		if f.also && keys[f.name] && sent(f.name) {
			e.add(f.name, "was sent in the query and in the body")
		}
		if !f.required {
			continue
		}
		missing := f.where == inBody && keys != nil && !keys[f.name] || (f.where == inQuery || f.where == inHeader) && !sent(f.name)
		if missing && e[f.name] == nil {
			e.add(f.name, "is required")
		}
	}
	o.in.checkSent(v, func(f *field) bool {
		return f.where == inPath || f.where == inBody && keys[f.name] || (f.where != inBody || f.also) && sent(f.name)
	}, &e)
	if p, ok := in.(interface{ page() *PageIn }); ok {
		p.page().settle(&o.Row, sent, &e)
	}
	if len(e) > 0 {
		return invalid(e)
	}
	return nil
}

func (p *PageIn) page() *PageIn { return p }

func invalid(e errs) *fault.Error {
	f := fault.New(fault.Invalid, "", "The request has invalid fields.")
	f.Fields = e
	return f
}

// checkSent runs the checks of the fields that were present, zero or not.
func (s *shape) checkSent(v reflect.Value, present func(*field) bool, e *errs) {
	for i := range s.fields {
		f := &s.fields[i]
		if (len(f.checks) > 0 || f.elem != nil || f.maxItems > 0) && present(f) && (*e)[f.name] == nil {
			f.check(v.FieldByIndex(f.Index), f.name, e)
		}
	}
}

// parameters reads path, query and headers.
func (o *Op) parameters(req *http.Request, v reflect.Value, e *errs) (sent func(string) bool, err error) {
	var q url.Values
	if req.URL.RawQuery != "" {
		if q, err = url.ParseQuery(req.URL.RawQuery); err != nil {
			return nil, fault.Field("", "the query string is malformed")
		}
	}
	seen := 0
	for i := range o.in.fields {
		f := &o.in.fields[i]
		fv := v.FieldByIndex(f.Index)
		switch f.where {
		case inPath:
			if !isText(req.PathValue(f.name)) { // of a call that was no path
				e.add(f.name, notText)
			} else if !set(fv, req.PathValue(f.name)) {
				e.add(f.name, "must be "+kindName(fv.Type()))
			}
		case inHeader:
			if v := req.Header.Get(f.name); !isText(v) {
				e.add(f.name, notText)
			} else {
				set(fv, v)
			}
		case inBody:
			if vals := q[f.name]; !f.also || len(vals) == 0 {
				continue
			} else if seen++; len(vals) > 1 {
				e.add(f.name, "was sent twice")
			} else if !isText(vals[0]) || !set(fv, vals[0]) {
				e.add(f.name, "must be "+kindName(fv.Type()))
			}
		case inQuery:
			vals, ok := q[f.name]
			if !ok {
				if d := f.Tag.Get("default"); d != "" {
					set(fv, d)
				}
				continue
			}
			seen++
			if slices.ContainsFunc(vals, func(v string) bool { return !isText(v) }) {
				e.add(f.name, notText)
			} else if fv.Kind() == reflect.Slice {
				fv.Set(reflect.ValueOf(vals))
			} else if len(vals) > 1 {
				e.add(f.name, "was sent twice")
			} else if !set(fv, vals[0]) {
				e.add(f.name, "must be "+kindName(fv.Type()))
			}
		}
	}
	if seen != len(q) && !o.Lenient {
		for k := range q {
			if f := o.in.byName[k]; f != nil && (f.where == inQuery || f.also) {
				continue
			}
			if gone := o.removed(k); gone != nil {
				return nil, gone
			}
			e.add(clip(k), "is not a parameter of this route")
		}
	}
	return func(name string) bool {
		if f := o.in.byName[name]; f != nil && f.where == inHeader {
			return req.Header.Get(name) != ""
		}
		return q.Has(name)
	}, nil
}

// isText tells whether a string can be stored: PostgreSQL takes no NUL, and
// neither database, nor JSON, what is not UTF-8.
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

// body decodes the JSON (or form) body into in and answers which of the
// top-level members were there.
func (o *Op) body(req *http.Request, in any, e *errs) (map[string]bool, error) {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	defer buffers.Put(b)
	if err := o.read(req, b); err != nil {
		return nil, err
	}
	if b.Len() == 0 {
		return map[string]bool{}, nil // bind names every required field as missing
	}
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if o.Form && err == nil && media == "application/x-www-form-urlencoded" {
		return o.form(b.String(), in, e)
	}
	if !isJSON(req) {
		return nil, fault.New(fault.UnsupportedMedia, "", "The body must be application/json.")
	}
	return o.decode(b.Bytes(), in, e)
}

func isJSON(req *http.Request) bool {
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

func (o *Op) read(req *http.Request, b *bytes.Buffer) error {
	_, err := b.ReadFrom(http.MaxBytesReader(nil, req.Body, o.MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return o.tooLarge()
	}
	if err != nil {
		return fault.New(fault.Invalid, "", "The body could not be read to its end.").Because(err)
	}
	return nil
}

func (o *Op) tooLarge() error {
	return fault.Newf(fault.TooLarge, "", "The body is larger than %d bytes.", o.MaxBody)
}

func (o *Op) noBody(req *http.Request) error {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	defer buffers.Put(b)
	if err := o.read(req, b); err != nil {
		return err
	}
	if s := strings.TrimSpace(b.String()); s != "" && s != "{}" && s != "null" {
		return fault.Field("", "this route takes no body")
	}
	return nil
}

// decode is strict: unknown and duplicate names, trailing bytes and invalid
// UTF-8 are refused, and the message names the field.
func (o *Op) decode(b []byte, in any, e *errs) (map[string]bool, error) {
	var keys map[string]jsontext.Value
	if err := json.Unmarshal(b, &keys); err != nil {
		return nil, malformed(err)
	}
	if keys == nil { // null
		return nil, fault.Field("", "must be a JSON object")
	}
	return o.assign(keys, in, e), nil
}

// assign puts the members of a body where they belong.
func (o *Op) assign(keys map[string]jsontext.Value, in any, e *errs) map[string]bool {
	present := make(map[string]bool, len(keys))
	for k := range keys {
		if f := o.in.byName[k]; f == nil || f.where != inBody {
			if !o.Lenient {
				e.add(clip(k), "is not a field of this request")
			}
			continue
		}
		present[k] = true
	}
	v := reflect.ValueOf(in).Elem()
	for k := range present {
		f, raw := o.in.byName[k], keys[k]
		if hasNUL(raw) {
			e.add(k, notText)
			continue
		}
		if err := json.Unmarshal(raw, v.FieldByIndex(f.Index).Addr().Interface(), strict); err != nil {
			path, msg := explain(err, f.Type)
			if path != "" {
				path = "." + path
			}
			e.add(k+path, msg)
		} else if raw.Kind() == 'n' && f.Type.Kind() != reflect.Pointer && f.required {
			e.add(k, "must not be null")
		}
	}
	return present
}

// hasNUL tells whether a text or a name in a value has a NUL. In JSON that is
// always the escape.
func hasNUL(v jsontext.Value) bool {
	if !bytes.Contains(v, []byte(`\u0000`)) {
		return false
	}
	for d := jsontext.NewDecoder(bytes.NewReader(v)); ; {
		tok, err := d.ReadToken()
		if err != nil {
			return false // it has been read before: this is its end
		}
		if tok.Kind() == '"' && strings.IndexByte(tok.String(), 0) >= 0 {
			return true
		}
	}
}

func malformed(err error) *fault.Error {
	msg := "is not valid JSON"
	var syn *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		msg = "names a member twice"
		if errors.As(err, &syn) {
			return fault.Field(dotted(string(syn.JSONPointer)), msg)
		}
	case errors.As(err, &syn):
		msg += " at byte " + strconv.FormatInt(syn.ByteOffset, 10)
	case errors.Is(err, io.ErrUnexpectedEOF):
		msg += ": it ends too early"
	default:
		msg = "must be a JSON object"
	}
	return fault.Field("", msg)
}

func explain(err error, t reflect.Type) (path, msg string) {
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		path = dotted(string(sem.JSONPointer))
		if errors.Is(err, json.ErrUnknownName) {
			return path, "is not a field of this request"
		}
		if sem.GoType != nil {
			t = sem.GoType
		}
		if sem.Err != nil && errors.Is(sem.Err, strconv.ErrRange) {
			return path, "is out of range"
		}
		return path, "must be " + kindName(t)
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return "", f.Detail
	}
	return "", "must be " + kindName(t)
}

func dotted(pointer string) string {
	return strings.NewReplacer("~1", "/", "~0", "~", "/", ".").Replace(strings.TrimPrefix(pointer, "/"))
}

func (o *Op) form(body string, in any, e *errs) (map[string]bool, error) {
	q, err := url.ParseQuery(body)
	if err != nil {
		return nil, fault.Field("", "the form is malformed")
	}
	v := reflect.ValueOf(in).Elem()
	present := map[string]bool{}
	for k, vals := range q {
		f := o.in.byName[k]
		if name, key, dotted := strings.Cut(k, "."); f == nil && dotted {
			// A member of an object is spelled as errors spell it.
			if of := o.in.byName[name]; of != nil && of.where == inBody && of.Type == reflect.TypeFor[map[string]string]() {
				m := v.FieldByIndex(of.Index)
				if m.IsNil() {
					m.Set(reflect.ValueOf(map[string]string{}))
				}
				if len(vals) != 1 {
					e.add(k, "was sent twice")
				}
				m.Interface().(map[string]string)[key] = vals[0]
				present[name] = true
				continue
			}
		}
		switch {
		case f == nil || f.where != inBody:
			if !o.Lenient {
				e.add(clip(k), "is not a field of this form")
			}
		case len(vals) == 1 && !isText(vals[0]):
			e.add(k, notText)
		case len(vals) != 1 || !set(v.FieldByIndex(f.Index), vals[0]):
			e.add(k, "must be "+kindName(f.Type))
		default:
			present[k] = true
		}
	}
	return present, nil
}
