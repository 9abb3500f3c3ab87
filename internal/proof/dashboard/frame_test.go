//go:build !race

package dashboard_test

import (
	"net/http"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// What is typed into the dialog of new work and not sent is kept, also where its author
// decides otherwise about triage, until it is filed, thrown away or its author signs out.
func TestDraft(t *testing.T) {
	t.Parallel()
	_, b := begin(t)
	visit(b, "/ui/tasks", "Tasks")
	b.Press("c")
	b.See("Ctrl Enter sends it")
	b.Fill("Title", "Keep me")
	b.Fill("What to do", "All of me")
	b.Click("dialog input[type=checkbox]")
	b.See("What is asked")
	said := `[...document.querySelectorAll("dialog[open] [name=title], dialog[open] [name=text]")].map(e => e.value).join("|")`
	b.Until("the text is still there", said+` === "All of me|Keep me"`)
	b.Press("Escape")
	b.Until("closed", `!document.querySelector("dialog[open]")`)
	b.Press("c")
	b.Until("the draft, as an ask", said+` === "All of me|Keep me" && document.querySelector("dialog[open] h2").innerText === "New ask"`)
	b.Button("Start over")
	b.Until("nothing", said+` === "|"`)
	b.Fill("Title", "Said with the keyboard")
	b.Fill("What is asked", "Ctrl and Enter.")
	b.Press("Ctrl+Enter")
	heads(b, "Said with the keyboard")
	if kept := browser.Eval[int](b, `Object.keys(localStorage).filter(k => k.startsWith("draft:")).length`); kept != 0 {
		t.Errorf("%d drafts are kept of what was filed", kept)
	}
	// The text alone is enough, and has the focus: its first line is the title.
	b.Press("c")
	b.Until("the text has the focus", `document.activeElement.name === "text"`)
	b.Click("dialog input[type=checkbox]")
	b.Until("an ask", `document.querySelector("dialog[open] h2").innerText === "New ask"`)
	b.Fill("What is asked", "\n# The first line\nAnd more.")
	b.Press("Ctrl+Enter")
	heads(b, "The first line")
	content(b)
}

// listed is a page of rows of which only the number counts.
type listed struct{ Data []any }

// A call that failed on its way is the same call when it is sent again: what it does is done once.
func TestRetryIsOneCall(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	if err := y.Push("acme/web", map[string]string{"README.md": "Web\n"}); err != nil {
		t.Fatal(err)
	}
	visit(b, "/ui/tasks", "Tasks")
	// The server does it, and something between answers 502; then it says to wait, in both ways.
	browser.Eval[any](b, `{
		const real = window.fetch; let n = 0; window.keys = [];
		window.fetch = async (url, init) => {
			if (init?.method !== "POST" || !String(url).startsWith("/v1/tasks")) return real(url, init);
			keys.push(init.headers["Idempotency-Key"]);
			if (n++ === 0) { await real(url, init); return new Response("<h1>Bad gateway</h1>", {status: 502}); }
			if (n === 2) return new Response("{}", {status: 429, headers: {"Retry-After": "1"}});
			if (n === 3) return new Response('{"type": "/problems/too-many-open"}', {status: 503, headers: {"Retry-After": "1"}});
			return real(url, init);
		};
	}`)
	b.Press("c")
	b.See("Ctrl Enter sends it")
	b.Fill("Title", "Once")
	b.Fill("What to do", "Not twice.")
	b.Button("File the task")
	b.Until("it failed", `document.querySelector("dialog [role=alert]")`)
	browser.Eval[any](b, `{ // it counts for one second, which may be over before the next look
		const counts = () => { if ([...document.querySelectorAll("dialog button.main")].some(e => e.disabled && e.innerText.includes("(1 s)"))) window.counted = true };
		new MutationObserver(counts).observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
	}`)
	for range 2 {
		browser.Eval[any](b, `{ window.counted = false }`)
		b.Button("File the task")
		b.Until("the button has counted down", `window.counted`)
		b.Until("and is on again", `[...document.querySelectorAll("dialog button.main")].some(e => !e.disabled)`)
	}
	b.Button("File the task")
	heads(b, "Once")
	if keys := browser.Eval[int](b, `new Set(keys).size`); keys != 1 {
		t.Errorf("four tries had %d keys", keys)
	}
	if all := call[listed](y, http.MethodGet, "/v1/tasks?q=Once", "").Data; len(all) != 1 {
		t.Errorf("there are %d tasks", len(all))
	}
}

// An operator's key ends with the session of who got it.
func TestKeyEndsWithTheSession(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	visit(b, "/ui/platform", "Platform")
	b.Button("Operator's key")
	b.Fill("Your password", rig.Password)
	browser.Eval[any](b, `{
		const real = window.fetch;
		window.fetch = async (url, init) => {
			const res = await real(url, init);
			if (String(url).includes("/operator")) sessionStorage.setItem("seen", (await res.clone().json()).token ?? "");
			return res;
		};
	}`)
	b.Button("Get the key")
	b.See("Give it back")
	token := browser.Eval[string](b, `sessionStorage.getItem("seen")`)
	if resp, text := y.Send(http.MethodGet, "/v1/me", token, ""); resp.StatusCode != http.StatusOK {
		t.Fatalf("the key does not work: %d %s", resp.StatusCode, text)
	}
	b.Button("Sign out")
	b.Until("signed out", `location.pathname === "/login"`)
	if resp, text := y.Send(http.MethodGet, "/v1/me", token, ""); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the key works on: %d %s", resp.StatusCode, text)
	}
}

