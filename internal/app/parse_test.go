package app

import (
	"testing"

	"yardmaster/internal/web"
)

// TestPagesParse parses the templates of all pages, which a server does when somebody opens the
// first page of a package, and would panic then.
func TestPagesParse(t *testing.T) {
	t.Parallel()
	if n := web.Parse(); n < 10 {
		t.Errorf("only %d sets of pages were found", n)
	}
}
