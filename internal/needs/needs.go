// Package needs checks that a constructor is given all that it asks for. A field that
// lacks its value stops the program when it starts, by name, so that no domain has to
// check again.
package needs

import (
	"fmt"
	"reflect"
)

// Whole panics if an exported field of the struct n is nil, and names it. A field
// that may be nil carries the tag optional with the reason.
func Whole(n any) {
	v := reflect.ValueOf(n)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		if _, ok := f.Tag.Lookup("optional"); ok {
			continue
		}
		switch x := v.FieldByIndex(f.Index); x.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Map, reflect.Chan:
			if x.IsNil() {
				panic(fmt.Sprintf("%s.%s is not given", v.Type(), f.Name))
			}
		}
	}
}
