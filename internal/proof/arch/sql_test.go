package arch

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "yardmaster/internal/app" // declares the statements of the whole program
	"yardmaster/internal/db"
)

// statement is SQL of the program.
type statement struct {
	pkg, at       string
	reads, writes []string
}

// statements lists all SQL of the program: what is declared, and, of each
// function that builds queries, what it gives to the builder.
func statements(t *testing.T) (out []statement) {
	add := func(pkg, at, sql string) {
		s := statement{pkg: pkg, at: at}
		s.reads, s.writes = db.Tables(sql)
		out = append(out, s)
	}
	all := product(t)
	for _, d := range db.Declared() {
		file, _, _ := strings.Cut(d.At, ":")
		in := slices.DeleteFunc(slices.Clone(all), func(f file_) bool { return !strings.HasSuffix(f.path, "/"+file) })
		switch {
		case strings.HasSuffix(file, "_test.go"):
		case len(in) != 1:
			t.Errorf("%s: %d files are called that", d.At, len(in))
		default:
			add(in[0].pkg(), d.At, d.SQL)
		}
	}
	texts := constants(all)
	for _, f := range all {
		if f.pkg() == measuring || f.pkg() == "db" || strings.HasPrefix(f.pkg(), "db/dbtest") {
			continue
		}
		for _, decl := range f.tree.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				if sql := built(t, f, fn, texts); sql != "" {
					add(f.pkg(), path.Base(f.pkg())+"/"+path.Base(f.path)+" "+fn.Name.Name, sql)
				}
			}
		}
	}
	return out
}

type file_ = file

// builders are the functions of db and the methods of its Builder that are
// given SQL, as their first parameter.
var builders = []string{"Build", "SQL", "And", "In", "Contains"}

// built joins what a function gives to builders, in the order of its text.
func built(t *testing.T, f file, fn *ast.FuncDecl, texts map[string]ast.Expr) string {
	var sql strings.Builder
	given := map[ast.Expr]bool{}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(builders, sel.Sel.Name) && len(n.Args) > 0 {
				given[n.Args[0]] = true
			}
		case ast.Expr:
			if given[n] {
				text, ok := fold(f, n, texts)
				if !ok {
					t.Errorf("%s: %s builds a query of what is no constant", f.path, fn.Name.Name)
				}
				sql.WriteString(" " + text)
			}
		}
		return true
	})
	return sql.String()
}

// constants are the constants of packages, by "package.name".
func constants(all []file) map[string]ast.Expr {
	out := map[string]ast.Expr{}
	for _, f := range all {
		for _, decl := range f.tree.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, spec := range d.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, v := range spec.Values {
					out[f.pkg()+"."+spec.Names[i].Name] = v
				}
			}
		}
	}
	return out
}

// fold is the text of a constant expression.
func fold(f file, e ast.Expr, texts map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.ParenExpr:
		return fold(f, e.X, texts)
	case *ast.BinaryExpr:
		a, ok := fold(f, e.X, texts)
		b, ok2 := fold(f, e.Y, texts)
		return a + b, ok && ok2
	case *ast.Ident:
		if v, ok := texts[f.pkg()+"."+e.Name]; ok {
			return fold(f, v, texts)
		}
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		if !ok {
			break
		}
		for _, imp := range f.imports() {
			pkg, own := strings.CutPrefix(imp, "own:")
			if v, ok := texts[pkg+"."+e.Sel.Name]; own && ok && path.Base(pkg) == x.Name {
				return fold(file{path: "internal/" + pkg + "/x.go", tree: f.tree}, v, texts)
			}
		}
	}
	return "", false
}
