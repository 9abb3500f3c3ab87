package parts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"yardmaster/internal/proof/browser"
)

// Took is how many milliseconds something took, and how many a baseline of the same page.
type Took struct{ MS, Plain float64 }

// Drawing is what it takes to draw much.
type Drawing struct {
	Patch Took    // 500 changed rows in a list of 5,000; the baseline splits 40,000 short texts
	Lines Took    // 50,000 lines of a transcript as they come; the same baseline
	Heap  float64 // bytes that these lines hold
}

// Draw measures the drawing. It fails where what was drawn is not all there.
func Draw(t browser.T) (d Drawing) {
	t.Helper()
	at, err := root()
	if err != nil {
		t.Fatal(err)
	}
	b := Open(t, filepath.Join(at, "internal/proof/parts/drawing.tsx"))
	type figure struct {
		Took
		High, Want float64
		N          int
		Last       bool
	}
	p := browser.Eval[figure](b, "figures.patches()")
	if d.Patch = p.Took; p.High != p.Want {
		t.Errorf("5,000 rows are %v px high, not %v", p.High, p.Want)
	}
	browser.Eval[any](b, "figures.empty()")
	before := b.Heap()
	l := browser.Eval[figure](b, "figures.lines()")
	if d.Lines = l.Took; l.High != l.Want || l.N < 50_000 || !l.Last {
		t.Errorf("%d lines are %v px high, not %v; the last is shown: %v", l.N, l.High, l.Want, l.Last)
	}
	d.Heap = b.Heap() - before
	return d
}

// Visit is what a page of a server takes.
type Visit struct {
	Paint  Took    // until Home is painted first; the baseline is a page of this server without a script
	Bytes  float64 // of the scripts and style sheets of Home, as they travel
	Change Took    // the median from the server's answer to a filed task until its row is drawn; the baseline asks who I am
}

// firstLoad returns the names of the files without which Home is not drawn, with spaces
// between them, as the bundle has them. What comes later, the font too, is not among them.
func firstLoad() (string, error) {
	at, err := root()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(at, "internal/web/dist/manifest.json"))
	if err != nil {
		return "", err
	}
	var names struct{ First string }
	err = json.Unmarshal(text, &names)
	return names.First, err
}

// Bytes returns the size of the scripts and style sheets that Home loads at first, as they
// travel.
func Bytes(b *browser.Tab) float64 {
	b.T.Helper()
	b.Go("/ui/")
	b.Until("the page", `document.querySelector("#app main h1")?.innerText === "Home"`)
	first, err := firstLoad()
	if err != nil {
		b.T.Fatal(err)
	}
	return browser.Eval[float64](b, `(first => performance.getEntriesByType("resource").filter(e => first.includes(new URL(e.name).pathname.replace("/ui/a/", "")))
		.reduce((n, e) => n + e.encodedBodySize, 0))("`+first+`".split(" "))`)
}

// See measures a visit of somebody who is signed in to an account with a repository, named owner/name,
// and no task.
func See(b *browser.Tab, repo string) (v Visit) {
	b.T.Helper()
	painted := func(path string) float64 {
		b.Go(path)
		b.Until("it is painted", `performance.getEntriesByName("first-contentful-paint").length`)
		return browser.Eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	}
	pages, bare := []float64{}, []float64{}
	for range 5 {
		bare = append(bare, painted("/problems/not-found"))
		pages = append(pages, painted("/ui/"))
	}
	v.Paint = Took{slices.Min(pages), slices.Min(bare)}
	v.Bytes = Bytes(b)

	b.Go("/ui/tasks")
	b.See("No tasks yet")
	b.Until("live", `document.querySelector(".foot .link.live")`)
	var times, bases []float64
	for range 9 {
		m := browser.Eval[[]float64](b, `(async (repo) => {
			const t0 = performance.now();
			await (await fetch("/v1/me")).text();
			const base = performance.now() - t0, title = "Made " + Math.random();
			const seen = new Promise((done) => {
				const look = new MutationObserver(() => {
					if (document.querySelector("main").textContent.includes(title)) { look.disconnect(); done(performance.now()); }
				});
				look.observe(document.querySelector("main"), {subtree: true, childList: true, characterData: true});
			});
			await fetch("/v1/tasks", {method: "POST", headers: {"Content-Type": "application/json"},
				body: JSON.stringify({repo, title, problem: "Nothing."})});
			const filed = performance.now();
			return [Math.max(0, await seen - filed), base];
		})("`+repo+`")`)
		times, bases = append(times, m[0]), append(bases, m[1])
	}
	slices.Sort(times)
	slices.Sort(bases)
	v.Change = Took{times[len(times)/2], bases[len(bases)/2]}
	return v
}
