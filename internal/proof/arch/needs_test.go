package arch

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// whole are the domains that are made by New, of all that they need.
var whole = []string{
	"ask",
	"backlog",
	"ci",
	"plan",
	"pull",
	"repo",
}

// functions are the fields of Needs that are functions, and why no interface or
// value would do.
var functions = map[string]string{}

// What a domain asks of another is an interface that its constructor is given.
// So no domain has to ask whether it was given something, and nobody changes
// what it was given.
func TestDomainsAreMadeWhole(t *testing.T) {
	if !slices.IsSorted(whole) {
		t.Error("the domains are not in order")
	}
	used := map[string]bool{}
	for _, noun := range whole {
		made, fields := false, map[string]bool{}
		for _, f := range product(t) {
			if f.pkg() != "domain/"+noun {
				continue
			}
			for _, decl := range f.tree.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "New" {
					made = true
				}
				g, ok := decl.(*ast.GenDecl)
				if !ok || g.Tok != token.TYPE {
					continue
				}
				for _, spec := range g.Specs {
					kind := spec.(*ast.TypeSpec)
					s, ok := kind.Type.(*ast.StructType)
					if !ok || kind.Name.Name != "Needs" && kind.Name.Name != "Service" {
						continue
					}
					for _, field := range s.Fields.List {
						_, function := field.Type.(*ast.FuncType)
						for _, name := range field.Names {
							at := noun + "." + kind.Name.Name + "." + name.Name
							if function && name.IsExported() && functions[at] == "" {
								t.Errorf("%s is a function: ask by an interface, or tell by a signal", at)
							}
							used[at] = true
							if kind.Name.Name == "Needs" {
								fields[name.Name] = true
							} else if name.IsExported() {
								t.Errorf("%s is no need of the domain, and exported", at)
							}
						}
					}
				}
			}
		}
		if !made || len(fields) == 0 {
			t.Errorf("domain/%s has no New, or no Needs", noun)
		}
		for _, f := range product(t) {
			if f.pkg() == "domain/"+noun {
				compared(t, f, fields)
			}
		}
		for _, f := range files(t) {
			if f.pkg() != "domain/"+noun {
				built(t, f, noun)
			}
		}
	}
	for at := range functions {
		if !used[at] {
			t.Errorf("%s is in the table and not in the program: remove it", at)
		}
	}
}

// compared complains of a need that its own domain compares with nil.
func compared(t *testing.T, f file, fields map[string]bool) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		c, ok := n.(*ast.BinaryExpr)
		if !ok || c.Op != token.EQL && c.Op != token.NEQ {
			return true
		}
		sel, ok := c.X.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := sel.X.(*ast.Ident)
		if null, is := c.Y.(*ast.Ident); ok && is && null.Name == "nil" && of.Name == "s" && fields[sel.Sel.Name] {
			t.Errorf("%s asks whether it was given %s: New has seen to that", f.path, sel.Sel.Name)
		}
		return true
	})
}

// built complains of a service that is made or changed outside of its domain.
// The program keeps its services in fields of parts that are called like them.
func built(t *testing.T, f file, noun string) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CompositeLit:
			if sel, ok := x.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Service" {
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == noun && slices.Contains(f.imports(), "own:domain/"+noun) {
					t.Errorf("%s makes a %s.Service: New does", f.path, noun)
				}
			}
		case *ast.AssignStmt:
			for _, to := range x.Lhs {
				if sel, ok := to.(*ast.SelectorExpr); ok && path.Base(path.Dir(f.path)) == "app" {
					if of, ok := sel.X.(*ast.SelectorExpr); ok && of.Sel.Name == noun && strings.ToUpper(sel.Sel.Name[:1]) == sel.Sel.Name[:1] {
						t.Errorf("%s changes %s of %s after it was made", f.path, sel.Sel.Name, noun)
					}
				}
			}
		}
		return true
	})
}
