//go:build !race

package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/client"
	"yardmaster/internal/proof/browser"
)

// library is a control plane with acme/web, and what is known of it.
type library struct {
	*yard
	repo string
}

func shelve(t *testing.T) *library {
	t.Helper()
	y := start(t)
	if err := y.Push("acme/web", map[string]string{"README.md": "# Web\n", "Makefile": "all:\n\tgo build\n"}); err != nil {
		t.Fatal(err)
	}
	id, _ := y.call("GET", "/v1/repos/acme/web", "")["id"].(string)
	return &library{yard: y, repo: id}
}

// write writes a page as a program does, and returns its status.
func (l *library) write(slug string, page map[string]any) int {
	l.T.Helper()
	body, err := json.Marshal(page)
	if err != nil {
		l.T.Fatal(err)
	}
	resp, _ := l.Send("PUT", "/v1/kb/"+l.repo+"/pages/"+slug, l.Owner, string(body))
	return resp.StatusCode
}

func (l *library) page(slug string) map[string]any {
	return l.call("GET", "/v1/kb/"+l.repo+"/pages/"+slug, "")
}

// commit changes a file on the default branch.
func (l *library) commit(name, content string) {
	l.T.Helper()
	dir := l.T.TempDir()
	for _, args := range [][]string{
		{"clone", "--quiet", l.URL + "/git/acme/web.git", "."}, nil,
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet",
			"--all", "--message", "Change it"},
		{"push", "--quiet"},
	} {
		if args == nil {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				l.T.Fatal(err)
			}
			continue
		}
		if _, err := client.Git(l.T.Context(), dir, l.URL, l.Owner, args...); err != nil {
			l.T.Fatal(err)
		}
	}
}

// every looks at a page in both themes and three widths.
func every(b *browser.Tab, name string) {
	b.T.Helper()
	for _, width := range []int64{1440, 768, 390} {
		b.Resize(width, 900)
		over := browser.Eval[int](b, `Math.max(...[document.documentElement, document.querySelector("main")].map(e => e.scrollWidth - e.clientWidth))`)
		if over > 0 {
			b.T.Errorf("%s scrolls sideways by %d px at %d", name, over, width)
		}
		for _, theme := range []string{"dark", "light"} {
			b.Theme(theme)
			usable(b, fmt.Sprintf("%s at %d in %s", name, width, theme))
			shots(b, fmt.Sprintf("%s-%d-%s", name, width, theme))
		}
	}
	b.Resize(1440, 900)
}

