package arch

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// domains lists the domains that have a Service, sorted: all but those whose rows
// alone others build on.
func domains(t *testing.T) (out []string) {
	for _, f := range product(t) {
		domain, ok := strings.CutPrefix(f.pkg(), "domain/")
		if ok && hasType(f, "Service") {
			out = append(out, domain)
		}
	}
	slices.Sort(out)
	return out
}

// hasType tells whether a file declares a type of the name.
func hasType(f file, name string) (found bool) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		s, ok := n.(*ast.TypeSpec)
		found = found || ok && s.Name.Name == name
		return !found
	})
	return found
}

// functions lists the exported fields that hold functions, as domain.Type.Field, and
// why each is no question to another domain, which would be an interface. Clock of Needs is the
// platform's clock.
var functions = map[string]string{
	"oauth.Needs.Used":        "the scopes in use are known when the last domain is made",
	"service.Needs.Document":  "is made of the rows of all domains, once",
	"service.Needs.Free":      "asks the file systems of the process",
	"service.Needs.Probes":    "ask what the process stands on, by name",
	"service.Needs.Reference": "is made of the rows of all domains, once",
	"service.Needs.Stopping":  "tells the state of the process",
	"stream.Topic.Rows":       "hides the type of a topic's rows, which each domain has its own of",
}

// domainFacts are the facts about one domain's Service in its source.
type domainFacts struct {
	needs    map[string]bool   // fields of Needs; true: the field's tag lets it be nil
	hasNeeds bool              // there is a struct Needs
	hasNew   bool              // there is a function New
	open     []string          // exported fields of Service
	funcs    []string          // exported fields that hold functions, as Type.Field
	literals []string          // functions besides New that make a Service by literal
	compared map[string]string // fields of Needs that a method compares with nil -> the method
}

// factsOf reads the source files of a domain without its tests.
func factsOf(all []file) (d domainFacts) {
	d.needs, d.compared = map[string]bool{}, map[string]string{}
	named := map[string]bool{} // types of functions
	each := func(fn func(*ast.TypeSpec)) {
		for _, f := range all {
			for _, decl := range f.tree.Decls {
				if g, ok := decl.(*ast.GenDecl); ok {
					for _, spec := range g.Specs {
						if s, ok := spec.(*ast.TypeSpec); ok {
							fn(s)
						}
					}
				}
			}
		}
	}
	each(func(s *ast.TypeSpec) {
		if _, ok := s.Type.(*ast.FuncType); ok {
			named[s.Name.Name] = true
		}
	})
	each(func(s *ast.TypeSpec) {
		t, ok := s.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, field := range t.Fields.List {
			for _, name := range field.Names {
				switch {
				case !name.IsExported():
					continue
				case s.Name.Name == "Service":
					d.open = append(d.open, name.Name)
				case s.Name.Name == "Needs":
					d.needs[name.Name] = field.Tag != nil && strings.Contains(field.Tag.Value, "optional:")
				}
				if holdsFunction(field.Type, named) {
					d.funcs = append(d.funcs, s.Name.Name+"."+name.Name)
				}
			}
		}
		d.hasNeeds = d.hasNeeds || s.Name.Name == "Needs"
	})
	for _, f := range all {
		for _, decl := range f.tree.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if fn.Recv == nil && fn.Name.Name == "New" {
				d.hasNew = true
				continue
			}
			self := ""
			if fn.Recv != nil && len(fn.Recv.List[0].Names) == 1 && strings.TrimPrefix(text(fn.Recv.List[0].Type), "*") == "Service" {
				self = fn.Recv.List[0].Names[0].Name
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if text(n.Type) == "Service" {
						d.literals = append(d.literals, fn.Name.Name)
					}
				case *ast.BinaryExpr:
					of, field := fieldOf(n.X)
					if (n.Op == token.EQL || n.Op == token.NEQ) && text(n.Y) == "nil" && self != "" && (of == self || of == self+".Needs") {
						if optional, ok := d.needs[field]; ok && !optional {
							d.compared[field] = fn.Name.Name
						}
					}
				}
				return true
			})
		}
	}
	return d
}

// holdsFunction tells whether a type is a function type or contains one.
func holdsFunction(t ast.Expr, named map[string]bool) (found bool) {
	ast.Inspect(t, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.InterfaceType:
			return false
		case *ast.FuncType:
			found = true
		case *ast.Ident:
			found = found || named[n.Name]
		}
		return !found
	})
	return found
}

// text returns a name with the qualifiers before it, as the source has it. It is
// empty for any other expression.
func text(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return "*" + text(x.X)
	case *ast.SelectorExpr:
		return text(x.X) + "." + x.Sel.Name
	}
	return ""
}

