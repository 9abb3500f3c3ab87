// Package stencil runs templates of the language of text/template over plain data: fields of
// structs, members of maps, and functions. It has no methods. The package of the standard
// library finds methods by names that are known only when it runs, and so the linker keeps
// every exported method of a program that uses it: a fifth of this one.
//
// The language is read by text/template/parse, and the tests hold what comes out against
// text/template and html/template. What is left out: methods, functions in fields, ranges over
// channels and iterators, and the options.
//
// A template of a page escapes what it prints by the place where it stands, and knows four
// places: text, the value of an attribute, an address, and a part of an address. To print
// anywhere else is an error of New and Extend.
//
//   - stencil.go: the types
//   - run.go: how a template runs; value.go: fields and arguments; builtin.go: its functions
//   - place.go: where in a page something is printed
package stencil

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"text/template/parse"
)

// Funcs are functions by their names. Each returns one value, or one and an error.
type Funcs = map[string]any

// HTML is a text that a page prints as it is, or an address that it leads to whatever the
// scheme. Whoever makes one has escaped it.
type HTML string

// Kind is what a template makes.
type Kind int

// The kinds of templates.
const (
	Text Kind = iota
	Page      // HTML
)

// Template is a set of templates by their names. It may be run by several goroutines at once.
type Template struct {
	kind   Kind
	funcs  map[string]reflect.Value
	trees  map[string]*parse.Tree
	places map[*parse.ActionNode]place // of a page
}

// New reads a template and those that it defines. Errors name the line.
func New(kind Kind, name, text string, funcs Funcs) (*Template, error) {
	return (&Template{kind: kind, funcs: builtin}).read(name, text, funcs)
}

// Must is t. It panics if there is an error.
func Must(t *Template, err error) *Template {
	if err != nil {
		panic(err)
	}
	return t
}

// Extend is t with the templates that text defines, and more functions.
func (t *Template) Extend(text string, funcs Funcs) (*Template, error) {
	return t.read("", text, funcs)
}

// With is t with other functions in the place of those of the same names.
func (t *Template) With(funcs Funcs) *Template {
	out := *t
	out.funcs = maps.Clone(t.funcs)
	for name, f := range funcs {
		out.funcs[name] = function(name, f)
	}
	return &out
}

func (t *Template) read(name, text string, funcs Funcs) (*Template, error) {
	out := t.With(funcs)
	known := map[string]any{}
	for name := range out.funcs {
		known[name] = true // only the names count
	}
	added := map[string]*parse.Tree{}
	if _, err := parse.New(name).Parse(text, "", "", added, known); err != nil {
		return nil, err
	}
	out.trees = maps.Clone(t.trees)
	if out.trees == nil {
		out.trees = map[string]*parse.Tree{}
	}
	for name, tree := range added {
		if out.trees[name] == nil || !parse.IsEmptyTree(tree.Root) {
			out.trees[name] = tree
		}
	}
	if t.kind == Page {
		out.places = maps.Clone(t.places)
		if out.places == nil {
			out.places = map[*parse.ActionNode]place{}
		}
		for _, tree := range added {
			if err := out.look(tree); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// function checks a function, which the program or a test has written.
func function(name string, f any) reflect.Value {
	v := reflect.ValueOf(f)
	fits := v.Kind() == reflect.Func && (v.Type().NumOut() == 1 || v.Type().NumOut() == 2 && v.Type().Out(1) == errorType)
	if !fits {
		panic(fmt.Sprintf("stencil: %s is no function that returns a value, or a value and an error", name))
	}
	return v
}

// Execute runs the template of a name. What was written before an error stays written.
func (t *Template) Execute(w io.Writer, name string, data any) error {
	r := run{t: t, w: w}
	return r.template(name, reflect.ValueOf(data))
}
