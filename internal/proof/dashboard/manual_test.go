//go:build !race

package dashboard_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/docs"
	"yardmaster/internal/proof/browser"
)

// outside is a text without its pieces of code, and how many these are.
func outside(text string) (out string, pieces int) {
	fence := ""
	for line := range strings.Lines(text) {
		mark := line[:len(line)-len(strings.TrimLeft(line, "`~"))]
		switch {
		case fence == "" && len(mark) >= 3:
			fence = mark
			pieces++
		case fence != "" && strings.HasPrefix(line, fence):
			fence = ""
		case fence == "":
			out += line
		}
	}
	return out, pieces
}

// Every document is drawn whole, and every link in one leads to a heading that there is.
func TestManual(t *testing.T) {
	t.Parallel()
	b := start(t).open(1440, 900)
	b.Complaints()
	b.Go("/ui/docs")
	b.See("When something is wrong")
	usable(b, "the list of documents")
	shots(b, "manual")
	ids, links := map[string][]string{}, map[string][]string{}
	for _, p := range docs.Parts {
		for _, name := range p.Docs {
			source, err := docs.Text(name)
			if err != nil {
				t.Fatal(err)
			}
			title, body, _ := strings.Cut(strings.TrimPrefix(source, "# "), "\n")
			b.Go("/ui/docs/" + name)
			b.Until(name, `document.querySelector("main h1")?.innerText === `+text(title)+` && document.querySelector("main .md")`)
			ids[name] = browser.Eval[[]string](b, `[...document.querySelectorAll("main .md [id]")].map(e => e.id)`)
			links[name] = browser.Eval[[]string](b, `[...document.querySelectorAll("main a[href^='/ui/docs/']")].map(e => e.getAttribute("href"))`)
			seen := browser.Eval[string](b, `document.querySelector("main .md").textContent`)
			for _, mark := range []string{"](", "```", "\n## ", "\n| "} {
				if strings.Contains(seen, mark) {
					t.Errorf("%s shows %q as it is written", name, mark)
				}
			}
			body, pieces := outside(body)
			if n := strings.Count(body, "\n#"); n != len(ids[name]) {
				t.Errorf("%s has %d headings, and shows %q", name, n, ids[name])
			}
			if pieces != browser.Eval[int](b, `document.querySelectorAll("main .md pre").length`) {
				t.Errorf("%s does not show its %d pieces of code", name, pieces)
			}
			if n := len(regexp.MustCompile(`(?m)^\|[ :|-]+\|$`).FindAllString(body, -1)); n != browser.Eval[int](b, `document.querySelectorAll("main .md table").length`) {
				t.Errorf("%s does not show its %d tables", name, n)
			}
			// What is between the marks is there, word for word.
			lost := regexp.MustCompile("`[^`\n]+`").FindAllString(body, -1)
			for _, code := range lost[:min(len(lost), 40)] {
				if code = strings.TrimSpace(strings.ReplaceAll(strings.Trim(code, "`"), `\|`, "|")); !strings.Contains(seen, code) {
					t.Errorf("%s has lost %s", name, code)
				}
			}
		}
	}
	n := 0
	for from, list := range links {
		for _, to := range list {
			name, id, _ := strings.Cut(strings.TrimPrefix(to, "/ui/docs/"), "#")
			if at, ok := ids[name]; !ok || id != "" && !slices.Contains(at, id) {
				t.Errorf("%s leads to %s, which is not there", from, to)
			}
			n++
		}
	}
	if n < 50 {
		t.Errorf("only %d links were found", n)
	}
	clean(t, b)
}

