//go:build !race

package dashboard_test

import (
	"strings"
	"testing"

	"yardmaster/internal/proof/browser"
)

// heading waits until the page has a heading.
func heading(b *browser.Tab, text_ string) {
	b.T.Helper()
	b.Until("the page "+text_, `document.querySelector("main h1")?.innerText === `+text(text_))
}

// One walks through the objects of a list without going back to it, in the order and with
// the filter of the list, and up to the list as it was.
func TestWalkThroughAList(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	for _, title := range []string{"Walk one", "Aside", "Walk two", "Walk three"} {
		y.task(title, "Nothing to do.")
	}
	b := y.open(1440, 900)
	b.Complaints()
	b.Press("]")
	b.See("You did not come here from a list.")
	b.Go("/ui/tasks?q=Walk")
	b.See("Walk one")
	b.Gone("Aside")
	b.Press("j", "Enter") // the newest is first
	heading(b, "Walk two")
	b.Press("]")
	heading(b, "Walk one")
	b.Press("]")
	b.See("It is the last of the list.")
	b.Press("[", "[")
	heading(b, "Walk three")
	b.Press("[")
	b.See("It is the first of the list.")
	b.Button("attempts")
	b.Until("its attempts", `location.search === "?tab=attempts"`)
	b.Press("]") // the same part of the next one
	heading(b, "Walk two")
	b.Until("its attempts", `location.search === "?tab=attempts"`)
	b.Press("u")
	b.Until("the list as it was", `location.pathname + location.search === "/ui/tasks?q=Walk"`)
	b.See("Walk three")
	// A list of cards, with the pointer.
	b.Go("/ui/docs")
	b.Button("Reviews")
	heading(b, "Reviews")
	b.Press("[")
	heading(b, "What happens next")
	b.Press("u")
	heading(b, "Manual")
	clean(t, b)
}

// What can be done with an object is a list under one key, and in the palette, which also
// has what a page can do in its rows.
func TestActionsOfAPage(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.call("POST", "/v1/org/members", `{"email": "bob@example.com", "role": "member"}`)
	task := y.task("Not wanted", "Nothing to do.")
	b := y.open(1440, 900)
	b.Complaints()
	b.Go("/ui/tasks/" + task)
	heading(b, "Not wanted")
	b.Press("?")
	b.See("actions of this page or object")
	b.See("previous, next object of the list one came from")
	b.Press("Escape")
	b.Gone("actions of this page or object")
	b.Press(".")
	b.Until("the palette", `document.querySelector("dialog.palette[open]")`)
	b.Until("the actions", `document.querySelector("dialog.palette[open] [role=option]")`)
	usable(b, "the actions of a task")
	shots(b, "actions")
	if got := browser.Eval[string](b, `[...document.querySelectorAll(".palette li > span")].map(e => e.innerText).join(", ")`); got != "Change budget, Cancel, Add a box" {
		t.Errorf("a task has the actions %s", got)
	}
	b.Type("canc")
	b.Until("one of them", `document.querySelectorAll(".palette li").length === 1`)
	b.Press("Enter")
	b.See("Cancel the task?")
	b.Yes()
	b.Until("it is cancelled", `[...document.querySelectorAll("main .status")].some(e => e.innerText === "cancelled")`)
	b.Press(".")
	b.Until("the palette", `document.querySelector("dialog.palette[open]")`)
	b.See("Nothing can be done here.")
	b.Press("Escape")
	b.Until("the page again", `!document.querySelector("dialog[open]")`)
	b.Press("Ctrl+k")
	b.Until("the palette", `document.querySelector("dialog.palette[open] input")`)
	b.Type("attempts")
	b.Until("a part of the page", `document.querySelector(".palette li[aria-selected=true]")?.innerText.startsWith("Attempts")`)
	b.Press("Enter")
	b.Until("its attempts", `location.search === "?tab=attempts"`)
	b.Go("/ui/settings/members")
	b.See("bob@example.com")
	b.Press("Ctrl+k")
	b.Until("the palette", `document.querySelector("dialog.palette[open] input")`)
	b.Type("withdraw")
	b.Until("the action of a row", `document.querySelector(".palette li[aria-selected=true]")?.innerText.startsWith("Withdraw")`)
	b.Click(".palette li")
	b.Yes()
	b.See("revoked")
	clean(t, b)
}

