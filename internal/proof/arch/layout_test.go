package arch

import (
	"go/ast"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A domain tells what it is in the file of its name, has its capabilities in ops.go, and its
// statements in store.go or files beside it, which TestSQLIsInStores holds.
func TestDomainLayout(t *testing.T) {
	noun := map[string]bool{}
	for _, f := range product(t) {
		if !strings.HasPrefix(f.pkg(), "domain/") {
			continue
		}
		name := filepath.Base(f.path)
		if name == path.Base(f.pkg())+".go" {
			noun[f.pkg()] = true
			if f.tree.Doc == nil {
				t.Errorf("%s must hold the package comment", f.path)
			}
		}
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "Ops" && name != "ops.go" && !answersNil(fn) {
				t.Errorf("%s has the capabilities of the domain: they stand in ops.go", f.path)
			}
		}
	}
	for _, p := range packages(product(t)) {
		if strings.HasPrefix(p, "domain/") && !noun[p] {
			t.Errorf("%s/%s.go is missing", p, path.Base(p))
		}
	}
}

// answersNil tells whether a function does nothing but answer nil.
func answersNil(fn *ast.FuncDecl) bool {
	if len(fn.Body.List) != 1 {
		return false
	}
	ret, ok := fn.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return false
	}
	id, ok := ret.Results[0].(*ast.Ident)
	return ok && id.Name == "nil"
}