// fieldOf splits p.signin.Clock into p.signin and Clock.
func fieldOf(x ast.Expr) (of, field string) {
	if sel, ok := x.(*ast.SelectorExpr); ok {
		return text(sel.X), sel.Sel.Name
	}
	return "", ""
}

// TestDomainsAreMadeWhole holds that New takes Needs and is the only code that makes
// a Service, that a Service exports nothing else, that no field that holds a function
// stands for another domain, and that no method compares a field of Needs with nil.
func TestDomainsAreMadeWhole(t *testing.T) {
	whole := domains(t)
	if len(whole) < 35 {
		t.Errorf("found only the domains %v", whole)
	}
	used := map[string]bool{}
	for _, name := range whole {
		d := factsOf(slices.DeleteFunc(product(t), func(f file) bool { return f.pkg() != "domain/"+name }))
		if !d.hasNew || !d.hasNeeds {
			t.Errorf("%s has no New, or no Needs", name)
		}
		if len(d.open) > 0 {
			t.Errorf("%s.Service has the exported fields %v: New is given them in Needs", name, d.open)
		}
		for _, fn := range d.literals {
			t.Errorf("%s.%s makes a Service by literal: call New", name, fn)
		}
		for field, method := range d.compared {
			t.Errorf("%s.%s asks whether %s is nil: New has refused that", name, method, field)
		}
		for _, field := range d.funcs {
			used[name+"."+field] = true
			if functions[name+"."+field] == "" && field != "Needs.Clock" {
				t.Errorf("%s.%s holds a function: declare an interface, or a signal", name, field)
			}
		}
	}
	for field := range functions {
		if domain, _, _ := strings.Cut(field, "."); slices.Contains(whole, domain) && !used[field] {
			t.Errorf("%s is in the table but not in the program: remove it", field)
		}
	}
}

// TestNeedsStayAsGiven holds that no other package makes a Service by literal or
// changes its Needs.
func TestNeedsStayAsGiven(t *testing.T) {
	fields := map[string]map[string]bool{}
	for _, name := range domains(t) {
		fields[name] = factsOf(slices.DeleteFunc(product(t), func(f file) bool { return f.pkg() != "domain/"+name })).needs
	}
	byPkg := map[string][]file{}
	for _, f := range files(t) {
		byPkg[f.pkg()] = append(byPkg[f.pkg()], f)
	}
	for _, pkg := range slices.Sorted(maps.Keys(byPkg)) {
		services := servicesIn(byPkg[pkg])
		for _, f := range byPkg[pkg] {
			ast.Inspect(f.tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if domain, ok := strings.CutSuffix(text(n.Type), ".Service"); ok && fields[domain] != nil {
						t.Errorf("%s makes a %s.Service by literal: call New", f.path, domain)
					}
				case *ast.AssignStmt:
					for _, lhs := range n.Lhs {
						of, field := fieldOf(lhs)
						of = strings.TrimSuffix(of, ".Needs")
						domain := services[of[strings.LastIndex(of, ".")+1:]]
						if _, ok := fields[domain][field]; ok && f.pkg() != "domain/"+domain {
							t.Errorf("%s changes %s of a %s.Service: give New what it needs", f.path, field, domain)
						}
					}
				}
				return true
			})
		}
	}
}

// servicesIn returns the names of a package's variables, parameters and fields that
// are services of a domain, with the domain.
func servicesIn(all []file) map[string]string {
	out := map[string]string{}
	service := func(x ast.Expr) string {
		domain, ok := strings.CutSuffix(strings.TrimPrefix(text(x), "*"), ".Service")
		if !ok || strings.Contains(domain, ".") {
			return ""
		}
		return domain
	}
	for _, f := range all {
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				for _, name := range n.Names {
					if domain := service(n.Type); domain != "" {
						out[name.Name] = domain
					}
				}
			case *ast.AssignStmt:
				for i, rhs := range n.Rhs {
					if domain := made(rhs); domain != "" && i < len(n.Lhs) {
						name := text(n.Lhs[i])
						out[path.Ext("." + name)[1:]] = domain
					}
				}
			}
			return true
		})
	}
	return out
}

// made returns the package whose New an expression calls, directly or as an argument,
// such as in add(&p, token.New(…)).
func made(x ast.Expr) string {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return ""
	}
	if domain, ok := strings.CutSuffix(text(call.Fun), ".New"); ok {
		return domain
	}
	for _, arg := range call.Args {
		if domain := made(arg); domain != "" {
			return domain
		}
	}
	return ""
}
