package kb

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The places that differ, put into the old text, make the new one, and none has a line that
// both texts begin or end with.
func TestHunksMakeTheNewText(t *testing.T) {
	t.Parallel()
	line := rapid.SampledFrom([]string{"a", "b", "c", "", "d e"})
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(line, 0, 30).Draw(t, "before")
		after := rapid.SliceOfN(line, 0, 30).Draw(t, "after")
		old := strings.Split(strings.Join(before, "\n"), "\n")
		var made []string
		at := 0
		for _, h := range hunks(strings.Join(before, "\n"), strings.Join(after, "\n")) {
			made = append(made, old[at:h.OldLine-1]...)
			if len(made) != h.NewLine-1 {
				t.Fatalf("%+v is said to begin at another line than %d", h, len(made)+1)
			}
			if !slices.Equal(old[h.OldLine-1:h.OldLine-1+len(h.Removed)], h.Removed) {
				t.Fatalf("%+v are not lines of %q", h, old)
			}
			made = append(made, h.Added...)
			at = h.OldLine - 1 + len(h.Removed)
		}
		made = append(made, old[at:]...)
		if got, want := strings.Join(made, "\n"), strings.Join(after, "\n"); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
	long := strings.Repeat("x\n", 5000)
	if got := hunks(long, strings.Repeat("y\n", 5000)); len(got) != 1 || len(got[0].Removed) != 5000 {
		t.Errorf("%d places", len(got))
	}
	if got := hunks("a\nb\nc", "a\nB\nc"); len(got) != 1 || got[0].OldLine != 2 || !slices.Equal(got[0].Added, []string{"B"}) {
		t.Errorf("%+v", got)
	}
}
