package reference_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/reference"
)

// TestPage holds that the page shows every capability and schema, that every link
// leads to a place on the page or to the document, and that nothing is loaded from
// elsewhere.
func TestPage(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := reference.Render(doc, "/style.css", "/script.js")
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
		if !ids[m[1]] && !strings.HasPrefix(m[1], "receive.") { // which are of who is sent events
			t.Errorf("%s is not on the page", m[1])
		}
	}
	for _, m := range regexp.MustCompile(` (?:href|src)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		anchor, within := strings.CutPrefix(m[1], "#")
		if within && !ids[anchor] || !within && !slices.Contains([]string{"/", "/v1/openapi.json", "/style.css", "/script.js"}, m[1]) &&
			!strings.HasPrefix(m[1], "data:image/svg") {
			t.Errorf("a link leads to %s", m[1])
		}
	}
	for _, far := range []string{"@import", "url(", "fetch(", " style=", "<style", " onclick=", "ZgotmplZ"} {
		if strings.Contains(page, far) {
			t.Errorf("the page has %q", far)
		}
	}
}

func TestNotADocument(t *testing.T) {
	for _, text := range []string{"", "[]", `{"paths": {"/x": {"get": {"operationId": "x.y", "tags": ["z"]}}}}`} {
		if _, err := reference.Render([]byte(text), "", ""); err == nil {
			t.Errorf("%q is taken for a document", text)
		}
	}
}

// TestNamesAreMarked holds that names in prose are marked, and words are not.
func TestNamesAreMarked(t *testing.T) {
	const doc = `{"info": {"description": "Call it at POST /v1/mcp, as X-Svc-Account says; Cache-Control: no-store. Post <b>it</b> with filter=key:value."},
		"tags": [{"name": "plan", "description": "See plan.start, not e.g. This.that; the ` + "`plan.start`" +
		` of Retry-After, read:tasks and and/or."}],
		"paths": {"/v1/plans/{planId}": {"get": {"operationId": "plan.start", "tags": ["plan"], "description": "Its task_id's planId is (next_cursor), .svc/policy.yml or text/html. Get the plan's title.",
			"parameters": [{"name": "planId", "in": "path", "required": true, "schema": {"type": "string"}, "description": "user:<id>"}, {"name": "title", "in": "query", "schema": {"type": "string"}, "description": "title"}]}}},
		"components": {"headers": {"Retry-After": {}, "Allow": {}}, "schemas": {"Plan": {"description": "Allow dev_pat_… alone.", "properties": {"next_cursor": {"type": "string", "description": "per_page"}}}}}}`
	b, err := reference.Render([]byte(doc), "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`Call it at <code>POST /v1/mcp</code>, as <code>X-Svc-Account</code> says; <code>Cache-Control: no-store</code>. Post ` +
			`&lt;b&gt;it&lt;/b&gt; with <code>filter=key:value</code>.`,
		`See <a href="#plan.start"><code>plan.start</code></a>, not e.g. This.that; the <code>plan.start</code> of ` +
			`<code>Retry-After</code>, <code>read:tasks</code> and and/or.`,
		`Its <code>task_id</code>'s <code>planId</code> is (<code>next_cursor</code>), <code>.svc/policy.yml</code> or ` +
			`<code>text/html</code>. Get the plan's title.`,
		`<td><code>user:&lt;id&gt;</code></td>`, `<td>title</td>`, `<td><code>per_page</code></td>`,
		`<p>Allow <code>dev_pat_…</code> alone.</p>`,
	} {
		if !strings.Contains(strings.ReplaceAll(string(b), "&#39;", "'"), want) {
			t.Errorf("%s is not on the page", want)
		}
	}
	if t.Failed() {
		t.Log(string(b)[strings.Index(string(b), "<main"):])
	}
}
