package moves

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// A fact that were compared with == would be read without a trace, and the walk would pass
// over its values.
func TestFactsAreReadByIsAlone(t *testing.T) {
	t.Parallel()
	isFact := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && slices.ContainsFunc(fields, func(f field) bool { return f.name == s.Sel.Name })
	}
	for _, name := range []string{"lines.go", "effect_test.go", "change_test.go", "enders.go", "valid.go", "view.go"} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if isFact(n.X) || isFact(n.Y) {
					t.Errorf("%v: a fact is compared", set.Position(n.Pos()))
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && isFact(n.Tag) {
					t.Errorf("%v: a switch reads a fact", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}
