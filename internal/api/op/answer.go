package op

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
)

// answer makes an Answer with the members that do not depend on the result.
func (p *Pipeline) answer(c *Call) Answer {
	a := Answer{Actor: c.actor}
	if c.counted {
		a.Limit = &c.state
	}
	if o := c.Op; o != nil {
		a.Secret = o.NoStore || p.mayHoldSecret(o.output)
	}
	a.Streamed = c.sink != nil && c.sink.isOpen()
	return a
}

// Reply makes the answer to a call that succeeded with out. The answer is a failure
// if out cannot be encoded.
func (p *Pipeline) Reply(c *Call, out any) Answer {
	a := p.answer(c)
	if err := a.encode(c.Op, out); err != nil {
		return p.Refuse(c, err)
	}
	return a
}

// encode sets the status, the headers and the body of the answer from out.
func (a *Answer) encode(o *Op, out any) error {
	if o != nil {
		a.Status = o.Status
	}
	if c, ok := out.(Statuser); ok {
		a.Status = c.StatusCode()
	}
	a.ContentType = "application/json"
	switch r := out.(type) {
	case *Asset:
		if r.To != "" {
			a.Status, a.ContentType = 303, "text/html; charset=utf-8"
			a.Header = map[string]string{"Location": r.To, "Cache-Control": "no-store"}
			return nil
		}
		a.Status, a.ContentType, a.Body, a.Asset = 200, r.ContentType, r.Body, r
		return nil
	case Texter:
		if kind, text := r.Text(); kind != "" {
			a.ContentType, out = kind, text
		}
	case Reply:
		if r.Status != 0 {
			a.Status = r.Status
		}
		if r.ContentType != "" {
			a.ContentType = r.ContentType
		}
		a.Header, a.Cookies = r.Header, r.Cookies
		out = r.Body
	}
	switch b := out.(type) {
	case []byte:
		a.Body = b
	case string:
		a.Body = []byte(b)
	default:
		buf := buffers.Get().(*bytes.Buffer)
		buf.Reset()
		if err := json.MarshalWrite(buf, out, wire); err != nil {
			buffers.Put(buf)
			return fmt.Errorf("encode the answer: %w", err)
		}
		a.buffer, a.Body = buf, buf.Bytes()
	}
	return nil
}

// mayHoldSecret tells whether an answer of the type t can hold one of p.Secrets.
func (p *Pipeline) mayHoldSecret(t reflect.Type) bool {
	if t == nil || len(p.Secrets) == 0 {
		return false
	}
	if known, ok := p.secretive.Load(t); ok {
		return known.(bool)
	}
	found := hasMember(t, p.Secrets, map[reflect.Type]bool{})
	p.secretive.Store(t, found)
	return found
}

// hasMember tells whether a struct has a member with one of the names, at any depth.
func hasMember(t reflect.Type, names []string, seen map[reflect.Type]bool) bool {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || seen[t] {
		return false
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for _, n := range names {
			if member == n {
				return true
			}
		}
		if hasMember(f.Type, names, seen) {
			return true
		}
	}
	return false
}
