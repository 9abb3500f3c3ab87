//go:build !race

package dashboard_test

import (
	"testing"

	"yardmaster/internal/proof/browser"
)

// walker goes through pages and counts the clicks. Typing is none.
type walker struct {
	*browser.Tab
	clicks int
}

// door goes through a door of the side bar.
func (w *walker) door(name string) {
	w.T.Helper()
	w.clicks++
	w.Click(`.side .ways a[title="` + name + `"]`)
}

// press clicks on a button or a link.
func (w *walker) press(name string) {
	w.T.Helper()
	w.clicks++
	w.Button(name)
}

// row opens the row of a title.
func (w *walker) row(title string) {
	w.T.Helper()
	w.clicks++
	at := `[...document.querySelectorAll("main [role=row]")].find(r => r.innerText.includes(` + quoted(title) + `))?.querySelector("a")`
	w.Until("the row "+title, at)
	browser.Eval[any](w.Tab, at+".click()")
	w.Until("its page", `document.querySelector("main h1")?.innerText.startsWith(`+quoted(title)+`)`)
}

// What a person does most is few clicks away from any page: each way here is the one of a
// person who does not know the keys, and it may have so many clicks and no more.
func TestJourneys(t *testing.T) {
	t.Parallel()
	s := play(t)
	b := s.enter(1440, 900)
	const held, failed = "Move the sign-in to passkeys", "Drop the old webhook table"
	for _, j := range []struct {
		name string
		most int
		walk func(w *walker)
	}{
		{"see why a task waits", 2, func(w *walker) {
			w.door("Work")
			w.row(held)
			w.Until("why", `document.querySelector("main .hold")?.innerText.startsWith("waits ")`)
		}},
		{"see what a task cost", 1, func(w *walker) {
			w.door("Work")
			w.Until("its cost", `[...document.querySelectorAll("#tasks-names [role=columnheader], main [role=columnheader]")].some(e => e.innerText === "Cost")`)
		}},
		{"see what a day cost", 2, func(w *walker) {
			w.door("Insight")
			w.press("Usage and budgets")
			w.Until("days", `document.querySelector("main .fig svg")`)
		}},
		{"find a task of yesterday", 1, func(w *walker) {
			w.door("Work")
			w.Until("its row, without scrolling", `[...document.querySelectorAll("#tasks [role=row]")].some(r =>
				r.innerText.includes("A page that says what the limits") && r.getBoundingClientRect().bottom <= innerHeight)`)
		}},
		{"see what an agent did, and when", 2, func(w *walker) {
			w.door("Work")
			w.row("Take the year from the clock")
			w.Until("the time of a line", `/\d\d:\d\d:\d\d/.test(document.getElementById("transcript")?.innerText ?? "")`)
		}},
		{"raise a budget", 4, func(w *walker) {
			w.door("Work")
			w.row(held)
			w.press("Change budget")
			w.Fill("Budget", "7")
			w.press("Set the budget")
			w.See("of $7")
		}},
		{"redispatch with guidance", 4, func(w *walker) {
			w.door("Work")
			w.row(failed)
			w.press("Redispatch")
			w.Fill("Guidance", "Keep the table.")
			w.press("Queue it again")
			w.See("Queued again.")
		}},
		{"cancel", 4, func(w *walker) {
			w.door("Work")
			w.row(held)
			w.press("Cancel")
			w.Until("what the question offers", `[...document.querySelectorAll("dialog.brief[open] button")].map(e => e.innerText).join() === "Leave it,Cancel the task"`)
			w.press("Cancel the task")
			w.See("Cancelled.")
		}},
		{"invite a member", 3, func(w *walker) {
			w.door("Settings")
			w.press("Members")
			w.Fill("E-mail", "bob@example.com")
			w.press("Invite")
			w.See("bob@example.com")
		}},
		{"answer a blocker", 2, func(w *walker) {
			w.door("Home")
			w.Fill("PAYMENTS_TEST_KEY", "pk_test_1")
			w.press("Submit")
			w.Gone("PAYMENTS_TEST_KEY")
		}},
		{"ask for changes", 4, func(w *walker) {
			w.door("Pull requests")
			w.row("Take the year from the clock")
			w.press("Request changes")
			w.Fill("What is to be changed", "Say why.")
			w.clicks++ // that sends it, which TestRequestChanges does
			w.Until("the button that sends it", `!document.querySelector("dialog[open] button[type=submit]").disabled`)
			w.Press("Escape")
		}},
		{"approve a pull request", 2, func(w *walker) {
			w.door("Home")
			at := `[...document.querySelectorAll("main button.main")].find(e => /^Approve [0-9a-f]{7}$/.test(e.innerText))`
			w.Until("the button", at)
			w.clicks++
			browser.Eval[any](w.Tab, at+".click()")
			w.Until("it has left", `!(`+at+`)`)
		}},
	} {
		b.Go("/ui/templates")
		heading(b, "Templates")
		w := &walker{Tab: b}
		j.walk(w)
		if w.clicks > j.most {
			t.Errorf("%s takes %d clicks, not %d", j.name, w.clicks, j.most)
		}
	}
	clean(t, b)
}

// What a server refuses is said in the words of the form: a field is called as it is
// labelled, and one that the form does not have by its words.
func TestRefusalsNameFieldsAsFormsDo(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	b := y.open(1440, 900)
	b.Before(`(() => { const ask = window.fetch; window.fetch = async (...a) => String(a[0]).endsWith("/v1/tasks") && a[1]?.method === "POST"
		? new Response(JSON.stringify({type: "/problems/invalid", detail: "budget_usd is below what result_schema costs, which a_word_of_mine is not.",
			errors: {budget_usd: ["must cover result_schema"], result_schema: ["is no schema"]}}), {status: 400}) : ask(...a) })()`)
	b.Go("/ui/tasks")
	heading(b, "Tasks")
	b.Press("c")
	b.Fill("Title", "Paint it")
	b.Fill("What to do", "All of it.")
	b.Press("Ctrl+Enter")
	b.Until("the refusal in words", `document.querySelector("dialog[open] [role=alert]")?.innerText ===
		"“Budget” is below what result schema costs, which a_word_of_mine is not. result schema is no schema."`)
	b.Until("beside the field, too", `[...document.querySelectorAll("dialog[open] .field em")].some(e => e.innerText === "must cover result schema")`)
	usable(b, "a refusal")
}
