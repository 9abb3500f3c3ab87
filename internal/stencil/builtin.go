package stencil

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"text/template"
)

// builtin are the functions of the language. and, or are in run.shortcut.
var builtin = map[string]reflect.Value{
	"and": {}, "or": {},
	"not":      reflect.ValueOf(func(v reflect.Value) bool { return !truth(v) }),
	"len":      reflect.ValueOf(length),
	"index":    reflect.ValueOf(index),
	"slice":    reflect.ValueOf(part),
	"print":    reflect.ValueOf(fmt.Sprint),
	"printf":   reflect.ValueOf(fmt.Sprintf),
	"println":  reflect.ValueOf(fmt.Sprintln),
	"html":     reflect.ValueOf(template.HTMLEscaper),
	"js":       reflect.ValueOf(template.JSEscaper),
	"urlquery": reflect.ValueOf(template.URLQueryEscaper),
	"eq":       reflect.ValueOf(equal),
	"ne":       reflect.ValueOf(func(a, b reflect.Value) (bool, error) { is, err := equal(a, b); return !is, err }),
	"lt":       ordered(func(c int) bool { return c < 0 }),
	"le":       ordered(func(c int) bool { return c <= 0 }),
	"gt":       ordered(func(c int) bool { return c > 0 }),
	"ge":       ordered(func(c int) bool { return c >= 0 }),
}

var errOrder = errors.New("these two have no order")

// compare orders two numbers, or two texts.
func compare(a, b reflect.Value) (int, error) {
	switch {
	case !a.IsValid() || !b.IsValid():
		return 0, errOrder
	case a.Kind() == reflect.String && b.Kind() == reflect.String:
		return cmp.Compare(a.String(), b.String()), nil
	case a.CanInt() && b.CanInt():
		return cmp.Compare(a.Int(), b.Int()), nil
	case a.CanUint() && b.CanUint():
		return cmp.Compare(a.Uint(), b.Uint()), nil
	case a.CanInt() && b.CanUint():
		if a.Int() < 0 {
			return -1, nil
		}
		return cmp.Compare(uint64(a.Int()), b.Uint()), nil
	case a.CanUint() && b.CanInt():
		c, err := compare(b, a)
		return -c, err
	}
	x, first := float(a)
	y, second := float(b)
	if !first || !second {
		return 0, errOrder
	}
	return cmp.Compare(x, y), nil
}

func float(v reflect.Value) (float64, bool) {
	switch {
	case v.CanFloat():
		return v.Float(), true
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	}
	return 0, false
}

func ordered(is func(int) bool) reflect.Value {
	return reflect.ValueOf(func(a, b reflect.Value) (bool, error) {
		c, err := compare(behind(a), behind(b))
		return is(c) && err == nil, err
	})
}

func behind(v reflect.Value) reflect.Value { v, _ = indirect(v); return v }

// equal tells whether a value equals one of the others.
func equal(a reflect.Value, others ...reflect.Value) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("there is nothing to compare with")
	}
	a = behind(a)
	for _, b := range others {
		if b = behind(b); !a.IsValid() || !b.IsValid() {
			if a.IsValid() == b.IsValid() {
				return true, nil
			}
			continue
		}
		if order, err := compare(a, b); err == nil {
			if order == 0 {
				return true, nil
			}
			continue
		}
		if a.Type() != b.Type() || !a.Comparable() || !b.Comparable() {
			return false, fmt.Errorf("%s cannot be compared with %s", a.Type(), b.Type())
		}
		if a.Equal(b) {
			return true, nil
		}
	}
	return false, nil
}

func length(v reflect.Value) (int, error) {
	switch v = behind(v); v.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map:
		return v.Len(), nil
	}
	return 0, errors.New("it has no length")
}

// whole is an index.
func whole(v reflect.Value, most int) (int, error) {
	switch v = behind(v); {
	case v.IsValid() && v.CanInt() && v.Int() >= 0 && v.Int() <= int64(most):
		return int(v.Int()), nil
	case v.IsValid() && v.CanUint() && v.Uint() <= uint64(most):
		return int(v.Uint()), nil
	}
	return 0, errors.New("the index is out of range")
}

// index is a member of a member of ... of a value.
func index(of reflect.Value, by ...reflect.Value) (reflect.Value, error) {
	for _, b := range by {
		if of, b = behind(of), behind(b); !of.IsValid() {
			return of, errors.New("nothing has no index")
		}
		switch of.Kind() {
		case reflect.String, reflect.Slice, reflect.Array:
			i, err := whole(b, of.Len()-1)
			if err != nil {
				return of, err
			}
			of = of.Index(i)
		case reflect.Map:
			key, err := fit(b, of.Type().Key())
			if err != nil {
				return of, err
			}
			if v := of.MapIndex(key); v.IsValid() {
				of = v
			} else {
				of = reflect.Zero(of.Type().Elem())
			}
		default:
			return of, fmt.Errorf("%s has no index", of.Type())
		}
	}
	return through(of), nil
}

// part is a part of a text or a list: from one index to another.
func part(of reflect.Value, by ...reflect.Value) (reflect.Value, error) {
	of = behind(of)
	if of.Kind() != reflect.String && of.Kind() != reflect.Slice || len(by) > 2 {
		return of, errors.New("it cannot be cut so")
	}
	ends := []int{0, of.Len()}
	for i, b := range by {
		n, err := whole(b, of.Len())
		if err != nil {
			return of, err
		}
		ends[i] = n
	}
	if ends[0] > ends[1] {
		return of, errors.New("the index is out of range")
	}
	return of.Slice(ends[0], ends[1]), nil
}
