// Package writers finds in the source of the program, read with its types, which functions
// write each field of a struct. Tests hold with it that whatever an answer promises is written
// by somebody, and not always the same.
package writers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Field is a field of a named struct of the program, as the source calls it.
type Field struct{ Package, Type, Name string }

// Writers are the functions that write each field, and what: "" for what varies, otherwise the
// one constant.
type Writers map[Field]map[string]map[string]bool

func (w Writers) add(f Field, by, what string) {
	if w[f] == nil {
		w[f] = map[string]map[string]bool{}
	}
	if w[f][by] == nil {
		w[f][by] = map[string]bool{}
	}
	w[f][by][what] = true
}

// Constant is the one value that all writers of a field write, if there is one.
func (w Writers) Constant(f Field) (string, bool) {
	all := map[string]bool{}
	for _, what := range w[f] {
		maps.Copy(all, what)
	}
	if len(all) != 1 || all[""] {
		return "", false
	}
	for one := range all {
		return one, true
	}
	return "", false
}

// listed is a package as the go command lists it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// Of reads the source of the packages of the program that root is made of.
func Of(ctx context.Context, root string) (Writers, error) {
	var stderr bytes.Buffer
	list := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", root)
	list.Stderr = &stderr
	text, err := list.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	var own []listed
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, "yardmaster/") {
			own = append(own, p)
		}
	}
	fset, out := token.NewFileSet(), Writers{}
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range own {
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		info := &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
			Instances: map[*ast.Ident]types.Instance{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		}
		conf := types.Config{Importer: imports}
		if _, err := conf.Check(p.ImportPath, fset, files, info); err != nil {
			return nil, err
		}
		r := reading{Writers: out, info: info}
		short := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "yardmaster/internal/"), "domain/")
		for _, f := range files {
			for _, d := range f.Decls {
				r.decl(short, d)
			}
		}
	}
	return out, nil
}

// reading reads the declarations of a package.
type reading struct {
	Writers
	info *types.Info
	by   string // the function or variable that is read
}

func (r *reading) decl(pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		r.by = pkg + "." + d.Name.Name
		if d.Recv != nil {
			x := d.Recv.List[0].Type
			if star, ok := x.(*ast.StarExpr); ok {
				x = star.X
			}
			if ix, ok := x.(*ast.IndexExpr); ok {
				x = ix.X
			}
			if id, ok := x.(*ast.Ident); ok && id.Name != "Service" {
				r.by = pkg + "." + id.Name + "." + d.Name.Name
			}
		}
		ast.Inspect(d, r.node)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				r.by = pkg + "." + v.Names[0].Name
				ast.Inspect(v, r.node)
			}
		}
	}
}

func (r *reading) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		r.literal(n)
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			what := ""
			if len(n.Lhs) == len(n.Rhs) && n.Tok == token.ASSIGN {
				what = r.constant(n.Rhs[i])
			}
			r.place(left, what)
		}
	case *ast.IncDecStmt:
		r.place(n.X, "")
	case *ast.RangeStmt:
		r.place(n.Key, "")
		r.place(n.Value, "")
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			r.place(n.X, "")
		}
	case *ast.CallExpr:
		r.call(n)
	}
	return true
}

// place notes an assignment to a field.
func (r *reading) place(x ast.Expr, what string) {
	switch y := x.(type) {
	case *ast.IndexExpr: // an element of a field
		r.place(y.X, "")
		return
	case *ast.ParenExpr:
		r.place(y.X, what)
		return
	}
	sel, ok := x.(*ast.SelectorExpr)
	if !ok || r.info.Selections[sel] == nil || r.info.Selections[sel].Kind() != types.FieldVal {
		return
	}
	s := r.info.Selections[sel]
	at := s.Recv()
	for i, n := range s.Index() {
		named, st := structOf(at)
		if st == nil {
			return
		}
		f := st.Field(n)
		if i == len(s.Index())-1 && named != nil {
			r.add(nameOf(named, f.Name()), r.by, what)
		}
		at = f.Type()
	}
	r.place(sel.X, "") // which is itself a field, perhaps
}

func structOf(t types.Type) (*types.Named, *types.Struct) {
	t = types.Unalias(t)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, _ := t.(*types.Named)
	st, _ := t.Underlying().(*types.Struct)
	return named, st
}

func nameOf(n *types.Named, field string) Field {
	o := n.Origin().Obj()
	if o.Pkg() == nil {
		return Field{}
	}
	return Field{o.Pkg().Path(), o.Name(), field}
}

func (r *reading) literal(n *ast.CompositeLit) {
	named, st := structOf(r.info.Types[n].Type)
	if st == nil || named == nil {
		return
	}
	for i, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			r.add(nameOf(named, kv.Key.(*ast.Ident).Name), r.by, r.constant(kv.Value))
		} else {
			r.add(nameOf(named, st.Field(i).Name()), r.by, r.constant(e))
		}
	}
}