// What is known of a repository is found, read, followed both ways, edited with a preview,
// compared and put back; where its files changed, it says so.
func TestKnowledge(t *testing.T) {
	t.Parallel()
	l := shelve(t)
	l.write("guides/test", map[string]any{"body": "# How it is tested\n\nRun `make test`.\n"})
	l.write("guides/build", map[string]any{
		"body":       "# How it is built\n\nRun `make`, then see [the tests](test.md) and [[guides/test|them again]].\n\n## Traps\n\nNone is known.\n",
		"provenance": map[string]any{"files": []string{"Makefile"}},
	})
	b := l.open(1440, 900)
	b.Complaints()
	visit(b, "/ui/kb", "Knowledge base")
	first(b, "kb")
	heads(b, "Knowledge of acme/web")
	b.See("How it is built")
	every(b, "kb-list")
	b.Press("/")
	b.Type("tessted")
	b.Until("what is found, first the best", `document.querySelector("main ol.cards strong")?.innerText === "How it is tested"`)
	b.Until("the words are marked", `document.querySelector("main mark")`)
	every(b, "kb-found")
	b.Click("main ol.cards a")
	heads(b, "How it is tested")
	b.Until("what leads to it", `document.querySelector("[aria-label='Linked from'] a")?.innerText === "guides/build"`)
	b.Click("[aria-label='Linked from'] a")
	heads(b, "How it is built")
	b.Until("both links of the text lead to the page", `[...document.querySelectorAll("main .md a")].map(a => a.pathname).join() ===
		"/ui/kb/acme/web/guides/test,/ui/kb/acme/web/guides/test"`)
	b.Until("what it is from", `document.querySelector("main aside").innerText.includes("Makefile")`)
	every(b, "kb-page")

	// The keyboard alone: to the editor, a text, the preview, and save.
	b.Button("edit")
	b.Fill("Text", "# How it is built\n\nRun make twice.\n\nSee [the tests](test.md).\n")
	b.Press("Shift+Tab") // to the preview
	b.Until("the preview is next", `document.activeElement.innerText === "Preview"`)
	b.Press("Enter")
	b.Until("the preview", `document.querySelector(".pv .md")?.innerText.includes("Run make twice.")`)
	every(b, "kb-edit")
	b.Press("Ctrl+Enter")
	b.See("It is saved.")
	b.Until("the new text", `document.querySelector("main .md")?.innerText.includes("Run make twice.")`)
	if p := l.page("guides/build"); p["version"] != 2.0 || fmt.Sprint(p["provenance"].(map[string]any)["files"]) != "[Makefile]" {
		t.Errorf("it was saved as %v", p)
	}

	b.Button("history")
	b.Until("what changed", `(t => t.includes("Run make twice.") && t.includes("None is known."))(document.querySelector(".diff")?.innerText ?? "")`)
	every(b, "kb-history")
	b.Button("Put version 1 back")
	b.Yes()
	b.See("Version 1 is back, as version 3.")
	b.Button("text")
	b.Until("it is as it was", `document.querySelector("main .md")?.innerText.includes("None is known.")`)

	l.commit("Makefile", "all:\n\tgo build ./...\n")
	l.Eventually("the page is stale", func() bool { return l.page("guides/build")["stale"] != nil })
	b.Go("/ui/kb/acme/web/guides/build")
	b.Until("why it is stale", `(t => t.includes("changed") && t.includes("Makefile"))(document.querySelector("main .hold")?.innerText ?? "")`)
	every(b, "kb-stale")
	b.Go("/ui/kb/acme/web?show=stale")
	b.Until("it alone is listed", `document.querySelectorAll("#kbpages [role=row]").length === 1`)

	b.Go("/ui/kb/acme/web")
	b.Button("Write a page")
	b.Fill("Name", "notes/new")
	b.Fill("Text", "New, beside [[guides/nothing]].")
	b.Press("Ctrl+Enter")
	b.Until("a link that leads nowhere", `document.querySelector("main form .trouble")?.innerText.includes("lead to no page")`)
	every(b, "kb-new")
	b.Fill("Text", "New, beside [[guides/build]].")
	b.Press("Ctrl+Enter")
	heads(b, "new")
	b.Button("Delete")
	b.Yes()
	b.See("It is deleted.")
	heads(b, "Knowledge of acme/web")
	b.Go("/ui/kb/acme/web/notes/new")
	b.See("There is no page of this name.")
	content(b)
}

// Two who write the same page: the second is told before anything is replaced, sees what the
// first has made of it, and keeps every letter of their own.
func TestKnowledgeRacing(t *testing.T) {
	t.Parallel()
	l := shelve(t)
	l.write("plan", map[string]any{"body": "One.\n\nTwo.\n"})
	b := l.open(1440, 900)
	b.Complaints()
	b.Go("/ui/kb/acme/web/plan?tab=edit")
	b.Fill("Text", "One.\n\nTwo, and mine.\n")
	if got := l.write("plan", map[string]any{"body": "One of theirs.\n\nTwo.\n"}); got != http.StatusOK {
		t.Fatalf("the other write: %d", got)
	}
	b.Button("Save the page")
	b.See("was replaced meanwhile: version 2")
	b.Until("what they changed", `document.querySelector(".trouble .diff")?.innerText.includes("One of theirs.")`)
	mine := `document.querySelector("textarea[name=body]")?.value.includes("Two, and mine.")`
	b.Until("my text is there", mine)
	every(b, "kb-conflict")
	if p := l.page("plan"); p["version"] != 2.0 {
		t.Fatalf("it was replaced: %v", p)
	}
	// Away and back: the text waits.
	b.Button("All pages")
	heads(b, "Knowledge of acme/web")
	first(b, "kbpages")
	heads(b, "plan")
	b.Button("edit")
	b.See("This is the text that you did not save.")
	b.Until("my text is there", mine)
	l.write("plan", map[string]any{"body": "One of theirs, again.\n\nTwo.\n"})
	b.Button("Save the page")
	b.See("was replaced meanwhile: version 3")
	b.Button("Go on with mine: the next save replaces version 3")
	b.Button("Save the page")
	b.Until("the page as it is now", `document.querySelector("main .md")?.innerText.includes("Two, and mine.")`)
	if p := l.page("plan"); p["version"] != 4.0 || p["body"] != "One.\n\nTwo, and mine.\n" {
		t.Errorf("it was saved as %v", p)
	}
	old := l.call("GET", "/v1/kb/"+l.repo+"/diff/plan?from=3&to=4", "")
	if text, _ := json.Marshal(old); !strings.Contains(string(text), "One of theirs, again.") {
		t.Errorf("their text is lost: %s", text)
	}
	// One who deletes it meanwhile is told of as well.
	b.Button("edit")
	b.Fill("Text", "What is left.\n")
	l.call("DELETE", "/v1/kb/"+l.repo+"/pages/plan", "")
	b.Button("Save the page")
	b.See("The page was deleted meanwhile.")
	b.Button("Go on with mine: the next save writes it anew")
	b.Button("Save the page")
	b.Until("the page as it is now", `document.querySelector("main .md")?.innerText.includes("What is left.")`)
	if p := l.page("plan"); p["body"] != "What is left.\n" {
		t.Errorf("it was saved as %v", p)
	}
	content(b)
}

