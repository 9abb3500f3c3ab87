package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// revise changes a step's answer so that it matches what was answered, and captures
// values. Parts that match stay as they are.
func (k *talk) revise(s *step, a answer) error {
	k.known = maps.Clone(k.known)
	status := fmt.Sprint(a.StatusCode)
	var body string
	switch {
	case !s.given || status != s.answer.first && a.isJSON():
		body = k.known.told(a)
	case s.answer.body == "":
	case a.isJSON():
		text, err := k.known.reviseJSON(s.answer.body, a.body)
		if err != nil {
			return err
		}
		body = text
	default:
		got := strings.TrimSpace(string(a.body))
		if body = s.answer.body; k.known.match(body, got) != nil {
			body = k.known.unfill(got)
		}
	}
	s.given, s.answer.body = true, body
	if s.answer.first != status {
		s.answer.first, s.poll = status, false
	}
	for i, h := range s.answer.header {
		if got := a.Header.Get(h[0]); k.known.match(h[1], got) != nil {
			s.answer.header[i][1] = k.known.unfill(got)
		}
	}
	request, _, _ := strings.Cut(s.text, arrow)
	var out strings.Builder
	out.WriteString(strings.TrimRight(request, "\n") + arrow + " " + s.answer.first)
	if s.poll {
		out.WriteString(" eventually")
	}
	out.WriteString("\n")
	for _, h := range s.answer.header {
		out.WriteString(h[0] + ": " + h[1] + "\n")
	}
	if s.answer.body != "" {
		out.WriteString(s.answer.body + "\n")
	}
	s.text = out.String() + "\n"
	return s.like(a, k.known)
}

// rewrite writes the file again if a step was revised.
func (tr transcript) rewrite() error {
	old, err := os.ReadFile(tr.path)
	if err != nil {
		return err
	}
	archive := txtar.Parse(old)
	for i := range archive.Files {
		archive.Files[i].Data = []byte(tr.steps[i].text)
	}
	text := append(bytes.TrimRight(txtar.Format(archive), "\n"), '\n')
	if bytes.Equal(bytes.TrimRight(old, "\n"), bytes.TrimRight(text, "\n")) {
		return nil
	}
	return os.WriteFile(tr.path, text, 0o644)
}

// changing matches values that differ between runs: secrets, ids, times and hashes.
var changing = regexp.MustCompile(`\bdev_\w+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+|\d{4}-\d\d-\d\dT[\d:.]+Z|\b[0-9a-f]{40,}\b`)

// told returns an answer as a pattern that a person may shorten.
func (v values) told(a answer) string {
	got := strings.TrimSpace(string(a.body))
	if !a.isJSON() {
		return v.unfill(got)
	}
	n, err := parse(got)
	if err != nil {
		return got
	}
	return n.told(v)
}

// unfill replaces captured text by <names>, and values that differ between runs by *.
func (v values) unfill(text string) string {
	names := slices.SortedFunc(maps.Keys(v), func(a, b string) int { return len(v[b]) - len(v[a]) })
	for _, name := range names {
		if len(v[name]) >= 8 && strings.Contains(text, v[name]) {
			text = strings.ReplaceAll(text, v[name], "<"+name+">")
		}
	}
	return changing.ReplaceAllString(text, "*")
}

// reviseJSON changes those parts of a pattern that do not match got.
func (v values) reviseJSON(pattern string, got []byte) (string, error) {
	want, err := parse(pattern)
	if err != nil {
		return "", fmt.Errorf("the pattern is not JSON: %w", err)
	}
	have, err := parse(string(got))
	if err != nil {
		return "", fmt.Errorf("not JSON: %w", err)
	}
	return v.merge(want, have), nil
}

// merge returns a pattern that matches have. Parts of want that match stay as they
// are.
func (v values) merge(want, have node) string {
	learned := maps.Clone(v)
	if learned.matchJSON(want.text, []byte(have.text)) == nil {
		maps.Copy(v, learned)
		return want.text
	}
	if want.kind != have.kind || want.kind == 0 {
		return have.told(v)
	}
	open := len(want.parts) > 0 && want.parts[len(want.parts)-1].text == `"..."`
	var parts []string
	same := true // the members or elements are the same, so the layout stays
	text, end := "", 0
	for i, w := range want.parts {
		if open && i == len(want.parts)-1 {
			parts = append(parts, w.text)
			break
		}
		h, ok := have.at(i, w.name)
		if !ok {
			same = false
			continue
		}
		merged := v.merge(w, h)
		parts = append(parts, w.label()+merged)
		text += want.text[end:w.start] + merged
		end = w.start + len(w.text)
	}
	if want.kind == '[' && !open {
		for _, h := range have.parts[min(len(want.parts), len(have.parts)):] {
			parts, same = append(parts, h.told(v)), false
		}
	}
	if same {
		return text + want.text[end:]
	}
	return want.kind.join(parts)
}

// node is a JSON value with its text.
type node struct {
	kind  kind
	name  string // name of the member; empty for other values
	text  string
	start int    // position in the text that contains the value
	parts []node // members or elements
}

// kind is the first letter of an object or array, and 0 of other values.
type kind byte

func (k kind) join(parts []string) string {
	return string(k) + strings.Join(parts, ", ") + map[kind]string{'{': "}", '[': "]"}[k]
}

func (n node) label() string {
	if n.name == "" {
		return ""
	}
	b, _ := json.Marshal(n.name)
	return string(b) + ": "
}

// at finds the element or member of n that corresponds to one of a pattern.
func (n node) at(i int, name string) (node, bool) {
	if n.kind == '[' {
		if i < len(n.parts) {
			return n.parts[i], true
		}
		return node{}, false
	}
	j := slices.IndexFunc(n.parts, func(p node) bool { return p.name == name })
	if j < 0 {
		return node{}, false
	}
	return n.parts[j], true
}

// told returns a value as a pattern.
func (n node) told(v values) string {
	if n.kind == 0 {
		var text string
		if !strings.HasPrefix(n.text, `"`) || json.Unmarshal([]byte(n.text), &text) != nil {
			return n.text
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // <names> stay as they are
		if e.Encode(v.unfill(text)) != nil {
			return n.text
		}
		return strings.TrimSpace(b.String())
	}
	var parts []string
	for _, p := range n.parts {
		parts = append(parts, p.label()+p.told(v))
	}
	return n.kind.join(parts)
}

// parse reads one JSON value with the positions of its parts.
func parse(text string) (node, error) {
	if !json.Valid([]byte(text)) {
		var v any
		return node{}, json.Unmarshal([]byte(text), &v)
	}
	d := json.NewDecoder(strings.NewReader(text))
	n, err := parseNext(d, text, 0)
	n.start = 0
	return n, err
}

func parseNext(d *json.Decoder, text string, base int) (n node, err error) {
	// The decoder's position is before separators; the value starts after them.
	begin := int(d.InputOffset())
	begin += len(text[begin:]) - len(strings.TrimLeft(text[begin:], " \t\r\n,:"))
	tok, err := d.Token()
	if err != nil {
		return n, err
	}
	n.start = begin - base
	if delim, ok := tok.(json.Delim); ok {
		n.kind = kind(delim)
		for d.More() {
			var name string
			if n.kind == '{' {
				key, err := d.Token()
				if err != nil {
					return n, err
				}
				name, _ = key.(string)
			}
			p, err := parseNext(d, text, begin)
			if err != nil {
				return n, err
			}
			p.name = name
			n.parts = append(n.parts, p)
		}
		if _, err = d.Token(); err != nil {
			return n, err
		}
	}
	n.text = text[begin:d.InputOffset()]
	return n, nil
}