// The frame says how much waits, leads on on a phone, and says when rows are old.
func TestFrame(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	escalation := id.New()
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Escalation{ID: escalation, Account: y.Account, Title: "Which colour?", Created: 1})
	})
	visit(b, "/ui/tasks", "Tasks")
	b.Until("what waits stands beside Home", `document.querySelector("nav .n")?.innerText === "1"`)
	if n := browser.Eval[int](b, `[...document.querySelectorAll("nav .n")].filter(e => e.checkVisibility()).length`); n != 1 {
		t.Errorf("%d numbers stand in the frame", n)
	}
	call[any](y, http.MethodPost, "/v1/escalations/"+escalation+"/resolve", `{}`)
	b.Until("nothing waits any more", `!document.querySelector("nav .n")`)
	b.Until("the corner is in sight", `document.querySelector(".foot form").getBoundingClientRect().bottom <= innerHeight`)
	b.Resize(390, 844)
	b.Button("More")
	b.Until("the menu", `document.querySelector("nav.open")`)
	b.Press("Escape")
	b.Until("closed", `!document.querySelector("nav.open")`)
	b.Button("More")
	b.Until("the menu", `document.querySelector("nav.open")`)
	browser.Eval[any](b, `document.querySelector("nav.bar a[href='/ui/approvals']").click()`)
	heads(b, "Approvals")
	b.Until("nothing lies over the page", `!document.querySelector("nav.open")`)
	b.Button("More")
	small := browser.Eval[[]string](b, `[...document.querySelectorAll("nav.open a:not(.brand), nav.open summary, nav.open button")]
		.filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 44).map(e => e.innerText)`)
	if len(small) > 0 {
		t.Errorf("too small to tap: %q", small)
	}
}

// All doors of the side bar are seen without scrolling, in a window of the height of a small
// laptop and in one that is half as wide; so are the names of its parts where there is room.
func TestSideBarFits(t *testing.T) {
	t.Parallel()
	_, b := begin(t)
	for _, size := range [][2]int64{{1440, 800}, {900, 800}, {1440, 900}, {1440, 1200}} {
		b.Resize(size[0], size[1])
		visit(b, "/ui/", "Home")
		b.Until("the person", `document.querySelector(".foot form span")?.innerText === "ada"`)
		if over := browser.Eval[int](b, `(e => e.scrollHeight - e.clientHeight)(document.querySelector(".side .ways"))`); over > 0 {
			t.Errorf("at %d x %d the side bar lacks %d px", size[0], size[1], over)
		}
		if low := browser.Eval[float64](b, `Math.min(...[...document.querySelectorAll(".side .ways > a")].map(e => e.getBoundingClientRect().height))`); low < 24 {
			t.Errorf("at %d x %d a door is %.1f px high", size[0], size[1], low)
		}
	}
	both(b, "the side bar")
	b.Resize(1440, 800)
	visit(b, "/ui/settings/gifts", "Gifts to open source")
	for _, of := range []string{".side .ways", ".side2"} {
		b.Until("the chosen door of "+of+" in sight", `(e => e && e.getBoundingClientRect().bottom <= document.querySelector("`+of+`").getBoundingClientRect().bottom)(document.querySelector("`+of+` [aria-current=page]"))`)
	}
	if n := browser.Eval[int](b, `document.querySelectorAll(".side .ways > a").length`); n != 8 {
		t.Errorf("there are %d doors", n)
	}
}
