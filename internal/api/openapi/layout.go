package openapi

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// width is how many columns a value may take that is written on one line.
const width = 140

// layout appends a JSON text to b: on one line what fits into width, and each member of anything
// else on lines of its own. before are the columns in front of it.
func layout(b []byte, v jsontext.Value, depth, before int) ([]byte, error) {
	if kind := v.Kind(); kind != '{' && kind != '[' || depth+before+len(v) <= width {
		return append(b, v...), nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	b = append(b, v[0])
	for first := true; d.PeekKind() != '}' && d.PeekKind() != ']'; first = false {
		if !first {
			b = append(b, ',')
		}
		b, before = line(b, depth+1), 0
		if v[0] == '{' {
			name, err := d.ReadValue()
			if err != nil {
				return nil, err
			}
			b = append(append(b, name...), ": "...)
			before = len(name) + 2
		}
		member, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if b, err = layout(b, member, depth+1, before); err != nil {
			return nil, err
		}
	}
	return append(line(b, depth), v[len(v)-1]), nil
}

// line begins a line at a depth.
func line(b []byte, depth int) []byte {
	return append(append(b, '\n'), bytes.Repeat([]byte(" "), depth)...)
}
