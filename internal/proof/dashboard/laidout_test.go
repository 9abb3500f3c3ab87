//go:build !race

package dashboard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"yardmaster/internal/proof/browser"
)

// faulty is a script that lists what is laid out wrong on a page: what lies over something
// else, what is cut, what leaves the window, what touches the border of its card, a title that one cannot
// read.
const faulty = `(() => {
	const main = document.querySelector("main"), wide = main.getBoundingClientRect(), out = [];
	const seen = e => e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length > 0;
	const says = e => (e.getAttribute("aria-label") || e.innerText || e.placeholder || e.tagName).trim().slice(0, 40);
	const all = [...main.querySelectorAll("a, button, input, select, textarea, summary, h1, h2, h3")].filter(seen)
		.filter(e => !e.closest(".vlist, svg, .dag, .skip, .side2"));
	const boxes = all.map(e => [e, e.getBoundingClientRect()]);
	for (const [e, r] of boxes) {
		let frame = e.parentElement;
		while (frame !== main && !/auto|scroll/.test(getComputedStyle(frame).overflowX)) frame = frame.parentElement;
		if (frame === main && (r.left < wide.left - 1 || r.right > wide.right + 1)) out.push("leaves the page: " + says(e));
		if (e.matches("button, .button") && e.scrollWidth > e.clientWidth + 1) out.push("is cut: " + says(e));
	}
	for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
		const [a, r] = boxes[i], [b, s] = boxes[j];
		if (a.contains(b) || b.contains(a) || a.closest("[role=grid]") !== b.closest("[role=grid]")) continue;
		const x = Math.min(r.right, s.right) - Math.max(r.left, s.left), y = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
		if (x > 2 && y > 2 && getComputedStyle(a).display !== "inline" && getComputedStyle(b).display !== "inline")
			out.push(says(a) + " lies over " + says(b));
	}
	for (const e of main.querySelectorAll("[role=grid] [id$=-name]")) if (seen(e)) {
		const row = e.closest("[role=row]").clientWidth;
		if (e.clientWidth < Math.min(220, 0.6 * row) || e.clientWidth < 0.35 * row) out.push("a title of " + e.clientWidth + " px: " + says(e));
	}
	out.push(...` + touching + `);
	const over = main.scrollWidth - main.clientWidth;
	if (over > 0) out.push("scrolls sideways by " + over + " px");
	const h = main.querySelector("h1"), size = parseFloat(getComputedStyle(h).fontSize);
	if (!h.innerText || h.scrollWidth > h.clientWidth + 1 || size < 18) out.push("a heading that is not read: " + h.innerText);
	if (innerWidth > 720 ? !seen(document.querySelector("nav.side")) : !seen(document.querySelector("nav.bar"))) out.push("no way around");
	return JSON.stringify(out);
})()`

// touching is a script that lists the texts that are less than 8 px from the border, on the left, of the
// card that they stand in.
const touching = `(() => {
	const out = [], seen = e => e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length > 0;
	const unseen = (e, f) => e !== f && (getComputedStyle(e).clipPath !== "none" || unseen(e.parentElement, f)); // said by voice alone
	const framed = e => { const c = getComputedStyle(e); return c.borderLeftStyle !== "none" && ["Left", "Right", "Top"]
		.every(side => parseFloat(c["border" + side + "Width"]) > 0) };
	for (const f of document.querySelectorAll("main *")) if (seen(f) && f.clientWidth >= 200 &&
		!f.matches("button, .button, input, select, textarea, .vlist, svg *") && !f.closest(".vlist, svg") && framed(f)) {
		const r = f.getBoundingClientRect(), texts = document.createTreeWalker(f, NodeFilter.SHOW_TEXT), range = document.createRange();
		for (let n; (n = texts.nextNode());) {
			if (!n.data.trim() || !seen(n.parentElement) || n.parentElement.closest("button, .button, select, textarea, .skip")) continue;
			range.selectNodeContents(n);
			const at = [...range.getClientRects()].filter(s => s.width > 1);
			if (at.some(s => s.left - r.left < 8 && s.right > r.left && s.bottom > r.top && s.top < r.bottom)) {
				if (unseen(n.parentElement, f)) continue;
				out.push("touches its border: " + n.data.trim().slice(0, 40));
				break;
			}
		}
	}
	return out;
})()`

