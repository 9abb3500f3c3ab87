package citation

import (
	"fmt"
	"strings"
	"testing"
)

// before is a program; its marks are looked for in what became of it.
const before = `package ferry

// Serve answers requests until the context is over.
func Serve() error {
	if closed {
		return nil
	}
	return listen()
}

func Stop() error {
	if closed {
		return nil
	}
	return close()
}
`

// What becomes of a mark when its text moves, is edited, or has a twin.
func TestFind(t *testing.T) {
	t.Parallel()
	serve, short := Place{"a.go", 3, 4}, Place{"a.go", 6, 6} // the second has a twin
	line := Place{"a.go", 8, 8}                              // short, without a twin
	more := "package ferry\n\nvar closed bool\n\n" + strings.TrimPrefix(before, "package ferry\n\n")
	for _, c := range []struct {
		name    string
		at      Place
		now     map[string]string // the files
		renamed map[string]string
		state   State
		place   string
	}{
		{"nothing changed", serve, map[string]string{"a.go": before}, nil, Same, "a.go:3-4"},
		{"lines came above", serve, map[string]string{"a.go": more}, nil, Moved, "a.go:5-6"},
		{"it was indented", serve, map[string]string{"a.go": strings.ReplaceAll(before, "\n", "\n\t\t")}, nil, Same, "a.go:3-4"},
		{"blank lines came", serve, map[string]string{"a.go": strings.ReplaceAll(before, "over.\n", "over.\n\n")}, nil,
			Moved, "a.go:3-5"},
		{"the file was renamed", serve, map[string]string{"b.go": before}, map[string]string{"a.go": "b.go"}, Elsewhere, "b.go:3-4"},
		{"renamed and changed", serve, map[string]string{"b.go": more}, map[string]string{"a.go": "b.go"}, Elsewhere, "b.go:5-6"},
		{"it went to another file", serve, map[string]string{"a.go": "package ferry\n", "c.go": more}, nil, Elsewhere, "c.go:5-6"},
		{"to two of them", serve, map[string]string{"b.go": more, "c.go": more}, nil, Ambiguous, ""},
		{"it was edited", serve, map[string]string{"a.go": strings.ReplaceAll(before, "requests", "calls")}, nil, Edited, ""},
		{"it is gone", serve, map[string]string{"z.go": "package ferry\n"}, nil, Gone, ""},
		{"it was doubled, and its neighbours tell", serve, map[string]string{"a.go": before + "\n\n// Serve answers requests until the " +
			"context is over.\nfunc Serve() error {\n\treturn 1\n"}, nil, Same, "a.go:3-4"},
		{"a twin stays the first of two", short, map[string]string{"a.go": more}, nil, Moved, "a.go:8"},
		{"twins, one of which is gone", short, map[string]string{"a.go": "if closed {\nreturn nil\n}\nreturn 7\n"}, nil, Edited, ""},
		{"a short one is not looked for elsewhere", line, map[string]string{"a.go": "x\n", "b.go": before}, nil, Edited, ""},
		{"a short one among strangers is another", line, map[string]string{"a.go": "a\nb\nreturn listen()\nc\nd\n"}, nil, Edited, ""},
		{"the twin that another file had before", serve, map[string]string{"a.go": "x\n", "old.go": before + "\n// more\n"}, nil,
			Edited, ""},
	} {
		old := map[string]string{"a.go": before, "old.go": before}
		trees := &Trees{Old: map[string]string{}, New: map[string]string{}, Renamed: c.renamed}
		blobs := map[string]string{}
		for path, text := range old {
			trees.Old[path], blobs[fmt.Sprintf("%x", text)] = fmt.Sprintf("%x", text), text
		}
		for path, text := range c.now {
			trees.New[path], blobs[fmt.Sprintf("%x", text)] = fmt.Sprintf("%x", text), text
		}
		trees.Open = func(blob string) *File { return NewFile(blobs[blob]) }
		m, ok := NewFile(before).Mark(c.at, trees.Old["a.go"])
		if !ok {
			t.Fatal(c.name)
		}
		state, place := trees.Find(m)
		if state != c.state || c.place != "" && place.String() != c.place || c.place == "" && place != (Place{}) {
			t.Errorf("%s: %s %s, want %s %s", c.name, state, place, c.state, c.place)
		}
	}
	if _, ok := NewFile("a\n\n\nb\n").Mark(Place{"a", 2, 3}, ""); ok {
		t.Error("blank lines have a mark")
	}
}
