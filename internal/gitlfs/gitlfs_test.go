package gitlfs

import (
	"strings"
	"testing"
)

func TestPointers(t *testing.T) {
	t.Parallel()
	p := Pointer{OID: strings.Repeat("0a", 32), Size: 12}
	if got, ok := ParsePointer([]byte(p.String())); !ok || got != p {
		t.Errorf("%v %v", got, ok)
	}
	extended := strings.Replace(p.String(), "\noid", "\next-0-foo sha256:"+p.OID+"\noid", 1)
	if got, ok := ParsePointer([]byte(extended)); !ok || got != p {
		t.Errorf("%v %v", got, ok)
	}
	for name, text := range map[string]string{
		"empty":       "",
		"text":        "hello\n",
		"no end":      strings.TrimSuffix(p.String(), "\n"),
		"CRLF":        strings.ReplaceAll(p.String(), "\n", "\r\n"),
		"upper case":  strings.ReplaceAll(p.String(), "0a", "0A"),
		"negative":    strings.Replace(p.String(), "size 12", "size -1", 1),
		"more":        p.String() + "more\n",
		"another ver": strings.Replace(p.String(), "v1", "v2", 1),
		"large":       strings.Replace(p.String(), "\noid", "\next-0-"+strings.Repeat("x", MaxPointer)+"\noid", 1),
	} {
		if got, ok := ParsePointer([]byte(text)); ok {
			t.Errorf("%s is a pointer: %v", name, got)
		}
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	object := func(oid string) Object { return Object{Pointer: Pointer{OID: oid}} }
	b := Batch{Objects: []Pointer{{OID: "a"}, {OID: "b"}}}
	for name, c := range map[string]struct {
		objects []Object
		want    bool
	}{
		"all":     {[]Object{object("b"), object("a")}, true},
		"one":     {[]Object{object("a")}, false},
		"another": {[]Object{object("a"), object("b"), object("c")}, false},
		"instead": {[]Object{object("a"), object("c")}, false},
	} {
		if (Answer{Objects: c.objects}).Whole(b) != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
}
