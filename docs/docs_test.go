package docs_test

import (
	"path/filepath"
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
