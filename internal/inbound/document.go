package inbound

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/secretscan"
)

// Limits of a document.
const (
	maxDepth = 100
	maxKept  = 64 << 10 // bytes of what Keep answers
	maxValue = 4000     // characters of a text in it
)

// Document is the JSON object of a delivery.
type Document struct{ root map[string]any }

// Parse reads the body of a delivery. It fails with ErrMalformed for what is no JSON
// object, names a member twice, is no UTF-8, or is more than 100 values deep.
func Parse(body []byte) (d Document, err error) {
	for dec := jsontext.NewDecoder(bytes.NewReader(body)); ; {
		if _, err := dec.ReadToken(); err != nil {
			return d, ErrMalformed
		}
		if dec.StackDepth() > maxDepth {
			return d, ErrMalformed
		}
		if dec.StackDepth() == 0 {
			if rest := bytes.TrimSpace(body[dec.InputOffset():]); len(rest) > 0 {
				return d, ErrMalformed
			}
			break
		}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // so that long numbers keep their digits
	if err := dec.Decode(&d.root); err != nil || d.root == nil {
		return Document{}, ErrMalformed
	}
	return d, nil
}

// at is the value that a JSON pointer (RFC 6901) names; nil if there is none.
func (d Document) at(pointer string) any {
	var v any = d.root
	if pointer == "" {
		return v
	}
	for _, name := range strings.Split(pointer, "/")[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) || strconv.Itoa(i) != name {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// text is the text, number or truth value that a pointer names; empty for all else.
func (d Document) text(pointer string) string {
	switch v := d.at(pointer).(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// first is the first text that is not empty.
func (d Document) first(pointers ...string) string {
	for _, p := range pointers {
		if t := d.text(p); t != "" {
			return t
		}
	}
	return ""
}

// names are the texts of a member of each element of a list.
func (d Document) names(pointer, member string) (out []string) {
	all, _ := d.at(pointer).([]any)
	for i := range all {
		if i >= maxList {
			break
		}
		out = append(out, d.text(pointer+"/"+strconv.Itoa(i)+"/"+member))
	}
	return out
}

// telling are parts of names of members whose values are not kept.
var telling = []string{"secret", "token", "password", "passwd", "authorization", "api_key", "apikey", "cookie", "private_key"}

// Keep is the document as it may be kept and shown: without values that look like
// secrets, with long texts cut. ok is false if it is too large even so.
func (d Document) Keep() (text []byte, ok bool) {
	text, err := json.Marshal(kept(d.root))
	return text, err == nil && len(text) <= maxKept
}

func kept(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			if hides(name) {
				value = secretscan.Mark
			}
			out[clip(clean(name), maxName)] = kept(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = kept(value)
		}
		return out
	case string:
		return clip(secretscan.Scrub(clip(clean(v), 2*maxValue)), maxValue)
	}
	return v
}

func hides(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, word := range telling {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
