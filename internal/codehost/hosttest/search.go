package hosttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
)

func search(t *testing.T, c clone) {
	h, able := c.site.Host.(codehost.Searcher)
	if !able {
		t.Fatal("the host does not search")
	}
	r, ctx := c.site.Repo, t.Context()
	first := c.branch("main", "", "a.txt", "Port one\nnothing\nthe PORT\n", "src/-e", "port\n", "src/b.bin", "port\x00\n",
		"sp ace.txt", strings.Repeat("x", 600)+" port\n")
	c.git("mv", "a.txt", "src/moved.txt")
	second := c.branch("main", "main")
	tree := must(h.Tree(ctx, r, "main"))(t)
	paths := slices.Sorted(maps.Keys(tree.Files))
	if tree.Commit != second || tree.Cut || !slices.Contains(paths, "src/moved.txt") || len(tree.Files["src/-e"]) != 40 {
		t.Errorf("the tree: %+v", tree)
	}
	if got := must(h.Renames(ctx, r, first, second))(t); len(got) != 1 || got["a.txt"] != "src/moved.txt" {
		t.Errorf("the renames: %v", got)
	}
	found := must(h.Search(ctx, r, first, []string{"port", "nothing", "--help"}))(t)
	var lines []string
	for _, l := range found.Lines {
		lines = append(lines, fmt.Sprintf("%s:%d:%.9s", l.Path, l.No, l.Text))
		if len(l.Text) > 500 {
			t.Errorf("a line of %d bytes", len(l.Text))
		}
	}
	want := []string{"a.txt:1:Port one", "a.txt:2:nothing", "a.txt:3:the PORT", "sp ace.txt:1:xxxxxxxxx", "src/-e:1:port"}
	if found.Commit != first || found.Cut || !slices.Equal(lines, want) {
		t.Errorf("found %q, want %q", lines, want)
	}
	if none := must(h.Search(ctx, r, "main", []string{"p.rt"}))(t); len(none.Lines) > 0 || none.Commit != second {
		t.Errorf("an expression found %+v", none)
	}
	if none := must(h.Search(ctx, r, "main", nil))(t); len(none.Lines) > 0 || none.Commit != second {
		t.Errorf("no words found %+v", none)
	}
	for _, rev := range []string{"gone", strings.Repeat("1", 40), "--help", ""} {
		_, err := h.Tree(ctx, r, rev)
		wants(t, "the tree at "+rev, err, codehost.ErrNotFound)
		_, err = h.Renames(ctx, r, first, rev)
		wants(t, "the renames to "+rev, err, codehost.ErrNotFound)
		_, err = h.Search(ctx, r, rev, []string{"port"})
		wants(t, "a search at "+rev, err, codehost.ErrNotFound)
	}
}
