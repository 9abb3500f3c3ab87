package noun

import (
	"strings"
	"testing"
)

// A person sees what a proposal changes and whose text it drops before deciding, and no text of a
// run drives the terminal.
func TestProposalIsShown(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	writeProposal(&b, map[string]any{
		"id": "p-1", "state": "waiting", "slug": "build", "kind": "page", "why": "The Makefile says so.", "reason": "",
		"hunks": []any{map[string]any{
			"old_line": 3.0, "new_line": 3.0, "removed": []any{"Run make."}, "added": []any{"Run \x1b[2Jmake test."},
		}},
		"leaves_out": []any{"Run make."},
	})
	got := b.String()
	for _, want := range []string{
		"p-1  waiting  build  page\n", "The Makefile says so.", "line 3\n  -Run make.\n  +Run ", "leaves out what people wrote:\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in:\n%s", want, got)
		}
	}
	if strings.ContainsRune(got, 0x1b) {
		t.Errorf("%q drives the terminal", got)
	}
}
