// Package web is the common layout of all pages for people, and the dashboard. A page of
// the server is one card with the name of the product, in light and dark. It runs no
// script, loads the stylesheet alone and sends only its own forms.
package web

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/api/op"
	"yardmaster/internal/client/inert"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/stencil"
)

// ContentType is the content type of every page.
const ContentType = "text/html; charset=utf-8"

// The icon shows two tracks that meet at a switch.
const (
	drawing = `<path d="M4 20V4M4 14c8 0 8-10 16-10v16"/>`
	icon    = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E" +
		"%3Cpath d='M4 20V4M4 14c8 0 8-10 16-10v16' fill='none' stroke='%230b8a63' stroke-width='3' " +
		"stroke-linecap='round'/%3E%3C/svg%3E"
)

// start is the page at which people begin where there is no dashboard.
const start = "/"

var base = sync.OnceValue(func() *stencil.Template {
	return stencil.Must(stencil.New(stencil.Page, "", pageParts, stencil.Funcs{
		"sheet": func() string { return pageSheet },
		"font":  func() string { return font },
		"icon":  func() stencil.HTML { return icon },
		"mark":  func() stencil.HTML { return `<svg viewBox="0 0 24 24" aria-hidden="true">` + drawing + `</svg>` },
	}))
})

const pageParts = `
{{define "head"}}<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{{.}} - Yardmaster</title><link rel="icon" href="{{icon}}"><link rel="preload" href="{{font}}" as="font" type="font/woff2" crossorigin><link rel="stylesheet" href="{{sheet}}"></head><body>
<header><a class="brand" href="/">{{mark}}Yardmaster</a></header>
{{end}}
{{define "top"}}{{template "head" .}}<main><h1>{{.}}</h1>
{{end}}
{{define "wide"}}{{template "head" .}}<main class="wide"><h1>{{.}}</h1>
{{end}}
{{define "end"}}</main>
{{end}}
{{define "foot"}}<footer>{{if .Begin}}<a href="{{.Begin}}">{{.Name}}</a>{{end}}{{if .SignOut}}{{template "signout" "/login"}}{{end}}</footer>
{{end}}
{{define "signout"}}<form method="post" action="/auth/logout"><input type="hidden" name="return_to" value="{{.}}"><button>Sign out</button></form>{{end}}
{{define "alert"}}{{if .}}<p role="alert">{{.}}</p>
{{end}}{{end}}
{{define "failure"}}{{template "top" .Title}}<p role="alert">{{.Detail}}</p>
{{with .Fields}}<ul>{{range .}}<li>{{.}}</li>{{end}}</ul>
{{end}}<p>{{with .Slug}}<a href="/problems/{{.}}">What this means</a>, or {{end}}<a href="/">go to the start</a>.</p>
{{with .RequestID}}<p><small>Request {{.}}</small></p>
{{end}}{{template "end"}}{{end}}`

// Pages are the templates of some pages. They are parsed when the first of them is shown.
type Pages struct{ parsed func() *stencil.Template }

// declared is filled while packages initialise and only read afterwards.
var declared []Pages

// Parse parses all pages of the packages of this program. It panics if the templates of one
// cannot be parsed, which a test finds before a person does.
func Parse() (n int) {
	for _, p := range declared {
		p.parsed()
	}
	return len(declared)
}

// Templates are the templates of some pages; it is for package-level variables. A page begins with {{template "top"
// TITLE}} or "wide", and ends with "end". "alert" shows an error, if there
// is one; "signout" is a button and takes the address to go to afterwards, for a page
// that says more of it than its foot.
func Templates(text string, funcs ...stencil.Funcs) Pages {
	p := Pages{sync.OnceValue(func() *stencil.Template {
		all := stencil.Funcs{}
		for _, f := range funcs {
			maps.Copy(all, f)
		}
		return stencil.Must(base().Extend(text, all))
	})}
	declared = append(declared, p)
	return p
}

// foot is what is below every page.
type foot struct {
	Begin, Name string // the page at which people begin, and what it is called
	SignOut     bool
}

// Render renders a page for the caller of ctx. Its forms may lead to this server, and to
// target. Below the page are the way to the
// dashboard, if there is one, and for a browser session a button that ends it.
func Render(ctx context.Context, p Pages, status int, name string, data any, target string) (op.Reply, error) {
	var b strings.Builder
	t := p.parsed()
	if err := t.Execute(&b, name, data); err != nil {
		return op.Reply{}, err
	}
	f := foot{Begin: op.RequestOf(ctx).Home, Name: "Dashboard"}
	if f.Begin == "" {
		f.Begin, f.Name = start, "Start"
	}
	f.SignOut = policy.From(ctx).Credential == policy.Session && !strings.Contains(b.String(), signOut)
	if err := t.Execute(&b, "foot", f); err != nil {
		return op.Reply{}, err
	}
	b.WriteString("</body></html>\n")
	// A page may hold text of agents and strangers: what controls, hides or turns text around
	// is shown as escapes, wherever it stands.
	body := inert.Escape(strings.ReplaceAll(b.String(), "\r\n", "\n"))
	return op.Reply{Status: status, ContentType: ContentType, Body: body, Header: headers(target)}, nil
}

// signOut is in pages that have the button themselves.
const signOut = `action="/auth/logout"`

// GoTo returns a redirect to an address that discards the form that was just sent.
// Empty cookies are not set.
func GoTo(address string, cookies ...string) op.Reply {
	cookies = slices.DeleteFunc(cookies, func(c string) bool { return c == "" })
	return op.Reply{
		Status: 303, ContentType: ContentType, Body: "", Cookies: cookies,
		Header: map[string]string{"Location": address},
	}
}

func headers(target string) map[string]string {
	policy := "default-src 'none'; style-src 'self'; font-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action " +
		strings.TrimSpace("'self' "+target)
	return map[string]string{
		"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "X-Robots-Tag": "noindex",
		// Without any referrer a form would have the origin "null".
		"Referrer-Policy": "same-origin",
	}
}

// own are the pages of this package.
var own = Templates("")

type failure struct {
	Title, Detail, Slug, RequestID string
	Fields                         []string
}

// Failure returns the page of a failure for a person, the caller of ctx.
func Failure(ctx context.Context, f *fault.Error) (op.Reply, error) {
	v := failure{Title: "This cannot go on", Detail: f.Detail, Slug: f.Slug, RequestID: op.RequestOf(ctx).ID}
	switch f.Kind {
	case fault.NotFound:
		v.Title = "There is nothing here"
	case fault.Internal:
		v.Title = "Something went wrong"
	}
	v.Fields = fields(f)
	return Render(ctx, own, f.Kind.Status(), "failure", v, "")
}

// fields lists what is wrong with which field.
func fields(f *fault.Error) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		line := strings.Join(f.Fields[name], ", ")
		if name != "" {
			line = name + " " + line
		}
		out = append(out, line)
	}
	return out
}

// OneLine returns a failure as one line, for a form that is shown again.
func OneLine(f *fault.Error) string {
	if list := fields(f); len(list) > 0 {
		return strings.Join(list, "; ")
	}
	return f.Detail
}

// Complaint is what a form says when it is shown again because of a failure: the status
// of its page, and a line. Without a failure they are 200 and empty. A failure of the
// server itself is for nobody's form, and comes back as err.
func Complaint(failure error) (status int, line string, err error) {
	if failure == nil {
		return 200, "", nil
	}
	f := fault.From(failure)
	if f.Kind == fault.Internal {
		return 0, "", failure
	}
	return f.Kind.Status(), OneLine(f), nil
}
