package app

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/proof/writers"
)

// promises are the types of what the rows of the contract answer, by their names in the source,
// such as task.Task.
type promises struct {
	types   map[string]reflect.Type
	seen    map[reflect.Type]bool
	writers writers.Writers
	always  map[string][]string // field -> why it is always the same
}

func answersOf(t *testing.T, contract map[string][]string, served map[string]op.Op) *promises {
	t.Helper()
	w, err := writers.Of(t.Context(), "yardmaster/internal/app")
	if err != nil {
		t.Fatal(err)
	}
	a := &promises{types: map[string]reflect.Type{}, seen: map[reflect.Type]bool{}, writers: w, always: keyed(t, "always.txt", 2)}
	for _, name := range slices.Sorted(maps.Keys(contract)) {
		if o, ok := served[name]; ok {
			for _, typ := range sent(o) {
				a.add(typ)
			}
		}
	}
	return a
}

// sent lists the types of what a row sends as JSON.
func sent(o op.Op) (all []reflect.Type) {
	if o.Output() != nil && !o.AnswersReply() && !o.AnswersAsset() {
		all = append(all, o.Output())
	}
	for _, e := range o.Events {
		all = append(all, reflect.TypeOf(e.Data))
	}
	for _, x := range []any{o.Body, o.Lines} {
		if x != nil {
			all = append(all, reflect.TypeOf(x))
		}
	}
	return all
}

// structs calls fn for the structs of the program in a type, through pointers and lists.
func structs(t reflect.Type, fn func(reflect.Type)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		structs(t.Elem(), fn)
	case reflect.Struct:
		if strings.HasPrefix(t.PkgPath(), "yardmaster/") {
			fn(t)
		}
	}
}

func (a *promises) add(t reflect.Type) {
	structs(t, func(t reflect.Type) {
		if a.seen[t] {
			return
		}
		a.seen[t], a.types[nameOf(t)] = true, t // a page is a type of its own for each row, and has the fields of all
		for f := range t.Fields() {
			if sends(f) {
				a.add(f.Type)
			}
		}
	})
}

// sends tells whether a field is part of the JSON of its struct.
func sends(f reflect.StructField) bool {
	return f.Name != "_" && f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous)
}

// nameOf is the name of a type without its arguments and with the last part of its package.
func nameOf(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:] + "." + name
}

// of names what a row answers.
func (a *promises) of(o op.Op) string {
	var names []string
	for _, t := range sent(o) {
		structs(t, func(t reflect.Type) {
			name := "`" + nameOf(t) + "`"
			for f := range t.Fields() { // a page is told by its rows
				if f.Name == "Data" && strings.Contains(t.Name(), "[") {
					structs(f.Type, func(row reflect.Type) { name = "`" + nameOf(row) + "` in `" + nameOf(t) + "`" })
				}
			}
			names = append(names, name)
		})
	}
	return strings.Join(names, ", ")
}

// mostShown is how many writers of a field the page names.
const mostShown = 3

// fields says who writes each field, and fails for one that nobody writes or that is always the
// same.
func (a *promises) fields(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	said := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(a.types)) {
		typ := a.types[name]
		for f := range typ.Fields() {
			if !sends(f) || f.Anonymous {
				continue
			}
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == "" {
				tag = f.Name
			}
			key := name + "." + tag
			_, bare, _ := strings.Cut(name, ".")
			field := writers.Field{Package: typ.PkgPath(), Type: bare, Name: f.Name}
			by := slices.Sorted(maps.Keys(a.writers[field]))
			one, constant := a.writers.Constant(field)
			why := a.always[key]
			said[key] = why != nil && (constant || len(by) == 0)
			switch {
			case why != nil && !said[key]:
				t.Errorf("%s varies: remove it from internal/app/testdata/always.txt", key)
			case why != nil:
			case len(by) == 0:
				t.Errorf("%s is written by nobody: write it, or say why not in internal/app/testdata/always.txt", key)
			case constant:
				t.Errorf("%s is always %s (%s): write it, or say why not in internal/app/testdata/always.txt", key, one, strings.Join(by, ", "))
			}
			more := ""
			if len(by) > mostShown {
				more = fmt.Sprintf(" and %d more", len(by)-mostShown)
				by = by[:mostShown]
			}
			text := "`" + strings.Join(by, "`, `") + "`" + more
			if why != nil {
				text = "always the same: " + why[0]
			}
			fmt.Fprintf(&out, "| `%s` | %s |\n", key, text)
		}
	}
	for key := range a.always {
		if _, ok := said[key]; !ok {
			t.Errorf("%s is no field of an answer: remove it from internal/app/testdata/always.txt", key)
		}
	}
	return out.String()
}