// A word leads to a heading of a document by the palette, and by the search of the list,
// a link within a document to another, and the address to the place.
func TestManualIsSearched(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	b := y.open(1440, 900)
	b.Complaints()
	shown := func(id string) {
		t.Helper()
		b.Until(id+" is shown", `document.activeElement?.id === `+text(id)+` && (r => r.top >= 0 && r.top < innerHeight / 2)(document.activeElement.getBoundingClientRect())`)
	}
	b.Press("Ctrl+k")
	b.Until("the palette", `document.querySelector("dialog.palette[open] input")`)
	b.Type("why a task waits")
	b.Until("the heading", `document.querySelector(".palette li[aria-selected=true]")?.innerText.includes("When something is wrong")`)
	b.Press("Enter")
	b.Until("the document", `location.pathname + location.hash === "/ui/docs/trouble#why-a-task-waits"`)
	shown("why-a-task-waits")
	shots(b, "manual-heading")
	b.Click("main a[href='/ui/docs/pulls#when-it-waits-for-a-person']")
	shown("when-it-waits-for-a-person")
	b.Back()
	b.Until("back", `document.querySelector("main h1").innerText === "When something is wrong"`)
	shown("why-a-task-waits")
	b.Press("g", "m")
	b.See("To begin with")
	b.Press("/")
	b.Until("the search", `document.activeElement?.type === "search"`)
	browser.Eval[any](b, "document.activeElement.select()") // the driver types the key that led there
	b.Type("taken out")
	b.Click("main a[href='/ui/docs/secrets#what-is-taken-out']")
	shown("what-is-taken-out")
	b.Go("/ui/docs?q=dedupe_key")
	b.Until("a line of the text", `document.querySelector("[aria-label='Found in the text'] a[href*='#']")`)
	b.Press("Ctrl+k")
	b.Until("the palette", `document.querySelector("dialog.palette[open] input")`)
	b.Type("byte for byte")
	b.Until("a line of the text", `[...document.querySelectorAll(".palette li")].some(e => e.innerText.includes("Manual: ") && e.innerText.includes("byte for byte"))`)
	asked := func(text, first string) (lines []string) {
		t.Helper()
		b.Press("Escape")
		b.Until("no palette", `!document.querySelector("dialog[open]")`)
		b.Press("Ctrl+k")
		b.Until("the palette", `document.querySelector("dialog.palette[open] input")`)
		b.Type(text)
		b.Until("lines of the text", `document.querySelector(".palette li:last-child small")?.innerText.startsWith("Manual: ")`)
		b.Until("the first is "+first, `document.querySelector(".palette li > span").innerText.startsWith(`+quoted(first)+`)`)
		word, _, _ := strings.Cut(text, " ")
		b.Until("lines with "+word+" alone", `[...document.querySelectorAll(".palette li")].filter(e => e.lastChild.innerText.startsWith("Manual: "))
			.every(e => e.firstChild.innerText.toLowerCase().includes(`+quoted(word)+`))`)
		return browser.Eval[[]string](b, `[...document.querySelectorAll(".palette li")].filter(e => e.lastChild.innerText.startsWith("Manual: ")).map(e => e.firstChild.innerText)`)
	}
	if lines := asked("acme", "acme/web"); len(lines) > 3 {
		t.Errorf("a repository is drowned by the manual: %q", lines)
	}
	shots(b, "palette-manual")
	asked("own_echo", "own_echo · the bot of the source has done it, or")
	for _, l := range asked("byte", "") {
		if strings.Contains(l, "|") || strings.ContainsAny(l, "`*") {
			t.Errorf("a line of the manual is %q", l)
		}
	}
	source, err := docs.Text("sources")
	if err != nil {
		t.Fatal(err)
	}
	source = strings.ReplaceAll(source, "`", "")
	const begins = "…integration.mapping_set saves it." // cut between words
	asked("dedupe_key byte x-hub", begins)
	ofManual := `[...document.querySelectorAll(".palette li")].filter(e => e.lastChild.innerText.startsWith("Manual: ")).map(e => e.firstChild.innerText)`
	b.Until("the one line with all words", `(all => all.length === 1 && all[0].startsWith(`+quoted(begins)+`))(`+ofManual+`)`)
	for _, l := range browser.Eval[[]string](b, ofManual) {
		if !strings.HasPrefix(l, "…") || !strings.HasSuffix(l, "…") || !strings.Contains(source, " "+strings.Trim(l, "…")+" ") {
			t.Errorf("a line of the manual is cut: %q", l)
		}
	}
	b.Press("Escape")
	phone := b.Another()
	phone.Resize(320, 640)
	phone.Go("/ui/docs/metrics#loops") // wide tables, long names
	phone.Until("the document", `document.activeElement?.id === "loops"`)
	narrow(t, phone)
	usable(phone, "a document on a phone")
	shots(phone, "manual-phone")
	clean(t, phone)
	clean(t, b)
}
