package arch

import (
	"go/ast"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// listed is how many fields list in a tag which values they may have. It may only become less: a
// type of strings with a method Values lists them for every field that has it.
const listed = 92

// A tag enum is for values that one field alone may have, or for the one that an answer has.
func TestValuesHaveTypes(t *testing.T) {
	t.Parallel()
	n, at := 0, map[string]string{}
	for _, f := range product(t) {
		ast.Inspect(f.tree, func(node ast.Node) bool {
			field, ok := node.(*ast.Field)
			if !ok || field.Tag == nil {
				return true
			}
			tag, _ := strconv.Unquote(field.Tag.Value)
			values := reflect.StructTag(tag).Get("enum")
			if !strings.Contains(values, ",") {
				return true
			}
			n++
			if at[values] != "" {
				t.Errorf("%s and %s list %s: give both fields one type with these Values", at[values], f.path, values)
			}
			at[values] = f.path
			return true
		})
	}
	switch {
	case n > listed:
		t.Errorf("%d fields list their values in a tag, and there were %d: declare a type with a method Values", n, listed)
	case n < listed:
		t.Errorf("only %d fields list their values in a tag: let listed say so", n)
	}
}
