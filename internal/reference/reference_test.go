package reference_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/reference"
)

// The page shows every capability and schema, every link on it leads somewhere
// on it or to the document, and nothing on it is fetched from elsewhere.
func TestPage(t *testing.T) {
	doc, err := os.ReadFile("../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := reference.Render(doc)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("two elements are %s", m[1])
		}
		ids[m[1]] = true
	}
	operations := regexp.MustCompile(`"operationId": "([^"]+)"`).FindAllStringSubmatch(string(doc), -1)
	if len(operations) < 50 {
		t.Fatalf("the document has %d operations", len(operations))
	}
	for _, m := range operations {
		if !ids[m[1]] {
			t.Errorf("%s is not on the page", m[1])
		}
	}
	for _, m := range regexp.MustCompile(` (?:href|src)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		anchor, within := strings.CutPrefix(m[1], "#")
		if within && !ids[anchor] || !within && m[1] != "/v1/openapi.json" && m[1] != "data:," {
			t.Errorf("a link leads to %s", m[1])
		}
	}
	for _, far := range []string{"@import", "url(", "fetch(", " style=", " onclick=", "ZgotmplZ"} {
		if strings.Contains(page, far) {
			t.Errorf("the page has %q", far)
		}
	}
}

func TestNotADocument(t *testing.T) {
	for _, text := range []string{"", "[]", `{"paths": {"/x": {"get": {"operationId": "x.y", "tags": ["z"]}}}}`} {
		if _, err := reference.Render([]byte(text)); err == nil {
			t.Errorf("%q is taken for a document", text)
		}
	}
}
