package arch

import (
	"go/ast"
	"slices"
	"testing"
)

// TestOneChoiceOfAKey: the pool of model keys is read to choose from in one function, so
// that every call, hold and page goes by the same order.
func TestOneChoiceOfAKey(t *testing.T) {
	t.Parallel()
	const home, counts = "domain/modelkey", "domain/measure" // the second counts them
	for _, s := range statements(t) {
		if slices.Contains(s.reads, "provider_keys") && s.pkg != home && s.pkg != counts {
			t.Errorf("%s reads the keys of providers; modelkey.Candidates chooses one", s.at)
		}
	}
	var readers []string
	for _, f := range product(t) {
		for _, decl := range f.tree.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil || f.pkg() != home {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.Name == "pool" {
					readers = append(readers, fn.Name.Name)
				}
				return true
			})
		}
	}
	if !slices.Equal(readers, []string{"CandidatesOf"}) {
		t.Errorf("the pool is read by %q", readers)
	}
}