// constant is a text for a value that is always the same.
func (r *reading) constant(x ast.Expr) string {
	tv := r.info.Types[x]
	switch x := x.(type) {
	case *ast.ParenExpr:
		return r.constant(x.X)
	case *ast.CompositeLit:
		if len(x.Elts) == 0 {
			return "empty"
		}
		return ""
	case *ast.CallExpr: // a conversion
		if len(x.Args) == 1 && r.info.Types[x.Fun].IsType() {
			return r.constant(x.Args[0])
		}
	}
	switch {
	case tv.IsNil():
		return "nil"
	case tv.Value != nil:
		return tv.Value.String()
	}
	return ""
}

func (r *reading) call(n *ast.CallExpr) {
	fun := n.Fun
	if r.info.Types[fun].IsType() && len(n.Args) == 1 { // a conversion
		to, st := structOf(r.info.Types[fun].Type)
		if _, from := structOf(r.info.Types[n.Args[0]].Type); st != nil && from != nil && to != nil {
			for i := range st.NumFields() {
				r.add(nameOf(to, st.Field(i).Name()), r.by, "")
			}
		}
		return
	}
	var name *ast.Ident
	ast.Inspect(fun, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok && name == nil {
			if _, ok := r.info.Instances[id]; ok {
				name = id
			}
		}
		return name == nil
	})
	r.decodes(n, name)
	if name == nil || r.info.Uses[name] == nil || r.info.Uses[name].Pkg() == nil {
		return
	}
	args := r.info.Instances[name].TypeArgs
	switch r.info.Uses[name].Pkg().Path() {
	case "yardmaster/internal/api/op":
		if slices.Contains([]string{"New", "Stream", "RawAt"}, name.Name) {
			r.decoded(args.At(0), "whoever calls", map[string]bool{})
		}
		return
	case "yardmaster/internal/db":
	default:
		return
	}
	statement := ""
	for _, a := range n.Args {
		if v := r.info.Types[a].Value; v != nil && v.Kind() == constant.String {
			statement += constant.StringVal(v)
		}
	}
	for i := range args.Len() {
		r.columns(args.At(i), statement)
	}
}

// decodes notes that a call reads JSON or YAML into what it is given, by its name.
func (r *reading) decodes(n *ast.CallExpr, instance *ast.Ident) {
	name := instance
	switch fun := n.Fun.(type) {
	case *ast.Ident:
		name = fun
	case *ast.SelectorExpr:
		name = fun.Sel
	}
	if name == nil {
		return
	}
	if low := strings.ToLower(name.Name); !strings.HasPrefix(low, "unmarshal") && !strings.HasPrefix(low, "decode") {
		return
	}
	for _, a := range n.Args {
		if p, ok := r.info.Types[a].Type.(*types.Pointer); ok {
			r.decoded(p.Elem(), r.by, map[string]bool{})
		}
	}
	if instance != nil {
		args := r.info.Instances[instance].TypeArgs
		for i := range args.Len() {
			r.decoded(args.At(i), r.by, map[string]bool{})
		}
	}
}

// decoded notes that a function reads a type, and the types of its fields, from a text.
func (r *reading) decoded(t types.Type, by string, seen map[string]bool) {
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		r.decoded(u.Elem(), by, seen)
	case *types.Slice:
		r.decoded(u.Elem(), by, seen)
	case *types.Map:
		r.decoded(u.Elem(), by, seen)
	case *types.Struct:
		named, _ := structOf(t)
		if named != nil {
			if seen[named.String()] {
				return
			}
			seen[named.String()] = true
		}
		for i := range u.NumFields() {
			if named != nil {
				r.add(nameOf(named, u.Field(i).Name()), by, "")
			}
			r.decoded(u.Field(i).Type(), by, seen)
		}
	}
}

// columns notes that a statement reads the fields of a type.
func (r *reading) columns(t types.Type, statement string) {
	named, st := structOf(t)
	if st == nil || named == nil {
		return
	}
	for i := range st.NumFields() {
		f := st.Field(i)
		if f.Embedded() {
			r.columns(f.Type(), statement)
		}
		r.add(nameOf(named, f.Name()), r.by, columnIs(statement, f.Name()))
	}
}

// columnIs is the constant that a statement says a column is, if it does.
func columnIs(statement, field string) string {
	words := strings.FieldsFunc(statement, func(r rune) bool { return strings.ContainsRune(" ,\n\t()", r) })
	for i := 2; i < len(words); i++ {
		if strings.EqualFold(words[i-1], "AS") && strings.EqualFold(strings.ReplaceAll(words[i], "_", ""), field) {
			if v := words[i-2]; v == "NULL" || v == "''" || v == "0" || v == "FALSE" || v == "TRUE" {
				return v
			}
		}
	}
	return ""
}
