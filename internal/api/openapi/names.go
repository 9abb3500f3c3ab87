package openapi

import (
	"path"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// own returns a tag of a struct's own blank field.
func own(t reflect.Type, tag string) string {
	if t.Kind() != reflect.Struct {
		return ""
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Name == "_" {
			return f.Tag.Get(tag)
		}
	}
	return ""
}

// schemaName returns the name of a type in the document, "" for a type without a
// name. It is package and type, so that task.Hold is TaskHold, or the type alone if
// it begins with its package's name, as task.Task and task.TaskHold do. The tag
// schema of the type's blank field overrides it. The envelopes of package op have
// their own name after that of their contents: op.Page[task.Hold] is TaskHoldPage.
func schemaName(t reflect.Type) string {
	name, arg, generic := strings.Cut(t.Name(), "[")
	switch {
	case name == "":
		return ""
	case generic:
		return argName(t, strings.TrimSuffix(arg, "]")) + name
	}
	if said := own(t, "schema"); said != "" {
		return said
	}
	return qualified(path.Base(t.PkgPath()), name)
}

// typeName writes the id of an operation or an event as the name of a type:
// task.run_status is TaskRunStatus.
func typeName(id string) string {
	out := ""
	for _, word := range strings.FieldsFunc(id, func(r rune) bool { return r == '.' || r == '_' }) {
		out += strings.ToUpper(word[:1]) + word[1:]
	}
	return out
}

// argName returns the schema name of the type parameter of a generic struct.
// Reflection gives the parameter only as text, so argName finds it as the type of a
// member, or of a list in a member.
func argName(t reflect.Type, arg string) string {
	for i := range t.NumField() {
		f := t.Field(i).Type
		for f.Kind() == reflect.Slice || f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.PkgPath()+"."+f.Name() == arg {
			return schemaName(f)
		}
	}
	return arg[strings.LastIndexAny(arg, "./")+1:]
}

// qualified puts a package's name before the name of a type that lacks it.
func qualified(pkg, name string) string {
	if pkg == "op" || len(name) >= len(pkg) && strings.EqualFold(name[:len(pkg)], pkg) {
		return name
	}
	first, size := utf8.DecodeRuneInString(pkg)
	return string(unicode.ToUpper(first)) + pkg[size:] + name
}
