//go:build !race

package dashboard_test

import (
	"testing"

	"yardmaster/internal/proof/parts"
)

// within fails the test if a time is beyond its limit in milliseconds, and also beyond so
// many times its baseline. On a busy machine the baseline takes longer, too.
func within(t *testing.T, what string, took parts.Took, limit, times float64) {
	t.Helper()
	t.Logf("%s: %.1f ms (limit %.0f ms), %.1f times the baseline of %.1f ms", what, took.MS, limit, took.MS/took.Plain, took.Plain)
	if took.MS > limit && took.MS > times*took.Plain {
		t.Errorf("%s takes %.1f ms, more than %.0f ms and than %.0f times the baseline of %.1f ms", what, took.MS, limit, times, took.Plain)
	}
}

// What a page does with many rows and with a long transcript has limits.
func TestFigures(t *testing.T) {
	t.Parallel()
	d := parts.Draw(t)
	within(t, "a patch of 500 rows among 5,000", d.Patch, 4, 4)
	within(t, "50,000 lines of a transcript", d.Lines, 1500, 400)
	if t.Logf("50,000 lines keep %.1f MB (limit 25 MB)", d.Heap/1e6); d.Heap > 25e6 {
		t.Errorf("50,000 lines keep %.1f MB", d.Heap/1e6)
	}
}

// A first visit loads little and paints soon, and what changes at the server is on screen
// at once.
func TestFiguresOfAServer(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	v := parts.See(y.open(1440, 900), "acme/web")
	within(t, "the first paint", v.Paint, 500, 8)
	if t.Logf("the first load: %v bytes (limit 60,000)", v.Bytes); v.Bytes > 60_000 || v.Bytes < 10_000 {
		t.Errorf("the first load is %v bytes, 60,000 are allowed", v.Bytes)
	}
	within(t, "from a change to the screen, the median", v.Change, 100, 20)
}
