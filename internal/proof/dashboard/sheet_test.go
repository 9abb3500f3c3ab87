//go:build !race

package dashboard_test

import (
	"html/template"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/web"
)

// whole is the page of all parts of the sheet, each in its states.
const whole = "testdata/components.html"

// sheets returns the names of the sheets in the order in which a page of the dashboard
// has them, and the dashboard.
func sheets(t *testing.T) (names []string, built *web.Built) {
	t.Helper()
	built, err := web.Dashboard()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`/ui/a/((?:app|more)-\w+\.css)`).FindAllStringSubmatch(string(built.Page.Body), -1) {
		names = append(names, m[1])
	}
	if len(names) != 2 {
		t.Fatalf("the page names the sheets %q", names)
	}
	return names, built
}

// partsServer serves the page of parts as the dashboard is served: its files, its policy.
func partsServer(t *testing.T) string {
	t.Helper()
	names, built := sheets(t)
	page := template.Must(template.ParseFiles(whole))
	asset := func(w http.ResponseWriter, a *op.Asset) {
		w.Header().Set("Content-Type", a.ContentType)
		_, _ = w.Write(a.Body)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/ui/a/")
		switch {
		case name == "/components.css":
			http.ServeFile(w, r, "testdata/components.css")
		case built.Files[name] != nil:
			asset(w, built.Files[name])
		case web.File(name) != nil:
			asset(w, web.File(name))
		default:
			w.Header().Set("Content-Type", web.ContentType)
			w.Header().Set("Content-Security-Policy", built.Page.Policy)
			if err := page.Execute(w, map[string][]string{"Sheets": {"/ui/a/" + names[0], "/ui/a/" + names[1]}}); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Each part of the sheet can be used wide and narrow, in light and in dark, under the policy
// of the dashboard, in the font that the sheet names.
func TestPartsOfTheSheet(t *testing.T) {
	t.Parallel()
	b := browser.Open(t, partsServer(t), 1440, 900)
	b.Go("/")
	for _, width := range []int64{1440, 1024, 390, 320} {
		b.Resize(width, 900)
		for _, theme := range []string{"light", "dark"} {
			b.Theme(theme)
			if width > 320 {
				usable(b, "the parts in "+theme)
			}
			if shots := os.Getenv("SHOTS"); shots != "" {
				b.Picture(shots + "/components-" + theme + ".png")
			}
		}
		if over := browser.Eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf("at %d px the page scrolls sideways by %d px", width, over)
		}
	}
	if got := browser.Eval[bool](b, `document.fonts.load("13px Inter").then(all => all.length > 0 && document.fonts.check("13px Inter"))`); !got {
		t.Error("the font does not come")
	}
	for _, c := range b.Complaints() {
		t.Errorf("the browser complains: %s", c)
	}
}

// What the page of parts is made of stands in the sheets: a part that is taken out of them is
// seen here.
func TestPartsHaveRules(t *testing.T) {
	t.Parallel()
	names, built := sheets(t)
	own, err := os.ReadFile("testdata/components.css")
	if err != nil {
		t.Fatal(err)
	}
	sheet := string(own)
	for _, n := range names {
		sheet += string(built.Files[n].Body)
	}
	page, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`class="([^"]+)"`).FindAllStringSubmatch(string(page), -1) {
		for name := range strings.FieldsSeq(m[1]) {
			seen[name] = true
		}
	}
	for name := range seen {
		if !regexp.MustCompile(`\.` + regexp.QuoteMeta(name) + `\b`).MatchString(sheet) {
			t.Errorf("the page of parts has the class %s, of which no sheet speaks", name)
		}
	}
}
