package stencil

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template/parse"
)

var (
	errorType    = reflect.TypeFor[error]()
	stringerType = reflect.TypeFor[fmt.Stringer]()
	htmlType     = reflect.TypeFor[HTML]()
)

// through is what an interface holds.
func through(v reflect.Value) reflect.Value {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// indirect is what is behind pointers and interfaces; null tells that it was a nil pointer.
func indirect(v reflect.Value) (out reflect.Value, null bool) {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		if v.IsNil() {
			return reflect.Value{}, v.Kind() == reflect.Pointer
		}
		v = v.Elem()
	}
	return v, false
}

// value is what a node stands for.
func (r *run) value(dot reflect.Value, n parse.Node) (reflect.Value, error) {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return reflect.Value{}, nil
	case *parse.BoolNode:
		return reflect.ValueOf(n.True), nil
	case *parse.StringNode:
		return reflect.ValueOf(n.Text), nil
	case *parse.NumberNode:
		return number(n)
	case *parse.FieldNode:
		return fields(dot, n.Ident)
	case *parse.VariableNode:
		for i := len(r.vars) - 1; i >= 0; i-- {
			if r.vars[i].name == n.Ident[0] {
				return fields(r.vars[i].value, n.Ident[1:])
			}
		}
		return reflect.Value{}, fmt.Errorf("there is no variable %s", n.Ident[0])
	case *parse.PipeNode:
		return r.pipe(dot, n)
	case *parse.ChainNode:
		v, err := r.value(dot, n.Node)
		if err != nil {
			return v, err
		}
		return fields(v, n.Field)
	case *parse.IdentifierNode:
		return r.call(dot, n.Ident, nil, nil)
	}
	return reflect.Value{}, fmt.Errorf("%s is no value", n)
}

// number is a constant: an int where it is written as a whole number, else a float64.
func number(n *parse.NumberNode) (reflect.Value, error) {
	hex := len(n.Text) > 2 && n.Text[0] == '0' && (n.Text[1] == 'x' || n.Text[1] == 'X')
	switch {
	case n.IsFloat && !hex && n.Text[0] != '\'' && strings.ContainsAny(n.Text, ".eEpP"):
		return reflect.ValueOf(n.Float64), nil
	case n.IsInt && int64(int(n.Int64)) == n.Int64:
		return reflect.ValueOf(int(n.Int64)), nil
	case n.IsFloat && hex && strings.ContainsAny(n.Text, ".pP"):
		return reflect.ValueOf(n.Float64), nil
	}
	return reflect.Value{}, fmt.Errorf("%s is no number that fits", n.Text)
}

func fields(v reflect.Value, names []string) (reflect.Value, error) {
	for _, name := range names {
		var err error
		if v, err = field(v, name); err != nil {
			return v, err
		}
	}
	return v, nil
}

// field is a field of a struct or a member of a map; nothing where a map does not have it.
func field(of reflect.Value, name string) (reflect.Value, error) {
	v, null := indirect(of)
	switch {
	case null:
		return v, fmt.Errorf("nothing has no .%s", name)
	case !v.IsValid():
		return v, nil
	case v.Kind() == reflect.Struct:
		f, ok := v.Type().FieldByName(name)
		if !ok || !f.IsExported() {
			return reflect.Value{}, fmt.Errorf("%s has no field %s", v.Type(), name)
		}
		return v.FieldByIndexErr(f.Index)
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		return v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key())), nil
	}
	return reflect.Value{}, fmt.Errorf("%s has no .%s", v.Type(), name)
}

// call calls a function with the arguments of a command, and the value of the command before.
func (r *run) call(dot reflect.Value, name string, args []parse.Node, last []reflect.Value) (reflect.Value, error) {
	f, ok := r.t.funcs[name]
	if !ok {
		return f, fmt.Errorf("there is no function %s", name)
	}
	if name == "and" || name == "or" {
		return r.shortcut(dot, name == "or", args, last)
	}
	given := make([]reflect.Value, 0, len(args)+1)
	for _, a := range args {
		v, err := r.value(dot, a)
		if err != nil {
			return v, err
		}
		given = append(given, v)
	}
	given = append(given, last...)
	t := f.Type()
	if n := t.NumIn(); len(given) < n && (!t.IsVariadic() || len(given) < n-1) || len(given) > n && !t.IsVariadic() {
		return reflect.Value{}, fmt.Errorf("%s takes another number of values", name)
	}
	for i, v := range given {
		var err error
		if given[i], err = fit(v, parameter(t, i)); err != nil {
			return v, fmt.Errorf("value %d of %s: %w", i+1, name, err)
		}
	}
	return called(f, given)
}

// called is what a function returns. A panic in it is an error.
func called(f reflect.Value, with []reflect.Value) (v reflect.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	out := f.Call(with)
	if len(out) == 2 && !out[1].IsNil() {
		return out[0], out[1].Interface().(error)
	}
	if out[0].Type() == valueType {
		return out[0].Interface().(reflect.Value), nil
	}
	return through(out[0]), nil
}

// shortcut is and, or: values after the one that decides are not looked at.
func (r *run) shortcut(dot reflect.Value, or bool, args []parse.Node, last []reflect.Value) (v reflect.Value, err error) {
	if len(args)+len(last) == 0 {
		return v, errors.New("it takes one value at least")
	}
	for _, a := range args {
		if v, err = r.value(dot, a); err != nil || truth(v) == or {
			return v, err
		}
	}
	if len(last) > 0 {
		v = last[0]
	}
	return v, nil
}

func parameter(t reflect.Type, i int) reflect.Type {
	if t.IsVariadic() && i >= t.NumIn()-1 {
		return t.In(t.NumIn() - 1).Elem()
	}
	return t.In(i)
}

var valueType = reflect.TypeFor[reflect.Value]()

// fit is a value as a parameter of a type takes it.
func fit(v reflect.Value, t reflect.Type) (reflect.Value, error) {
	if t == valueType {
		return reflect.ValueOf(through(v)), nil
	}
	if v = through(v); !v.IsValid() {
		switch t.Kind() {
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
			return reflect.Zero(t), nil
		}
		return v, fmt.Errorf("nothing is no %s", t)
	}
	if v.Type().AssignableTo(t) {
		return v, nil
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Type().AssignableTo(t) {
		return v.Elem(), nil
	}
	whole := v.CanInt() && (t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64 || t.Kind() == reflect.Float64)
	if whole || v.CanUint() && t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64 {
		if c := v.Convert(t); c.Convert(v.Type()).Equal(v) {
			return c, nil
		}
	}
	return v, fmt.Errorf("%s is no %s", v.Type(), t)
}

// printed is a value as text; safe: it is HTML.
func printed(v reflect.Value) (text string, safe bool, err error) {
	v = through(v)
	if v.IsValid() && v.Kind() == reflect.Pointer {
		if e, null := indirect(v); !null && !v.Type().Implements(errorType) && !v.Type().Implements(stringerType) {
			v = e
		}
	}
	if !v.IsValid() {
		return "<no value>", false, nil
	}
	switch v.Kind() {
	case reflect.Chan, reflect.Func:
		return "", false, fmt.Errorf("%s cannot be printed", v.Type())
	}
	return fmt.Sprint(v.Interface()), v.Type() == htmlType, nil
}
