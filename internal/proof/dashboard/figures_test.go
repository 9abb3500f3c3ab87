//go:build !race

package dashboard_test

import (
	"testing"

	"yardmaster/internal/proof/parts"
)

// Many rows and a long transcript are drawn whole, and a long transcript holds little. How
// long that takes is measured (internal/proof/bench).
func TestMuchIsDrawn(t *testing.T) {
	t.Parallel()
	d := parts.Draw(t)
	if t.Logf("50,000 lines keep %.1f MB (limit 25 MB)", d.Heap/1e6); d.Heap > 25e6 {
		t.Errorf("50,000 lines keep %.1f MB", d.Heap/1e6)
	}
}

// A first visit loads little.
func TestFirstLoad(t *testing.T) {
	t.Parallel()
	n := parts.Bytes(start(t).open(1440, 900))
	if t.Logf("the first load: %v bytes (limit 60,000)", n); n > 60_000 || n < 10_000 {
		t.Errorf("the first load is %v bytes, 60,000 are allowed", n)
	}
}
