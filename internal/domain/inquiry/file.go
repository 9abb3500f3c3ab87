package inquiry

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/citation"
	"yardmaster/internal/client/inert"
	"yardmaster/internal/lazy"
	"yardmaster/internal/secretscan"
)

// mostLine is how much of a line is shown, in characters.
const mostLine = 400

// evidence are the lines that a model is shown.
type evidence struct {
	commit string
	files  []*file // best first
	cut    bool    // not all of the repository was looked through
}

// lines are those of a place as they are shown; nil if one of them is not.
func (e *evidence) lines(at citation.Place) []string {
	i := slices.IndexFunc(e.files, func(f *file) bool { return f.path == at.Path })
	if i < 0 || at.To > len(e.files[i].text) || slices.Contains(e.files[i].shown[at.From-1:at.To], false) {
		return nil
	}
	return e.files[i].text[at.From-1 : at.To]
}

// mark is what finds the lines of a place again; nil if there are none but blank ones.
func (e *evidence) mark(at citation.Place) *citation.Mark {
	i := slices.IndexFunc(e.files, func(f *file) bool { return f.path == at.Path })
	if i < 0 {
		return nil
	}
	m, ok := citationFile(e.files[i].content).Mark(at, e.files[i].blob)
	if !ok {
		return nil
	}
	return &m
}

// citationFile is a file as marks see it; nil for what is no text.
func citationFile(content []byte) *citation.File {
	if bytes.ContainsRune(content, 0) {
		return nil
	}
	return citation.NewFile(string(content))
}

// file is a file at the commit, some of whose lines are shown.
type file struct {
	path, blob string
	content    []byte
	text       []string // its lines, without secrets once they are shown
	shown      []bool
}

var keyEdge = lazy.New(`-----(BEGIN|END) [A-Z ]*PRIVATE KEY-----`)

// newFile reads the content of a file. It is nil for what is no text.
func newFile(path string, content []byte) *file {
	all := string(content)
	if strings.ContainsRune(all, 0) {
		return nil
	}
	f := &file{path: path, content: content, text: strings.Split(strings.TrimSuffix(strings.ToValidUTF8(all, "\ufffd"), "\n"), "\n")}
	f.shown = make([]bool, len(f.text))
	inside := false
	for i, line := range f.text {
		edges := keyEdge.FindAllStringSubmatch(line, -1)
		if inside || len(edges) > 0 {
			f.text[i] = secretscan.Mark
		}
		if len(edges) > 0 {
			inside = edges[len(edges)-1][1] == "BEGIN"
		}
	}
	return f
}

// show has lines shown, from 0 and without the last, and returns how many bytes these are.
func (f *file) show(from, to int) (bytes int) {
	part := f.text[from:to]
	clean := strings.Split(secretscan.Scrub(strings.Join(part, "\n")), "\n")
	for i := range part {
		if f.shown[from+i] {
			continue
		}
		line := part[i]
		if len(clean) == len(part) {
			line = clean[i]
		} else {
			line = secretscan.Scrub(line)
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		part[i] = clip(indent+inert.Line(line), mostLine)
		f.shown[from+i] = true
		bytes += len(part[i]) + 8
	}
	return bytes
}

// write writes the lines that are shown, each behind its number.
func (f *file) write(b *strings.Builder) {
	gap := false
	for i, line := range f.text {
		if !f.shown[i] {
			gap = true
			continue
		}
		if gap && i > 0 {
			b.WriteString("…\n")
		}
		gap = false
		fmt.Fprintf(b, "%d| %s\n", i+1, line)
	}
}
