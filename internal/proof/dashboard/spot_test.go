//go:build !race

package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"yardmaster/internal/proof/browser"
)

// strange is a path of which hardly a letter may stand in an address as it is.
const strange = "src/zz a#b%20?c:L2 \u00e9\u6f22\u202egnp.txt"

// many changes 30 files of 40 lines, a large file that is folded at first, and a file with
// a strange name.
const many = `mkdir -p many
for i in $(seq 101 130); do for j in $(seq 40); do echo "line $j of $i"; done >"many/f$i.txt"; done
seq 2000 | sed 's/^/large /' >"many/large.txt"
for j in $(seq 40); do echo "strange $j"; done >"` + strange + `"
echo "# Other" >README.md
git add -A
git commit -qm "Change many files"
echo "Many files." >"$YARDMASTER_REPORT"
`

// pointed waits until a line is marked and in sight, with nothing on screen that is to come.
func pointed(b *browser.Tab, line string) {
	b.T.Helper()
	b.Until("the line "+line+" is marked, in sight", `(() => {
		const box = document.querySelector("#diff"), on = [...box.querySelectorAll(".dl.on")], all = box.getBoundingClientRect();
		if (on.length !== 1 || box.innerText.includes("Loading…")) return false;
		const r = on[0].getBoundingClientRect();
		return [...on[0].querySelectorAll(".tx")].some(e => e.innerText === `+quoted(line)+`) && r.top >= all.top && r.bottom <= all.bottom;
	})()`)
}

// An address names a file or a line of a diff. It is opened cold, whatever the name of the
// file, follows the keys, and is that of the number of a line.
func TestAddressOfALine(t *testing.T) {
	t.Parallel()
	s := open(t, "{version: 1, merge: {mode: ask}, review: {mode: off}}\n", map[string]string{"many": many})
	pr := s.pull(s.task("many", "Change many files"))
	b := s.enter(1440, 900)
	b.Complaints()
	at := "/ui/prs/" + pr
	segments := strings.Split(strange, "/")
	for i, part := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	odd := strings.Join(segments, "/")
	cold := func(address, line string) {
		t.Helper()
		b.Go("/login") // so that the page is loaded, and not its hash set
		b.Go(address)
		heading(b, "Change many files")
		pointed(b, line)
	}

	cold(at+"/diff#many/f125.txt:L33", "line 33 of 125") // of a file that is not open at first
	shots(b, "pr-line")
	usable(b, "a diff with a marked line")
	cold(at+"/diff#many/large.txt:L1999", "large 1999") // of one that is folded at first
	cold(at+"/diff#"+odd+":L7", "strange 7")
	b.Until("its address, with the name as it can stand there", `location.hash === `+quoted("#"+odd+":L7"))
	cold(at+"?tab=changes#many/f103.txt:L2", "line 2 of 103")
	b.Resize(1000, 900) // one column in place of two
	b.Until("one column", `document.querySelector(".dl") && !document.querySelector(".dl.two")`)
	pointed(b, "line 2 of 103")

	// Another address on the same page.
	browser.Eval[any](b, `(() => { location.hash = "#many/f128.txt:L40" })()`)
	pointed(b, "line 40 of 128")
	// The number of a line leads to it, without a place in the history.
	before := browser.Eval[int](b, `history.length`)
	for _, n := range []string{"38", "39"} {
		browser.Eval[any](b, `[...document.querySelectorAll("#diff .dl a")].find(a => a.innerText === "`+n+`" && a.hash.includes("f128")).click()`)
		pointed(b, "line "+n+" of 128")
		b.Until("its address", `location.hash === "#many/f128.txt:L`+n+`"`)
	}
	if now := browser.Eval[int](b, `history.length`); now != before {
		t.Errorf("the history has %d entries, it had %d", now, before)
	}
	// The keys go from file to file, and the address with them.
	file := func(path, hash string) {
		t.Helper()
		b.Until("the file "+path+" is marked, first in sight", `(() => {
			const on = document.querySelector("#diff .fileline .on"), box = document.querySelector("#diff").getBoundingClientRect();
			return on?.querySelector("b").innerText === `+quoted(path)+` && on.getBoundingClientRect().top - box.top < 40 && location.hash === `+quoted(hash)+`;
		})()`)
	}
	b.Press("n")
	file("many/f129.txt", "#many/f129.txt")
	b.Press("p", "p")
	file("many/f127.txt", "#many/f127.txt")
	b.Press("n")
	file("many/f128.txt", "#many/f128.txt")
	if now := browser.Eval[int](b, `history.length`); now != before {
		t.Errorf("the history has %d entries, it had %d", now, before)
	}

	// A line that was removed has an address as well.
	for _, width := range []int64{1000, 1440} {
		b.Resize(width, 900)
		cold(at+"/diff#README.md:-L1", "# Web")
		b.Until("its address stays", `location.hash === "#README.md:-L1"`)
		b.Until("its number is marked", `document.querySelector("#diff .dl.on a[aria-current]")?.hash === "#README.md:-L1"`)
		browser.Eval[any](b, `[...document.querySelectorAll("#diff .dl a")].find(a => a.hash === "#README.md:L1").click()`)
		pointed(b, "# Other")
		browser.Eval[any](b, `[...document.querySelectorAll("#diff .dl a")].find(a => a.hash === "#README.md:-L1").click()`)
		pointed(b, "# Web")
		b.Until("its address again", `location.hash === "#README.md:-L1"`)
	}

	// What fits nothing does nothing.
	for _, hash := range []string{"#nothing.txt:L3", "#%zz", "#__proto__", "#:L4", "#many/f101.txt:L0"} {
		b.Go("/login")
		b.Go(at + "/diff" + hash)
		b.Until("the first lines", `document.querySelector("#diff .dl")`)
		if browser.Eval[bool](b, `!!document.querySelector("#diff .on") || document.querySelector("#diff").scrollTop > 0`) {
			t.Errorf("%s leads somewhere", hash)
		}
	}
	// A line that did not change leads to its file.
	b.Go("/login")
	b.Go(at + "/diff#many/f120.txt:L900")
	file("many/f120.txt", "#many/f120.txt:L900")

	// The page is the one that a list leads to: the keys of a list work on.
	b.Press("u")
	heading(b, "Pull requests")
	clean(t, b)
}

// A finding leads to its line among the changes, and back.
func TestFindingLeadsToItsLine(t *testing.T) {
	t.Parallel()
	y := start(t)
	pr := y.reviewed()
	b := hands{y.open(1440, 900)}
	b.Complaints()
	b.Go("/ui/prs/" + pr + "?tab=review")
	b.do("hello.txt:1")
	b.Until("the address of the line", `location.pathname.startsWith("/ui/prs/`+pr+`") && location.hash === "#hello.txt:L1"`)
	b.Until("the line", `document.querySelector("#diff .dl.on .tx")?.innerText`)
	b.Back()
	b.Until("the finding again", `location.search === "?tab=review" && document.querySelector(".finding")`)
	clean(t, b.Tab)
}
