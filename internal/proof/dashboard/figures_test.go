//go:build !race

package dashboard_test

import (
	"slices"
	"testing"

	"yardmaster/internal/proof/browser"
)

// within fails the test if a time in milliseconds is beyond its limit, and also beyond so
// many times a baseline of the same page. On a busy machine the baseline takes longer, too.
func within(t *testing.T, what string, got, limit, baseline, times float64) {
	t.Helper()
	t.Logf("%s: %.1f ms (limit %.0f ms), %.1f times the baseline of %.1f ms", what, got, limit, got/baseline, baseline)
	if got > limit && got > times*baseline {
		t.Errorf("%s takes %.1f ms, more than %.0f ms and than %.0f times the baseline of %.1f ms", what, got, limit, times, baseline)
	}
}

// What a page does with many rows and with a long transcript has limits.
func TestFigures(t *testing.T) {
	t.Parallel()
	b := blank(t, script(t, "testdata/parts/figures.tsx"))
	type figure struct {
		MS, Plain  float64
		High, Want float64
		N          int
		Last       bool
	}
	p := browser.Eval[figure](b, "figures.patches()")
	within(t, "a patch of 500 rows among 5,000", p.MS, 4, p.Plain, 4)
	if p.High != p.Want {
		t.Errorf("5,000 rows are %v px high, not %v", p.High, p.Want)
	}
	browser.Eval[any](b, "figures.empty()")
	before := b.Heap()
	l := browser.Eval[figure](b, "figures.lines()")
	within(t, "50,000 lines of a transcript", l.MS, 1500, l.Plain, 400)
	if l.High != l.Want || l.N < 50_000 || !l.Last {
		t.Errorf("%d lines are %v px high, not %v; the last is shown: %v", l.N, l.High, l.Want, l.Last)
	}
	if grown := b.Heap() - before; grown > 25e6 {
		t.Errorf("50,000 lines keep %.1f MB", grown/1e6)
	} else {
		t.Logf("50,000 lines keep %.1f MB (limit 25 MB)", grown/1e6)
	}
}

// A first visit loads little and paints soon, and what changes at the server is on screen
// at once.
func TestFiguresOfAServer(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	b := y.open(1440, 900)
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
	within(t, "the first paint", slices.Min(pages), 500, slices.Min(bare), 8)
	b.Until("the page", `document.querySelector("#app main h1")?.innerText === "Home"`)
	bytes := browser.Eval[float64](b, `performance.getEntriesByType("resource").filter(e => new URL(e.name).pathname.startsWith("/ui/a/"))
		.reduce((n, e) => n + e.encodedBodySize, 0)`)
	if bytes > 60_000 || bytes < 10_000 {
		t.Errorf("the first load is %v bytes, 60,000 are allowed", bytes)
	}
	t.Logf("the first load: %v bytes (limit 60,000)", bytes)

	b.Go("/ui/tasks")
	b.See("No tasks yet")
	b.Until("live", `document.querySelector(".who .link.live")`)
	var times, bases []float64
	for range 9 {
		// From the answer of the server, in the page itself, to the row in the document. The baseline
		// is a call that changes nothing.
		m := browser.Eval[[]float64](b, `(async () => {
			const t0 = performance.now();
			await (await fetch("/v1/me")).text();
			const base = performance.now() - t0, title = "Made " + Math.random();
			const seen = new Promise((done) => {
				const look = new MutationObserver(() => { if (document.querySelector("main").textContent.includes(title)) { look.disconnect(); done(performance.now()); } });
				look.observe(document.querySelector("main"), {subtree: true, childList: true, characterData: true});
			});
			await fetch("/v1/tasks", {method: "POST", headers: {"Content-Type": "application/json"},
				body: JSON.stringify({repo: "acme/web", title, problem: "Nothing."})});
			const filed = performance.now();
			return [Math.max(0, await seen - filed), base];
		})()`)
		times, bases = append(times, m[0]), append(bases, m[1])
	}
	slices.Sort(times)
	slices.Sort(bases)
	within(t, "from a change to the screen, the median", times[len(times)/2], 100, bases[len(bases)/2], 20)
}
