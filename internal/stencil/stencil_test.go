package stencil

import (
	"bytes"
	"errors"
	htmltemplate "html/template"
	"strings"
	"testing"
	"text/template"
)

type person struct {
	Name  string
	Age   int
	Boss  *person
	Tags  []string
	Notes map[string]any
	Any   any
}

var ada = person{
	Name: `Ada <b>"'&`, Age: 36, Boss: &person{Name: "Eve"}, Tags: []string{"x", "y z", ""},
	Notes: map[string]any{"b": 2, "a": "one", "c": nil, "d": []any{1.5, true, "q"}, "e": map[string]any{"f": "g"}}, Any: []int{3, 1},
}

// texts are templates that run in the same way by the standard library.
var texts = []string{
	`{{.Name}} is {{.Age}}`, `{{.Boss.Name}}`, `{{.Boss.Boss}}`, `{{with .Boss}}{{.Name}}{{else}}none{{end}}`,
	`{{if .Tags}}{{range $i, $t := .Tags}}{{if $i}}, {{end}}{{$t}}{{end}}{{end}}`, `{{range .Notes}}[{{.}}]{{end}}`,
	`{{range $k, $v := .Notes}}{{$k}}={{$v}};{{end}}`, `{{.Notes.b}} {{.Notes.none}} {{.Notes.e.f}}`, `{{len .Tags}} {{index .Tags 1}}`,
	`{{index .Notes "e" "f"}} {{index .Notes "none"}}`, `{{printf "%s-%d" .Name .Age}}`, `{{print 1 2 "x"}}{{println "a"}}`,
	`{{if and .Name (gt .Age 30) (lt .Age 40)}}yes{{end}}`, `{{or "" .Name}}`, `{{not .Name}}`,
	`{{eq .Age 36 37}} {{ne .Name "x"}} {{le .Age 36}}`,
	`{{$x := 1}}{{$x}}{{if true}}{{$x = 2}}{{end}}{{$x}}`, `{{range .Tags}}{{if eq . "y z"}}{{break}}{{end}}{{.}}{{end}}`,
	`{{range .Tags}}{{if eq . "x"}}{{continue}}{{end}}<{{.}}>{{else}}none{{end}}`, `{{range 3}}{{.}}{{end}}`,
	`{{define "t"}}({{.}}){{end}}{{template "t" .Name}}{{template "t" .Age}}`, `{{"a" | printf "%s%s" "b"}}`, `{{(index .Tags 0) | len}}`,
	`{{slice .Name 0 3}} {{slice .Tags 1 | len}}`, `{{html .Name}} {{js .Name}} {{urlquery .Name}}`, `{{.Any}} {{index .Any 0}}`,
	`{{- /* a comment */ -}} x {{- " y " -}} z`, `{{$}}`, `{{with $x := .Boss}}{{$x.Name}} {{$.Age}}{{end}}`,
	`{{1.5}} {{0x10}} {{'a'}} {{-3}} {{1e3}}`,
	`{{if .Boss}}{{else if .Age}}{{end}}`, `{{with .Boss.Boss}}x{{else with .Age}}{{.}}{{end}}`, `{{block "b" .Age}}{{.}}{{end}}`,
	`{{twice .Age}} {{.Age | twice}} {{fails false}}`, `{{range $i, $_ := .Any}}{{$i}}{{end}}`, `{{range .Notes.d}}{{.}},{{end}}`,
}

// wrong are templates that fail in both.
var wrong = []string{
	`{{.None}}`, `{{.Boss.Boss.Name}}`, `{{.Name.X}}`, `{{index .Tags 7}}`, `{{index .Tags -1}}`, `{{len 3}}`, `{{template "none"}}`,
	`{{fails true}}`,
	`{{twice "x"}}`, `{{twice}}`, `{{range .Name}}{{.X}}{{end}}`, `{{lt .Name 1}}`,
	`{{define "t"}}{{template "t"}}{{end}}{{template "t"}}`,
	`{{.Name 3}}`, `{{slice .Name 2 1}}`, `{{eq .Tags .Notes}}`,
}

var functions = Funcs{
	"twice": func(n int) int { return 2 * n },
	"fails": func(is bool) (string, error) {
		if is {
			return "", errors.New("it fails")
		}
		return "fine", nil
	},
}

func ours(kind Kind, text string, data any) (string, error) {
	t, err := New(kind, "t0", text, functions)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, "t0", data)
	return b.String(), err
}

func theirs(text string, data any) (string, error) {
	t, err := template.New("t0").Funcs(functions).Parse(text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, data)
	return b.String(), err
}

// A template makes what text/template makes of it.
func TestLikeTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		want, err := theirs(text, ada)
		if err != nil {
			t.Errorf("text/template: %s: %v", text, err)
		}
		if got, err := ours(Text, text, ada); err != nil || got != want {
			t.Errorf("%s is %q, want %q; %v", text, got, want, err)
		}
	}
	for _, text := range wrong {
		if _, err := theirs(text, ada); err == nil && !strings.HasPrefix(text, "{{define") {
			t.Errorf("text/template takes %s", text)
		}
		if got, err := ours(Text, text, ada); err == nil {
			t.Errorf("%s is %q, want an error", text, got)
		}
	}
}

