package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"yardmaster/internal/web"
)

// The documents are files of the dashboard, by their hashes, and a list says their titles
// and headings. What looks like a heading within code is none.
func TestManual(t *testing.T) {
	b, err := web.Dashboard()
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Parts []struct {
			Name string
			Docs []struct {
				Name, Title, About, Path string
				Headings                 []struct {
					Level int
					Text  string
				}
			}
		}
	}
	list := b.Files["manual.json"]
	if list == nil || list.Cache != "no-cache" {
		t.Fatalf("the list is %v", list)
	}
	if err := json.Unmarshal(list.Body, &m); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range m.Parts {
		for _, d := range p.Docs {
			n++
			f := b.Files[strings.TrimPrefix(d.Path, "/ui/a/")]
			if f == nil || !strings.HasPrefix(string(f.Body), "# "+d.Title+"\n") || !strings.Contains(f.Cache, "immutable") ||
				f.ContentType != "text/plain; charset=utf-8" {
				t.Errorf("%s: %s leads to %v", d.Name, d.Path, f)
			}
			if d.About == "" || strings.HasPrefix(d.About, "#") {
				t.Errorf("%s is about %q", d.Name, d.About)
			}
			for _, h := range d.Headings {
				if d.Name == "plans" && h.Text == "Document the retries" {
					t.Error("a line of an example is taken for a heading")
				}
				if h.Level < 2 {
					t.Errorf("%s has a second title: %s", d.Name, h.Text)
				}
			}
		}
	}
	if n < 10 {
		t.Errorf("%d documents are listed", n)
	}
}
