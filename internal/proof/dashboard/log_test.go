//go:build !race

package dashboard_test

import (
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/parts"
)

// A log leads to its lines whatever comes, is folded, is left out or changes its width; it
// copies what is off screen, and tells what comes no more often than it should.
func TestLog(t *testing.T) {
	t.Parallel()
	b := parts.Open(t, "testdata/parts/log.tsx")
	for _, name := range []string{"link", "width", "fold", "filter", "copy", "polite", "colours", "messages", "steps", "titles"} {
		for _, w := range browser.Eval[[]string](b, "log("+quoted(name)+")") {
			t.Errorf("%s: %s", name, w)
		}
	}
	for _, c := range b.Complaints() {
		t.Errorf("the browser complains: %s", c)
	}
}
