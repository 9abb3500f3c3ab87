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

// statement is one SQL text of the program.
type statement struct {
	pkg, at       string
	reads, writes []string
}

// statements lists all SQL of the program: the declared statements, and the texts
// that each function passes to builders of queries.
func statements(t *testing.T) (out []statement) {
	add := func(pkg, at, sql string) {
		s := statement{pkg: pkg, at: at}
		s.reads, s.writes = db.Tables(sql)
		out = append(out, s)
	}
	all := product(t)
	for _, d := range db.Declared() {
		name, _, _ := strings.Cut(d.At, ":")
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		in := slices.DeleteFunc(slices.Clone(all), func(f file) bool { return !strings.HasSuffix(f.path, "/"+name) })
		if len(in) != 1 {
			t.Errorf("%s: %d files are called that", d.At, len(in))
			continue
		}
		add(in[0].pkg(), d.At, d.SQL)
	}
	program := parse(all)
	for _, fn := range program.functions {
		if sql := program.built(t, fn); sql != "" {
			add(fn.file.pkg(), fn.file.path+" "+fn.decl.Name.Name, sql)
		}
	}
	return out
}

// program holds the constants of the packages with SQL, by "package.name", and their
// functions.
type program struct {
	constants map[string]ast.Expr
	functions map[string]function // by "package.name", which may be one of several methods
}

type function struct {
	file file
	decl *ast.FuncDecl
}

func parse(all []file) program {
	p := program{constants(all), map[string]function{}}
	for _, f := range all {
		if !slices.Contains(f.imports(), "own:db") || f.pkg() == measuring || f.pkg() == "db/dbtest" ||
			f.pkg() == "proof/transcript" || f.pkg() == "proof/seed" { // they hold what every domain has stored
			continue
		}
		for _, decl := range f.tree.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				name := fn.Name.Name
				if fn.Recv != nil {
					name = receiver(fn) + "." + name
				}
				p.functions[f.pkg()+"."+name] = function{f, fn}
			}
		}
	}
	return p
}

func receiver(fn *ast.FuncDecl) string {
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name
	}
	return "generic"
}

// builders are the methods of db.Builder whose first parameter is SQL. db.Build
// starts one.
var builders = []string{"SQL", "And", "In", "Contains"}

// built joins the texts that a function passes to builders, in the order of its
// source. The texts of functions of its package that start its queries come first.
func (p program) built(t *testing.T, fn function) string {
	var sql strings.Builder
	given := map[ast.Expr]bool{}
	ast.Inspect(fn.decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch called := n.Fun.(type) {
			case *ast.SelectorExpr:
				x, _ := called.X.(*ast.Ident)
				ofDB := x != nil && x.Name == "db" && called.Sel.Name == "Build"
				zone := called.Sel.Name == "In" && len(n.Args) == 1 // of a time.Time
				if len(n.Args) > 0 && !zone && (ofDB || slices.Contains(builders, called.Sel.Name) && !fn.file.isImport(x)) {
					given[n.Args[0]] = true
				}
			case *ast.Ident:
				if begin, ok := p.functions[fn.file.pkg()+"."+called.Name]; ok && begin.isBuilder() {
					sql.WriteString(" " + p.built(t, begin))
				}
			}
		case ast.Expr:
			if given[n] {
				text, ok := fold(fn.file, n, p.constants)
				if !ok {
					t.Errorf("%s: %s builds a query of what is no constant", fn.file.path, fn.decl.Name.Name)
				}
				sql.WriteString(" " + text)
			}
		}
		return true
	})
	return sql.String()
}

// isBuilder tells whether a function returns a *db.Builder.
func (fn function) isBuilder() bool {
	results := fn.decl.Type.Results
	if results == nil || len(results.List) == 0 {
		return false
	}
	star, ok := results.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Builder"
}

// isImport tells whether a name is an imported package.
func (f file) isImport(x *ast.Ident) bool {
	return x != nil && slices.ContainsFunc(f.imports(), func(p string) bool { return path.Base(strings.TrimPrefix(p, "own:")) == x.Name })
}

// constants returns the constants of packages, by "package.name".
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

// fold returns the text of a constant expression.
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

// ofMigrations are the tables that say how far a schema is, which are there before statements are.
var ofMigrations = []string{"goose_db_version", "schema_releases"}
