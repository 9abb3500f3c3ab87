//go:build !race

package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"yardmaster/internal/client"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
)

// What a page of the knowledge base names leads to the file at its commit, where the built-in host
// has none of its own; lines that an address names are marked and in sight, wide and on a phone.
// Name and text of a file are text, whatever they are; what cannot be shown is said to be so, and
// whoever is of another account does not learn that there is anything.
func TestFiles(t *testing.T) {
	t.Parallel()
	const evil = "docs/<img src=x data-owned onerror=owned=1> \u202e%2e%2f?#&+.html"
	var long strings.Builder
	for n := range 3000 {
		fmt.Fprintf(&long, "line %d\t%s\n", n+1, strings.Repeat("word ", n%9))
	}
	y := start(t)
	if err := y.Push("acme/web", map[string]string{
		"docs/long.txt": long.String(), "binary": "a\x00b", "latin": "caf\xe9\n", "nothing": "",
		"large.txt": strings.Repeat("0123456789abcde\n", 1<<16+1),
		evil: "<script>owned=1</script><img src=x onerror=owned=1>\r\n\x1b[31mred\x1b[8m unseen\n" +
			"shown\rhidden \u202e turned\n{{7*7}} javascript:owned=1\n",
	}); err != nil {
		t.Fatal(err)
	}
	refs, err := client.Git(t.Context(), "", y.URL, y.Owner, "ls-remote", y.URL+"/git/acme/web.git", "refs/heads/main")
	if err != nil {
		t.Fatal(err)
	}
	commit, _, _ := strings.Cut(refs, "\t")
	at := func(path string) string {
		return "/ui/repos/acme/web/file?" + url.Values{"path": {path}, "at": {commit}}.Encode()
	}
	b := y.open(1440, 900)
	b.Complaints()

	y.call("PUT", "/v1/kb/"+y.repoID()+"/pages/guide", fmt.Sprintf(`{"title": "Guide", "body": "See [the lines](/docs/long.txt#L1500-L1504).",
		"provenance": {"commit": %q, "files": ["docs/long.txt", %s]}}`, commit, text(evil)))
	visit(b, "/ui/kb/acme/web/guide", "Guide")
	b.Until("ways to its files", `[...document.querySelectorAll("main aside dd a[href*='/file?']")].length === 2`)
	b.Click("main .md a")
	heads(b, "docs/long.txt")
	b.Until("the lines that the text names", `location.hash === "#L1500-L1504"`)
	for _, width := range []int64{1440, 390} {
		b.Resize(width, 844)
		b.Go(at("docs/long.txt") + "#L1500-L1504")
		b.Until("the lines are marked, in sight and numbered", `(all => {
			const numbers = all.map(e => e.querySelector(".n")).filter(e => e?.getClientRects().length).map(e => e.innerText),
				box = document.getElementById("file").getBoundingClientRect(), first = all[0]?.getBoundingClientRect();
			return numbers.join() === "1500,1501,1502,1503,1504" && first.top >= box.top && first.bottom <= box.bottom;
		})([...document.querySelectorAll("#file .l.on")])`)
		b.Until("no more lines than are seen", `document.querySelectorAll("#file .l").length < 200`)
		usable(b, fmt.Sprintf("a file at %d", width))
		shoot(b, fmt.Sprintf("file-%d", width))
	}
	b.Resize(1440, 900)
	b.Go(at("docs/long.txt") + "#L2900")
	b.Until("one line is marked", `[...document.querySelectorAll("#file .l.on .n")].map(e => e.innerText).join() === "2900"`)
	b.See("3,000 lines")

	b.Go("/ui/kb/acme/web/guide")
	b.Click("main aside dd a[href*='img']")
	b.See("<script>owned=1</script>")
	seen := inertHere(t, b, "a hostile file")
	for _, want := range []string{
		"‹U+001B›[31mred‹U+001B›[8m unseen", "shown‹U+000D›hidden ‹U+202E› turned", "docs/<img src=x data-owned",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("the page lacks %q: %s", want, seen)
		}
	}
	if n := browser.Eval[int](b, `document.querySelectorAll("#file .n").length`); n != 4 {
		t.Errorf("the file of 4 lines is shown with %d", n)
	}
	shoot(b, "file-hostile")

	for path, says := range map[string]string{
		"binary": "no text in UTF-8", "latin": "no text in UTF-8", "nothing": "The file is empty.", "docs": "no such file at this commit",
		"gone": "no such file at this commit", "../web/docs/long.txt": "no such file at this commit", "large.txt": "larger than 1 MiB",
	} {
		visit(b, at(path), path)
		b.See(says)
	}
	visit(b, "/ui/repos/acme/web/file?path=nothing&at="+strings.Repeat("0", 40), "nothing")
	b.See("no such file at this commit")
	visit(b, "/ui/repos/acme/web/file", "File")
	b.See("names no file")
	api := func(page string) string {
		return strings.Replace(strings.Replace(page, "/ui/", "/v1/", 1), "at=", "commit=", 1)
	}
	if resp, body := y.Send(http.MethodGet, api(at(evil)), y.Owner, ""); resp.StatusCode != http.StatusOK ||
		!strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("a hostile file is answered as %d %v %.200s", resp.StatusCode, resp.Header, body)
	}
	if resp, body := y.Send(http.MethodGet, api(at("large.txt")), y.Owner, ""); resp.StatusCode != http.StatusRequestEntityTooLarge ||
		!strings.Contains(string(body), "/problems/file-too-large") {
		t.Errorf("a large file is answered as %d %.200s", resp.StatusCode, body)
	}
	content(b)

	y.somebody()
	b.Button("Sign out")
	b.See("Sign in")
	b.SignIn("bob", rig.Password)
	var answers []string
	for _, of := range []string{at("docs/long.txt"), strings.Replace(at("docs/long.txt"), "acme/web", "acme/none", 1)} {
		visit(b, of, "docs/long.txt")
		b.See("There is no such repository.")
		if strings.Contains(browser.Eval[string](b, "document.body.innerText"), "line 1") {
			t.Errorf("%s shows a file of another account", of)
		}
		answers = append(answers, browser.Eval[string](b, `fetch(`+quoted(api(of))+`).then(async r => {
			const p = await r.json();
			return r.status + p.type + p.detail;
		})`))
	}
	if answers[0] != answers[1] || !strings.HasPrefix(answers[0], "404") {
		t.Errorf("a file of another account and of nobody are answered as %q", answers)
	}
}
