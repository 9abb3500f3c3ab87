package op

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/fault"
)

var (
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	strict  = json.JoinOptions(json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(false))
)

// body decodes the JSON body, or the form, into in and returns the top-level members
// that were present. It fails with fault.Invalid, fault.TooLarge and
// fault.UnsupportedMedia.
func (o *Op) body(c *Call, in any, e *errs) (map[string]bool, error) {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	defer buffers.Put(b)
	if err := c.read(b); err != nil {
		return nil, err
	}
	if b.Len() == 0 {
		if p, ok := in.(interface{ bodyless() }); ok {
			p.bodyless()
		}
		return map[string]bool{}, nil // bind names every required field as missing
	}
	media, _, err := mime.ParseMediaType(c.ContentType)
	if o.Form && err == nil && media == "application/x-www-form-urlencoded" {
		return o.form(b.String(), in, e)
	}
	if o.NoXML != "" && err == nil && (strings.HasSuffix(media, "/xml") || strings.HasSuffix(media, "+xml")) {
		return nil, fault.Field("protocol", o.NoXML)
	}
	if !isJSON(c.ContentType) {
		return nil, fault.New(fault.UnsupportedMedia, "", "The body must be application/json.")
	}
	return o.decode(b.Bytes(), in, e)
}

// Bodied is embedded in the In of a row for which no body is something else than {}.
type Bodied struct {
	NoBody bool `json:"-"` // no body was sent
}

func (b *Bodied) bodyless() { b.NoBody = true }

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// read reads the body into b. It fails with fault.TooLarge for more than Row.MaxBody
// bytes, and with fault.Invalid if the body breaks off.
func (c *Call) read(b *bytes.Buffer) error {
	if c.Body == nil {
		return nil
	}
	_, err := b.ReadFrom(io.LimitReader(c.Body, c.Op.MaxBody+1))
	if err != nil {
		return fault.New(fault.Invalid, "", "The body could not be read to its end.").Because(err)
	}
	if int64(b.Len()) > c.Op.MaxBody {
		return c.Op.tooLarge()
	}
	return nil
}

func (o *Op) tooLarge() error {
	return fault.Newf(fault.TooLarge, "", "The body is larger than %d bytes.", o.MaxBody)
}

// noBody fails with fault.Invalid if the body is anything but empty, {} or null.
func (o *Op) noBody(c *Call) error {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	defer buffers.Put(b)
	if err := c.read(b); err != nil {
		return err
	}
	if s := strings.TrimSpace(b.String()); s != "" && s != "{}" && s != "null" {
		return fault.Field("", "this route takes no body")
	}
	return nil
}

// decode decodes a JSON object into in. It refuses unknown and duplicate names,
// trailing bytes and invalid UTF-8 with fault.Invalid, which names the field.
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

// assign decodes the members of a body into the fields of in, and returns those that
// are fields of the body.
func (o *Op) assign(keys map[string]jsontext.Value, in any, e *errs) map[string]bool {
	present := make(map[string]bool, len(keys))
	for k := range keys {
		if f := o.in.byName[k]; f == nil || f.Where != InBody {
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
		if raw.Kind() == 'n' && f.Tag.Get("null") == "empty" {
			raw = jsontext.Value(`""`)
		}
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
		} else if raw.Kind() == 'n' && f.Type.Kind() != reflect.Pointer && f.Required {
			e.add(k, "must not be null")
		}
	}
	return present
}

// hasNUL tells whether a string or a name in a value has a NUL. JSON has a NUL only as
// the escape \u0000.
func hasNUL(v jsontext.Value) bool {
	if !bytes.Contains(v, []byte(`\u0000`)) {
		return false
	}
	for d := jsontext.NewDecoder(bytes.NewReader(v)); ; {
		tok, err := d.ReadToken()
		if err != nil {
			return false // the value is known to be well formed: this is its end
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
			// A member of an object is spelled field.member, as in Problem.Errors.
			if of := o.in.byName[name]; of != nil && of.Where == InBody && of.Type == reflect.TypeFor[map[string]string]() {
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
		case f == nil || f.Where != InBody:
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
