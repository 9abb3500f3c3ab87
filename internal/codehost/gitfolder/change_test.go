package gitfolder

import (
	"strings"
	"testing"
)

// A path that looks like another entry of the difference makes another change.
func TestChangeIsUnambiguous(t *testing.T) {
	t.Parallel()
	zero, one := strings.Repeat("0", 40), strings.Repeat("1", 40)
	entry := ":000000 100644 " + zero + " " + one + " A"
	a, err := change([]string{entry, "x", entry, "y"})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := change([]string{entry, "y", entry, "x"}); err != nil || a != b {
		t.Error("the order counts", err)
	}
	if b, err := change([]string{entry, "x000000 100644 " + zero + " " + one + " y"}); err != nil || a == b {
		t.Error("two entries and one are the same", err)
	}
	for _, bad := range [][]string{{entry}, {"100644 x", "y"}, {":1 2 3 4", "y"}} {
		if _, err := change(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