// A page escapes by the place what html/template escapes, and refuses all other places.
func TestPagesEscape(t *testing.T) {
	t.Parallel()
	hostile := map[string]any{
		"s": `"><script>alert('1')</script>&`, "js": "JaVaScript:alert(1)", "data": "data:text/html,<script>",
		"u":   "https://h.example/a?b=c&d=e#f",
		"rel": "/a/b?c=d", "q": "a b&c=d/e?f#g'", "b": true, "n": 7, "l": []string{"<i>", "x"}, "mail": "mailto:a@example.com", "none": nil,
	}
	same := []string{
		`<p>{{.s}}</p>`, `<p title="{{.s}}" class='{{.s}}'>{{.n}}</p>`, `<a href="{{.u}}">{{.u}}</a>`, `<a href="{{.rel}}">x</a>`,
		`<a href="{{.mail}}">x</a>`, `<button{{if .b}} class="main"{{end}}>x</button>`, `<ul>{{range .l}}<li>{{.}}</li>{{end}}</ul>`,
		`<title>{{.n}}</title><style>p{color:red}</style><p>{{.none}}</p>`,
		`<option value="{{.s}}"{{if .b}} selected{{end}}>{{.l}}</option>`,
		`<p style="{{if .b}}color:red{{else}}color:blue{{end}}">{{.n}}</p>`,
	}
	for _, text := range same {
		std, err := htmltemplate.New("t0").Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := std.Execute(&want, hostile); err != nil {
			t.Fatal(err)
		}
		if got, err := ours(Page, text, hostile); err != nil || got != want.String() {
			t.Errorf("%s is %q, want %q; %v", text, got, want.String(), err)
		}
	}
	for text, want := range map[string]string{
		`<a href="{{.js}}">x</a>`:                 `<a href="#">x</a>`,
		`<form action="{{.data}}">`:               `<form action="#">`,
		`<a href="/l?to={{.q}}&amp;x=1">x</a>`:    `<a href="/l?to=a%20b%26c%3Dd%2Fe%3Ff%23g%27&amp;x=1">x</a>`,
		`<a href="/l/{{.q}}">x</a>`:               `<a href="/l/a%20b&amp;c=d%2Fe%3Ff%23g%27">x</a>`,
		`<a href="/l{{.q}}?a={{.q}}">x</a>`:       `<a href="/la%20b&amp;c=d%2Fe%3Ff%23g%27?a=a%20b%26c%3Dd%2Fe%3Ff%23g%27">x</a>`,
		`<a href="{{.js}}{{.js}}">x</a>`:          `<a href="#JaVaScript:alert%281%29">x</a>`,
		`<a href="{{if .b}}{{.js}}{{end}}">x</a>`: `<a href="#">x</a>`,
	} {
		if got, err := ours(Page, text, hostile); err != nil || got != want {
			t.Errorf("%s is %q, want %q; %v", text, got, want, err)
		}
	}
	for _, text := range []string{
		`<p {{.s}}>`, `<p title={{.s}}>`, `<{{.s}}>`, `<script>{{.s}}</script>`, `<style>{{.s}}</style>`,
		`<p onclick="{{.s}}">`, `<p style="{{.s}}">`,
		`<!-- {{.s}} -->`, `<p title="`, `<p {{template "t0"}}>`, `{{if .b}}<p {{end}}>`,
		`{{if .b}}<p title="{{else}}<p class="{{end}}x">`,
		`{{range .l}}<p title="{{end}}">`, `<iframe srcdoc="{{.s}}">`,
		`<meta http-equiv="refresh" content="{{.s}}">`, `<img srcset="{{.s}}">`,
	} {
		if got, err := ours(Page, text, hostile); err == nil {
			t.Errorf("%s is %q, want an error", text, got)
		}
	}
}

// Templates of one set have its functions, and With changes them.
func TestExtend(t *testing.T) {
	t.Parallel()
	base := Must(New(Page, "", `{{define "top"}}<h1>{{.}}{{mark}}</h1>{{end}}`, Funcs{"mark": func() HTML { return "<b>" }}))
	page := Must(base.Extend(`{{define "page"}}{{template "top" "A & B"}}{{says .}}{{end}}`, Funcs{"says": func(s string) string { return s + "!" }}))
	for want, p := range map[string]*Template{
		"<h1>A &amp; B<b></h1>&lt;!": page,
		"<h1>A &amp; B<b></h1>?":     page.With(Funcs{"says": func(string) string { return "?" }}),
	} {
		var b strings.Builder
		if err := p.Execute(&b, "page", "<"); err != nil || b.String() != want {
			t.Errorf("it is %q, want %q; %v", b.String(), want, err)
		}
	}
	if err := base.Execute(&strings.Builder{}, "page", ""); err == nil {
		t.Error("a set has the templates of one that extends it")
	}
}

// What text/template takes and this package does too, comes out alike.
func FuzzLikeTheStandardLibrary(f *testing.F) {
	for _, text := range append(texts, wrong...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		long := strings.Contains(text, "range") && strings.Count(text, "0") > 2
		if long || strings.Contains(text, "template") || strings.Contains(text, "block") {
			return // it may not end
		}
		got, err := ours(Text, text, ada)
		if err != nil {
			return
		}
		want, err := theirs(text, ada)
		if err == nil && got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	})
}