// Nothing of a hostile page runs or loads anything, wherever the page is shown; a page of the
// largest size and pages that lead to each other in circles are read like others.
func TestKnowledgeHostile(t *testing.T) {
	t.Parallel()
	l := shelve(t)
	hostile := evil("page") + "\n\n<iframe src=//elsewhere.example></iframe><svg onload=owned=1>\n\n" +
		"![picture](https://elsewhere.example/x.png)\n\n[out](https://elsewhere.example/)\n\n`[x](javascript:owned=1)`\n\n" +
		"<a href=\"javascript:owned=1\">a</a>\n\n# app\n\n# main\n\n| a | b |\n|--|--|\n| <script>owned=1</script> | y |\n"
	if got := l.write("evil/page", map[string]any{"title": evil("title"), "body": hostile}); got != http.StatusCreated {
		t.Fatalf("the page: %d", got)
	}
	for _, link := range []string{"javascript:owned=1", "data:text/html,x", "vbscript:x", "//elsewhere.example"} {
		if got := l.write("bad", map[string]any{"body": "[x](" + link + ")"}); got != http.StatusUnprocessableEntity {
			t.Errorf("a link to %s: %d", link, got)
		}
	}
	for _, slug := range []string{"a", "b"} {
		l.write(slug, map[string]any{"body": "# Page " + slug})
	}
	l.write("a", map[string]any{"body": "# Page a\n\n[b](b.md) [a](a)"})
	l.write("b", map[string]any{"body": "# Page b\n\n[a](a.md)"})
	large := strings.Repeat("- *item* `x` [[a]]\n\n", 1<<20/20)
	if got := l.write("large", map[string]any{"body": large}); got != http.StatusCreated {
		t.Fatalf("the large page: %d", got)
	}
	b := l.open(1440, 900)
	b.Complaints()
	for _, at := range []string{"", "?q=page", "/evil/page", "/evil/page?tab=edit", "/evil/page?tab=history"} {
		b.Go("/ui/kb/acme/web" + at)
		b.Until("the page "+at, `document.querySelector("#app main h1")?.innerText && !document.querySelector("[aria-busy=true]")`)
		b.See("zz-")
		inertHere(t, b, at)
	}
	b.Go("/ui/kb/acme/web/evil/page?tab=edit")
	b.Fill("Text", "[x](javascript:owned=1) <img src=x onerror=owned=1> [[javascript:owned=1]] [y](//elsewhere.example/x)")
	b.Button("Preview")
	b.Until("the preview", `document.querySelector(".pv .md")?.innerText.includes("onerror")`)
	inertHere(t, b, "the preview")
	if got := browser.Eval[[]string](b, `[...document.querySelectorAll(".pv a")].map(a => a.href)`); len(got) > 0 {
		t.Errorf("the preview leads to %q", got)
	}
	b.Go("/ui/kb/acme/web/a")
	for range 3 {
		b.Button("b")
		heads(b, "Page b")
		b.Button("a")
		heads(b, "Page a")
	}
	b.Go("/ui/kb/acme/web/large")
	b.Until("the large page", `document.querySelector("main .md")?.innerText.length > 500000`)
	b.Button("edit")
	b.Until("all of it can be edited", `document.querySelector("textarea[name=body]")?.value.length === `+fmt.Sprint(len(large)))
	b.Button("history")
	b.See("Version 1")
	inertHere(t, b, "the large page")
}
