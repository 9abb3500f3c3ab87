package arch

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// TestWaitsAreListed holds that every domain in which an object waits has a function
// ClockSetBack, and that the program calls it.
func TestWaitsAreListed(t *testing.T) {
	var listed string
	owners := map[string]bool{}
	for _, f := range product(t) {
		if f.path == "internal/app/clock.go" {
			listed = string(f.text)
		}
		for _, decl := range f.tree.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == "ClockSetBack" {
				owners[path.Base(f.pkg())] = true
			}
		}
	}
	if len(owners) < 8 {
		t.Errorf("only %d packages pull in what waits", len(owners))
	}
	for name := range owners {
		if !strings.Contains(listed, name+".ClockSetBack,") {
			t.Errorf("%s.ClockSetBack is not called after the clock was set back", name)
		}
	}
}
