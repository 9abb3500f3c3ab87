// Package object reads answers of the API: objects, their members by dotted names, values in words, and
// the short forms of ids.
package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// Map is an object of JSON; nil for anything else.
func Map(v any) map[string]any {
	of, _ := v.(map[string]any)
	return of
}

// Lookup is the member of a dotted name.
func Lookup(v any, at string) (any, bool) {
	for part := range strings.SplitSeq(at, ".") {
		of, ok := v.(map[string]any)
		if !ok {
			return nil, v == nil
		}
		if v, ok = of[part]; !ok {
			return nil, false
		}
	}
	return v, true
}

// Names are those of the members of an object, in the order of the alphabet.
func Names(of map[string]any) (all []string) {
	for name := range of {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Sorted are the keys of a map in the order of the alphabet.
func Sorted[T any](m map[string]T) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// Decode is JSON with its numbers as they are written.
func Decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return v, d.Decode(&v)
}

// Encode is JSON without the escapes that only pages need.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Numbers puts numbers into the types that jq and templates calculate with.
func Numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = Numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = Numbers(v[k])
		}
	}
	return v
}

// Text is a value of JSON in words.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		var words []string
		for _, e := range v {
			words = append(words, Text(e))
		}
		return strings.Join(words, ", ")
	case map[string]any:
		var words []string
		for _, name := range Names(v) {
			if text := Text(v[name]); text != "" {
				words = append(words, name+"="+text)
			}
		}
		return strings.Join(words, " ")
	}
	return fmt.Sprint(v)
}

// Span is a number of seconds with its unit; the text of anything else.
func Span(v any) string {
	text := Text(v)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n < math.MaxInt64/int64(time.Second) {
		return terminal.Span(time.Duration(n) * time.Second)
	}
	return text
}

// InOrder is an object with the members of another version of it, in their order there.
func InOrder(before []byte, row map[string]any) ([]byte, error) {
	names, err := Ordered(before)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, name := range names {
		if v, has := row[name]; has {
			text, err := Encode(map[string]any{name: v})
			if err != nil {
				return nil, err
			}
			parts = append(parts, string(text[1:len(text)-1]))
		}
	}
	return []byte("{" + strings.Join(parts, ",") + "}"), nil
}

// Clear is the call that ends a wait.
func Clear(v any) *client.Clear {
	of := Map(v)
	c := &client.Clear{Capability: Text(of["capability"]), Args: map[string]string{}}
	for name, value := range Map(of["args"]) {
		c.Args[name] = Text(value)
	}
	return c
}

// Ordered are the names of an object's members in their order.
func Ordered(b []byte) (names []string, err error) {
	d := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return nil, err
		}
		if name, ok := t.(string); ok {
			names = append(names, name)
		}
	}
	return names, nil
}