// Every capability is found in the palette and called by hand: what needs nothing is asked
// at once, what is refused says so at its field, and answers are text.
func TestCallByHand(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.task("Called "+hostile, "Nothing to do.")
	b := y.open(1440, 900)
	b.Complaints()
	b.Press("Ctrl+k")
	b.Until("the palette", `document.querySelector("dialog.palette[open] input")`)
	b.Type("call task.list")
	b.Until("the capability", `document.querySelector(".palette li[aria-selected=true]")?.innerText.includes("Call task.list")`)
	b.Click(".palette li[aria-selected=true]")
	b.Until("its page", `location.pathname === "/ui/call/task.list"`)
	b.See(`"status": "pending"`)
	b.Fill("per_page", "0")
	b.Click("main form button.main")
	b.Until("a refusal at the field", `document.querySelector("main input[name=per_page][aria-invalid=true]")`)
	usable(b, "a call that is refused")
	b.Fill("per_page", "1")
	b.Fill("filter", "status:pending,running; repo:acme/web")
	b.Click("main form button.main")
	b.See("yardmaster call task.list per_page=1 filter=")
	shots(b, "call")
	b.Go("/ui/call/task.create")
	b.Until("an example", `document.querySelector("main textarea[name=body]")?.value.includes("acme/web")`)
	browser.Eval[any](b, `document.querySelector("main textarea[name=body]").value = "{"`)
	b.Click("main form button.main")
	b.See("The body is no JSON")
	browser.Eval[any](b, `document.querySelector("main textarea[name=body]").value = JSON.stringify({repo: "acme/web", title: "By hand", problem: "Nothing to do."})`)
	b.Click("main form button.main")
	b.See(`"kind": "dispatched"`)
	b.Press("g", "t")
	b.See("By hand")
	phone := b.Another()
	phone.Resize(320, 640)
	phone.Go("/ui/call/task.list")
	phone.See(`"status": "pending"`)
	narrow(t, phone)
	clean(t, phone)
	for _, c := range b.Complaints() { // the browser tells of the refusal
		if !strings.Contains(c, "status of 400") {
			t.Errorf("the browser complains: %s", c)
		}
	}
}

// Who is in a field the moment it is there stays in it: the heading takes the focus when
// a page is drawn, and not after that.
func TestFieldKeepsTheFocus(t *testing.T) {
	t.Parallel()
	_, b := begin(t)
	b.Before(`new MutationObserver((_, o) => {
		const e = document.querySelector("main input[name=name]");
		if (e) { o.disconnect(); e.focus(); e.onblur = () => { window.left = true }; }
	}).observe(document, {childList: true, subtree: true})`)
	b.Go("/ui/settings/secrets")
	b.See("There is no secret")
	b.Type("NPM_TOKEN")
	if got := browser.Eval[string](b, `document.querySelector("main input[name=name]").value`); got != "NPM_TOKEN" {
		t.Errorf("the field has %q", got)
	}
	if browser.Eval[bool](b, `window.left === true`) {
		t.Error("the field has lost the focus")
	}
}

// A key that rests says in words why, since when and until when.
func TestKeyThatRests(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	call[any](y, "POST", "/v1/billing/keys", `{"provider": "scripted", "label": "tests"}`)
	b.Before(`{ const real = fetch; window.fetch = async (...a) => {
		const answer = await real(...a);
		if (a[1]?.method !== "GET" || !new URL(a[0], location.href).pathname.endsWith("/v1/billing/keys")) return answer;
		const is = await answer.json();
		for (const k of is.data) k.rest = {reason: "rate_limited", since: new Date(Date.now() - 90_000).toISOString(), until: new Date(Date.now() + 700_000).toISOString()};
		return new Response(JSON.stringify(is), {status: 200}) } }`)
	visit(b, "/ui/settings/keys", "Keys and models")
	b.See("It was put to rest 1 min ago and serves again in 11 min: its provider allows no more calls for now.")
	b.Until("a form of its own", `[...document.querySelectorAll(".item .status.ask")].some(e => e.innerText === "rests" && e.querySelector("svg.mark"))`)
	both(b, "a key that rests")
	shoot(b, "key-rests")
}
