package blocker

import (
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
)

// poster returns a function that posts the form of a blocker, as a browser or not.
func (f *fixture) poster(blockerID string) func(accept string, form url.Values) *httptest.ResponseRecorder {
	page, err := f.list(f.ctx(), listIn{PageIn: op.PageIn{PerPage: 100}})
	i := slices.IndexFunc(page.Data, func(b Blocker) bool { return b.ID == blockerID })
	if err != nil || i < 0 || page.Data[i].FixURL == nil {
		f.t.Fatal(page, err)
	}
	h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{BaseURL: "http://yard"}}, f.Ops())
	return func(accept string, form url.Values) *httptest.ResponseRecorder {
		req := httptest.NewRequest("POST", strings.TrimPrefix(*page.Data[i].FixURL, "http://yard"), strings.NewReader(form.Encode()))
		req.Header.Set("Accept", accept)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
}

// TestRefusedOnThePage: for a browser, the valid values of a form are stored, and the
// form comes again for the others, with the reason at each field and without a
// secret. For a program, all values are stored or none.
func TestRefusedOnThePage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		post := f.poster(f.declare("?", "KEY", "BAD", "HOOK_URL:service_url", "DB_URL:service_url", "tracker:mcp_server"))
		form := url.Values{"fields.KEY": {"a-very-good-key"}, "fields.BAD": {"refused"}, "fields.HOOK_URL": {"localhost:8080/x"},
			"fields.DB_URL":          {"ada:hidden-word@db/x"},
			"fields.mcp:tracker.url": {"http://mcp.example.com/x"}, "fields.mcp:tracker.transport": {"sse"},
			"fields.mcp:tracker.token": {"the-token-of-it"}, "fields.NOPE": {"x"}}
		if w := post("application/json", form); w.Code != 422 || len(f.kept) != 0 {
			t.Fatalf("a program: %d %s; kept %+v", w.Code, w.Body, f.kept)
		}
		w := post("text/html", form)
		text := w.Body.String()
		if want := []Value{{RepoID: "repo", Name: "KEY", Value: "a-very-good-key"}}; w.Code != 422 || !slices.Equal(f.kept, want) {
			t.Fatalf("%d, kept %+v\n%s", w.Code, f.kept, text)
		}
		for _, want := range []string{"<form", "Kept: <bdi>KEY</bdi>", "Not all of it was kept. NOPE is no field of this form.",
			`value="localhost:8080/x"`, `value="http://mcp.example.com/x"`, `value="sse" selected`} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not on the page:\n%s", want, text)
			}
		}
		for _, secret := range []string{"a-very-good-key", ">refused<", "hidden-word", "the-token-of-it"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is on the page:\n%s", secret, text)
			}
		}
		for field, want := range map[string]string{"BAD": "it is refused", "HOOK_URL": "it must be an address with a scheme and a host",
			"DB_URL":  "it must be an address",
			"tracker": "its url must be an https address"} {
			if !strings.Contains(text, "<legend><bdi>"+field+"</bdi></legend>\n<p role=\"alert\">This was not kept: "+want) {
				t.Errorf("%s does not say %q:\n%s", field, want, text)
			}
		}
		form.Set("fields.HOOK_URL", "http://localhost:8080/x")
		form.Del("fields.NOPE")
		w = post("text/html", form) // KEY once more
		if text = w.Body.String(); w.Code/100 != 4 || !strings.Contains(text, "it has its value already") ||
			!strings.Contains(text, "Kept: <bdi>HOOK_URL</bdi>") ||
			!slices.ContainsFunc(f.kept, func(v Value) bool { return v.Name == "HOOK_URL" }) {
			t.Errorf("%d, kept %+v\n%s", w.Code, f.kept, text)
		}
		w = post("text/html", url.Values{"fields.BAD": {"refused"}})
		if text = w.Body.String(); w.Code != 422 || !strings.Contains(text, "Nothing was kept.") || !strings.Contains(text, "<form") {
			t.Errorf("%d\n%s", w.Code, text)
		}
		// The pattern of the page refuses the same addresses as the server.
		m := regexp.MustCompile(`name="fields.DB_URL"[^>]* pattern="([^"]+)"`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no pattern:\n%s", text)
		}
		like := regexp.MustCompile("^(?:" + m[1] + ")$")
		for address, want := range map[string]bool{"localhost:8080/x": false, "nowhere": false, "/x": false, "http:///x": false,
			"postgres://u:p@db/x": true, "git+ssh://host": true, "HTTPS://a?b": true} {
			if like.MatchString(address) != want ||
				(entryFault([]fieldRow{{Name: "A", Kind: ServiceURL}}, "A", entry{text: address}) == "") != want {
				t.Errorf("%s: the page takes it: %t, want %t", address, like.MatchString(address), want)
			}
		}
	})
}