// twenty are the pages that are looked at, by the name of their picture.
func (s *scene) twenty() [][2]string {
	return [][2]string{
		{"home", "/ui/"}, {"inbox", "/ui/notifications"}, {"tasks", "/ui/tasks"}, {"task", "/ui/tasks/" + s.task},
		{"plans", "/ui/plans"}, {"plan", "/ui/plans/" + s.plan}, {"asks", "/ui/asks"}, {"escalations", "/ui/escalations"},
		{"blockers", "/ui/blockers"}, {"pulls", "/ui/prs?show=all"}, {"pull", "/ui/prs/" + s.pull}, {"approvals", "/ui/approvals"},
		{"repository", "/ui/repos/acme/web"}, {"boxes", "/ui/boxes"}, {"box", "/ui/boxes/" + s.box}, {"templates", "/ui/templates"},
		{"flow", "/ui/flow"}, {"usage", "/ui/usage"}, {"members", "/ui/settings/members"}, {"keys", "/ui/settings/keys"},
	}
}

// Twenty pages of a server at work are laid out as they should be, in three sizes and both
// themes: nothing lies over anything, nothing is cut, each title is read.
func TestLaidOut(t *testing.T) {
	t.Parallel()
	s := play(t)
	b := s.enter(1440, 900)
	for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}} {
		b.Resize(size[0], size[1])
		for _, page := range s.twenty() {
			b.Go(page[1])
			b.Until("the page "+page[1], `document.querySelector("#app main h1")?.innerText && !document.querySelector("[aria-busy=true]") && document.querySelector(".link.live")`)
			for _, theme := range []string{"light", "dark"} {
				b.Theme(theme)
				for _, bad := range list(b, faulty) {
					t.Errorf("%s at %d px in %s: %s", page[0], size[0], theme, bad)
				}
				if at := os.Getenv("SHOTS"); at != "" {
					b.Picture(filepath.Join(at, fmt.Sprintf("%s-%d-%s.png", page[0], size[0], theme)))
				}
			}
		}
	}
}

// The judge of TestLaidOut sees what it is for.
func TestFaultsOfLayoutAreSeen(t *testing.T) {
	t.Parallel()
	b := start(t).open(1440, 900)
	b.Go("/ui/tasks")
	b.Until("the page", `document.querySelector("#app main h1")?.innerText && !document.querySelector("[aria-busy=true]")`)
	if got := list(b, faulty); len(got) != 0 {
		t.Fatalf("the page is faulty as it is: %q", got)
	}
	browser.Eval[any](b, `(() => { const put = (css, says) => { const e = document.createElement("button"); e.append(says);
		Object.assign(e.style, {position: "absolute", width: "90px", height: "30px", whiteSpace: "nowrap", overflow: "hidden"}, css);
		document.querySelector("main").append(e) };
		put({left: "200px", top: "500px"}, "one"); put({left: "250px", top: "510px"}, "two");
		put({left: "1200px", top: "600px"}, "beyond"); put({left: "200px", top: "700px"}, "words that have no room here");
		const card = document.createElement("div"); card.append("close by"); document.querySelector("main").append(card);
		Object.assign(card.style, {position: "absolute", left: "600px", top: "500px", width: "300px", border: "1px solid", padding: "4px"}) })()`)
	if got := list(b, faulty); len(got) != 5 {
		t.Errorf("it sees %q", got)
	}
}

// list is what a script answers, a list of texts as JSON.
func list(b *browser.Tab, script string) (all []string) {
	b.T.Helper()
	if err := json.Unmarshal([]byte(browser.Eval[string](b, script)), &all); err != nil {
		b.T.Fatal(err)
	}
	return all
}
