package app

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Money and whatever else is a decimal number in text has the format of one: a member that is a
// text, and whose example is a number with a fraction. Versions are none.
func TestDecimalsHaveTheirFormat(t *testing.T) {
	t.Parallel()
	number := regexp.MustCompile(`^-?[0-9]+\.[0-9]+$`)
	seen, decimals := map[reflect.Type]bool{}, 0
	var look func(t reflect.Type, where string)
	check := func(where string, f reflect.StructTag, kind reflect.Kind) {
		if kind != reflect.String || !number.MatchString(f.Get("example")) || strings.Contains(where, "version") {
			return
		}
		if decimals++; f.Get("format") != "decimal" {
			t.Errorf("%s has the example %s and the format %q", where, f.Get("example"), f.Get("format"))
		}
	}
	look = func(of reflect.Type, where string) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			kind := f.Type
			for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			}
			check(where+"."+f.Tag.Get("json"), f.Tag, kind.Kind())
			look(f.Type, where+"."+f.Name)
		}
	}
	for _, o := range Ops() {
		if o.Output() != nil {
			look(o.Output(), o.ID)
		}
		for _, e := range o.Events {
			look(reflect.TypeOf(e.Data), o.ID)
		}
		for _, f := range o.Shape().Fields {
			kind := f.Type
			for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			}
			check(o.ID+" "+f.Name, f.Tag, kind.Kind())
			look(f.Type, o.ID+" "+f.Name)
		}
	}
	if decimals < 15 {
		t.Errorf("only %d decimals were found", decimals)
	}
}
