package web_test

import (
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/client/inert"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

// TestFailure holds that a failure is shown in words, with all input escaped.
func TestFailure(t *testing.T) {
	f := fault.Field("name", "<script>is not a name")
	call := op.Call{Request: op.Request{ID: "r-1", Home: "/ui/"}}
	r, err := web.Failure(call.Context(t.Context(), policy.Actor{}), f)
	if err != nil {
		t.Fatal(err)
	}
	body := r.Body.(string)
	if r.Status != 400 || strings.Contains(body, "<script>") ||
		strings.Contains(body, "Sign out") || strings.Contains(body, "<style") {
		t.Errorf("%d %s", r.Status, body)
	}
	for _, want := range []string{"<main>", "Yardmaster", "name &lt;script&gt;is not a name", "/problems/invalid", "r-1", `rel="icon"`,
		`<a href="/ui/">Dashboard</a>`, `<link rel="stylesheet" href="/ui/a/page-`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	if p := r.Header["Content-Security-Policy"]; strings.Contains(p, "unsafe") || !strings.Contains(p, "style-src 'self';") ||
		!strings.Contains(p, "default-src 'none'") ||
		!strings.Contains(p, "form-action 'self'") {
		t.Errorf("the policy is %s", p)
	}
}

// Below a page is a way to sign out for a browser session, once, and the way to the
// dashboard only where there is one.
func TestFoot(t *testing.T) {
	own := web.Templates(`{{define "own"}}{{template "top" "Own"}}{{template "signout" "/login"}}{{template "end"}}{{end}}
{{define "plain"}}{{template "top" "Plain"}}{{template "end"}}{{end}}`)
	for _, c := range []struct {
		page, home string
		credential policy.Credential
		outs       int
		begin      string
	}{
		{"plain", "/ui/", policy.Session, 1, `href="/ui/">Dashboard`},
		{"own", "/ui/", policy.Session, 1, `href="/ui/">Dashboard`},
		{"plain", "", policy.Session, 1, `href="/">Start`},
		{"plain", "/ui/", policy.ActionLink, 0, `href="/ui/">Dashboard`},
	} {
		call := op.Call{Request: op.Request{Home: c.home}}
		r, err := web.Render(call.Context(t.Context(), policy.Actor{Credential: c.credential}), own, 200, c.page, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		body := r.Body.(string)
		if n := strings.Count(body, "Sign out"); n != c.outs || !strings.Contains(body, c.begin) ||
			!strings.HasSuffix(body, "</footer>\n</body></html>\n") {
			t.Errorf("%+v: %d buttons to sign out in\n%s", c, n, body)
		}
	}
}

// What controls, hides or turns text around is an escape on every page, wherever it stands.
func TestPagesAreInert(t *testing.T) {
	const nasty = "a\u202eb\x1b[31mc\u200bd\u3164\r\ne"
	of := web.Templates(`{{define "p"}}{{template "top" .}}{{template "alert" .}}<p title="{{.}}">{{.}}</p><input value="{{.}}">` +
		`<a href="/x?y={{.}}">{{.}}</a>{{template "end"}}{{end}}`)
	r, err := web.Render(t.Context(), of, 200, "p", nasty, "")
	if err != nil {
		t.Fatal(err)
	}
	failed, err := web.Failure(t.Context(), fault.Field("f"+nasty, nasty))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []op.Reply{r, failed} {
		body := r.Body.(string)
		if inert.Escape(body) != body || !strings.Contains(body, `\u202e`) || strings.Contains(body, `\u000d`) {
			t.Errorf("the page is %q", body)
		}
	}
}

// The stylesheet of a page is there without the dashboard, by its hash, and small.
func TestSheet(t *testing.T) {
	r, err := web.Failure(t.Context(), fault.Missing("page"))
	if err != nil {
		t.Fatal(err)
	}
	_, name, _ := strings.Cut(r.Body.(string), `rel="stylesheet" href="/ui/a/`)
	name, _, _ = strings.Cut(name, `"`)
	f := web.File(name)
	if f == nil {
		t.Fatalf("there is no file %q", name)
	}
	if !strings.Contains(string(f.Body), "--good: light-dark(") || !strings.Contains(f.Cache, "immutable") ||
		f.ContentType != "text/css; charset=utf-8" {
		t.Errorf("%s: %s, %s\n%s", name, f.ContentType, f.Cache, f.Body)
	}
	if len(f.Body) > 20_000 {
		t.Errorf("%s has %d bytes", name, len(f.Body))
	}
	// The font that the sheet names is there by its hash, too.
	_, font, _ := strings.Cut(string(f.Body), `url("/ui/a/`)
	font, _, _ = strings.Cut(font, `"`)
	letters := web.File(font)
	if letters == nil || letters.ContentType != "font/woff2" || len(letters.Body) > 40_000 {
		t.Errorf("the font %q: %+v", font, letters)
	}
	if !strings.Contains(r.Body.(string), `href="/ui/a/`+font+`" as="font"`) {
		t.Errorf("the page does not load %s ahead", font)
	}
	if web.File("app.css") != nil {
		t.Error("a file of another name")
	}
}
