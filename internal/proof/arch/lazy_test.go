package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestLazyPatterns compiles the texts given to lazy.New, which would panic only at their first
// use.
func TestLazyPatterns(t *testing.T) {
	t.Parallel()
	patterns := 0
	for _, f := range files(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || of.Sel.Name != "New" {
				return true
			}
			if p, ok := of.X.(*ast.Ident); !ok || p.Name != "lazy" {
				return true
			}
			patterns++
			text, known := constantText(call.Args[0])
			if !known {
				t.Errorf("%s: the text of a lazy pattern is not written out", f.path)
			} else if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", f.path, err)
			}
			return true
		})
	}
	if patterns < 20 {
		t.Errorf("only %d patterns were found", patterns)
	}
}

// atStart are functions that read a text for longer than a command should take to begin.
// internal/cli holds what all packages do at start, those of others too, by what they allocate.
var atStart = map[string][]string{"regexp": {"MustCompile", "Compile"}, "stencil": {"New", "Must"}}

// TestPackagesCompileNothing holds that no package compiles a pattern or a template while it is
// initialised: each command of the program would wait for it, and hardly one needs it.
func TestPackagesCompileNothing(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if strings.HasSuffix(f.path, "_test.go") || strings.HasPrefix(f.path, "internal/proof/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if of, ok := d.(*ast.FuncDecl); ok && (of.Recv != nil || of.Name.Name != "init") {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if _, later := n.(*ast.FuncLit); later {
					return false
				}
				if of, ok := n.(*ast.SelectorExpr); ok {
					if p, ok := of.X.(*ast.Ident); ok && slices.Contains(atStart[p.Name], of.Sel.Name) {
						t.Errorf("%s: %s.%s runs at each start: package lazy or sync.OnceValue puts it off", f.path, p.Name, of.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// constantText is the text of a literal, or of literals that are added.
func constantText(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		a, ok := constantText(e.X)
		b, both := constantText(e.Y)
		return a + b, ok && both && e.Op == token.ADD
	}
	return "", false
}
