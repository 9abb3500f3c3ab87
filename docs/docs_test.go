package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/docs"
)

// Every document of the folder is in the list of the dashboard or is one about the
// source, and in one place.
func TestParts(t *testing.T) {
	t.Parallel()
	names := slices.Clone(docs.Developers)
	for _, p := range docs.Parts {
		names = append(names, p.Docs...)
	}
	files, err := filepath.Glob("*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f, ".md")
		i := slices.Index(names, name)
		if i < 0 {
			t.Errorf("docs.go does not name %s once", name)
			continue
		}
		names = slices.Delete(names, i, i+1)
		if text, err := docs.Text(name); err != nil || !strings.HasPrefix(text, "# ") {
			t.Errorf("%s does not begin with its title: %v", name, err)
		}
	}
	if len(names) > 0 {
		t.Errorf("docs.go names %q, which are not there or are named twice", names)
	}
}

// Every row of a table stands below the head of it: after an empty line it would be shown
// as a text.
func TestTablesAreWhole(t *testing.T) {
	t.Parallel()
	under := regexp.MustCompile(`^\|( *:?-+:? *\|)+$`)
	files, err := filepath.Glob("*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := docs.Text(strings.TrimSuffix(f, ".md"))
		if err != nil {
			t.Fatal(err)
		}
		lines := append(strings.Split(text, "\n"), "")
		code, table := false, false
		for i, line := range lines[:len(lines)-1] {
			code = code != strings.HasPrefix(strings.TrimSpace(line), "```")
			row := !code && strings.HasPrefix(line, "|")
			if row && !table && !under.MatchString(lines[i+1]) {
				t.Errorf("%s:%d: a row of a table without a head", f, i+1)
			}
			table = row
		}
	}
}

// Whoever looks something up reads a page: it begins with a sentence that says what it answers,
// and has 1,500 words at most, tables and all. Those that have more are named, and the list
// only shrinks.
func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	const most = 1500
	long := []string{"github", "pull-moves", "secrets", "sources", "conformance", "libraries"}
	for _, p := range append(docs.Parts, docs.Part{Docs: docs.Developers}) {
		for _, name := range p.Docs {
			text, err := docs.Text(name)
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := strings.Cut(text, "\n\n")
			if begin, _, _ := strings.Cut(body, "\n"); begin == "" || strings.HasPrefix(begin, "#") || strings.HasPrefix(begin, "|") {
				t.Errorf("%s does not begin with what it answers", name)
			}
			if n := len(strings.Fields(text)); (n > most) != slices.Contains(long, name) {
				t.Errorf("%s has %d words, and is named as long: %t", name, n, slices.Contains(long, name))
			}
		}
	}
}
