package stencil

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"text/template"
	"text/template/parse"
)

// mostDeep is how deep templates may stand in each other.
const mostDeep = 1000

// run is one run of a template.
type run struct {
	t    *Template
	w    io.Writer
	vars []variable
	deep int
}

type variable struct {
	name  string
	value reflect.Value
}

var (
	errBreak    = errors.New("break outside of a range")
	errContinue = errors.New("continue outside of a range")
)

func (r *run) template(name string, dot reflect.Value) error {
	tree := r.t.trees[name]
	if tree == nil || tree.Root == nil {
		return fmt.Errorf("stencil: there is no %q", name)
	}
	if r.deep++; r.deep > mostDeep {
		return fmt.Errorf("stencil: more than %d templates stand in each other", mostDeep)
	}
	outer := r.vars
	r.vars = []variable{{"$", dot}}
	err := r.list(dot, tree.Root)
	r.vars = outer
	r.deep--
	return err
}

func (r *run) list(dot reflect.Value, l *parse.ListNode) error {
	if l == nil {
		return nil
	}
	for _, n := range l.Nodes {
		if err := r.node(dot, n); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) node(dot reflect.Value, n parse.Node) error {
	switch n := n.(type) {
	case *parse.TextNode:
		_, err := r.w.Write(n.Text)
		return err
	case *parse.ActionNode:
		v, err := r.pipe(dot, n.Pipe)
		if err != nil || len(n.Pipe.Decl) > 0 {
			return at(n, err)
		}
		return at(n, r.print(n, v))
	case *parse.IfNode:
		return r.branch(dot, &n.BranchNode, false)
	case *parse.WithNode:
		return r.branch(dot, &n.BranchNode, true)
	case *parse.RangeNode:
		mark := len(r.vars)
		err := r.each(dot, n)
		r.vars = r.vars[:mark]
		return err
	case *parse.TemplateNode:
		v, err := r.pipe(dot, n.Pipe)
		if err != nil {
			return at(n, err)
		}
		return at(n, r.template(n.Name, v))
	case *parse.BreakNode:
		return errBreak
	case *parse.ContinueNode:
		return errContinue
	case *parse.CommentNode:
		return nil
	}
	return at(n, errors.New("it is not known here"))
}

// at is an error with the place in the template, once.
func at(n parse.Node, err error) error {
	if _, is := errors.AsType[*failure](err); err == nil || is || errors.Is(err, errBreak) || errors.Is(err, errContinue) {
		return err
	}
	return &failure{n.String(), err}
}

// failure is what went wrong, and in which part of the template.
type failure struct {
	part string
	err  error
}

func (f *failure) Error() string { return "stencil: in " + f.part + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// branch runs if and with.
func (r *run) branch(dot reflect.Value, n *parse.BranchNode, with bool) error {
	mark := len(r.vars)
	defer func() { r.vars = r.vars[:mark] }()
	v, err := r.pipe(dot, n.Pipe)
	if err != nil {
		return at(n, err)
	}
	switch {
	case !truth(v):
		return r.list(dot, n.ElseList)
	case with:
		return r.list(v, n.List)
	}
	return r.list(dot, n.List)
}

// truth tells whether a value is neither nothing nor zero nor empty.
func truth(v reflect.Value) bool {
	if v = through(v); !v.IsValid() {
		return false
	}
	is, _ := template.IsTrue(v.Interface())
	return is
}

// each runs range.
func (r *run) each(dot reflect.Value, n *parse.RangeNode) error {
	over, err := r.commands(dot, n.Pipe)
	if err != nil {
		return at(n, err)
	}
	if over, _ = indirect(over); !over.IsValid() {
		return r.list(dot, n.ElseList)
	}
	keys, values, err := elements(over)
	if err != nil {
		return at(n, err)
	}
	if len(values) == 0 {
		return r.list(dot, n.ElseList)
	}
	for i, v := range values {
		mark := len(r.vars)
		switch d := n.Pipe.Decl; {
		case len(d) == 1 && n.Pipe.IsAssign:
			r.set(d[0].Ident[0], v)
		case len(d) == 1:
			r.vars = append(r.vars, variable{d[0].Ident[0], v})
		case len(d) == 2 && n.Pipe.IsAssign:
			r.set(d[0].Ident[0], keys[i])
			r.set(d[1].Ident[0], v)
		case len(d) == 2:
			r.vars = append(r.vars, variable{d[0].Ident[0], keys[i]}, variable{d[1].Ident[0], v})
		}
		err := r.list(v, n.List)
		r.vars = r.vars[:mark]
		if errors.Is(err, errBreak) {
			return nil
		}
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

// elements are what a range goes through: a number's predecessors, a list, or a map in the
// order of its keys.
func elements(over reflect.Value) (keys, values []reflect.Value, err error) {
	switch k := over.Kind(); {
	case over.CanInt():
		if over.Int() > 1<<20 {
			return nil, nil, errors.New("a range goes to 1,048,576 at most")
		}
		for i := range int(over.Int()) {
			keys = append(keys, reflect.ValueOf(i).Convert(over.Type()))
		}
		return keys, keys, nil
	case k == reflect.Slice, k == reflect.Array:
		for i := range over.Len() {
			keys, values = append(keys, reflect.ValueOf(i)), append(values, over.Index(i))
		}
		return keys, values, nil
	case k == reflect.Map:
		keys = over.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			if order, err := compare(a, b); err == nil {
				return order
			}
			return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
		})
		for _, k := range keys {
			values = append(values, over.MapIndex(k))
		}
		return keys, values, nil
	}
	return nil, nil, fmt.Errorf("range cannot go through %s", over.Type())
}

// pipe is the value of a pipeline, which its variables have from then on. No pipeline has none.
func (r *run) pipe(dot reflect.Value, p *parse.PipeNode) (reflect.Value, error) {
	v, err := r.commands(dot, p)
	if err != nil || p == nil {
		return v, err
	}
	for _, d := range p.Decl {
		if p.IsAssign {
			r.set(d.Ident[0], v)
		} else {
			r.vars = append(r.vars, variable{d.Ident[0], v})
		}
	}
	return v, nil
}

func (r *run) set(name string, v reflect.Value) {
	for i := len(r.vars) - 1; i >= 0; i-- {
		if r.vars[i].name == name {
			r.vars[i].value = v
			return
		}
	}
}

func (r *run) commands(dot reflect.Value, p *parse.PipeNode) (v reflect.Value, err error) {
	if p == nil {
		return v, nil
	}
	for i, c := range p.Cmds {
		var last []reflect.Value
		if i > 0 {
			last = []reflect.Value{v}
		}
		if v, err = r.command(dot, c.Args, last); err != nil {
			return v, err
		}
	}
	return v, nil
}

// command is the value of one command of a pipeline. last is that of the command before it.
func (r *run) command(dot reflect.Value, args []parse.Node, last []reflect.Value) (reflect.Value, error) {
	if f, is := args[0].(*parse.IdentifierNode); is {
		return r.call(dot, f.Ident, args[1:], last)
	}
	if len(args) > 1 || len(last) > 0 {
		return reflect.Value{}, fmt.Errorf("%s is no function", args[0])
	}
	if _, is := args[0].(*parse.NilNode); is {
		return reflect.Value{}, errors.New("nil is no command")
	}
	return r.value(dot, args[0])
}

// print writes a value as the place in a page asks for it.
func (r *run) print(n *parse.ActionNode, v reflect.Value) error {
	text, safe, err := printed(v)
	if err != nil {
		return err
	}
	if r.t.kind == Page {
		if !through(v).IsValid() {
			return nil // as html/template has it
		}
		text = r.t.places[n].escape(text, safe)
	}
	_, err = io.WriteString(r.w, text)
	return err
}
