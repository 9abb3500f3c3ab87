//go:build !race

package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/proof/browser"
)

// onRow is the text of the marked row of a grid, its first line of names aside.
func onRow(b *browser.Tab, grid string) string {
	b.T.Helper()
	return browser.Eval[string](b, `document.querySelector("#`+grid+` .row.on .wide, #`+grid+` .row.on [id$=-name]")?.innerText ?? ""`)
}

// marked waits until the marked row of a grid has a text.
func marked(b *browser.Tab, grid, want string) {
	b.T.Helper()
	b.Until("the mark is at "+want, `(document.querySelector("#`+grid+` .row.on [id$=-name]")?.innerText ?? "").includes(`+quoted(want)+`)`)
}

// The marked row stays marked when others come above it: keys act on what a person sees
// marked, whether they have moved the mark or not.
func TestMarkKeepsItsRow(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.task("First", "Nothing to do.")
	y.task("Second", "Nothing to do.")
	b := y.open(1440, 900)
	b.Complaints()
	b.Go("/ui/tasks")
	marked(b, "tasks", "Second")
	y.task("Third", "Nothing to do.")
	b.See("Third")
	marked(b, "tasks", "Second")
	b.Press("j")
	marked(b, "tasks", "First")
	y.task("Fourth", "Nothing to do.")
	b.See("Fourth")
	if got := onRow(b, "tasks"); !strings.HasPrefix(got, "First") {
		t.Errorf("the mark is at %q", got)
	}
	b.Press("Enter")
	heading(b, "First")
	clean(t, b)
}

// Who wants more rows on the screen has compact ones, in this browser and after it is
// opened again. Rows of two lines keep their height: they are for fingers.
func TestRowsAreCompact(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	for i := range 30 {
		y.task(fmt.Sprintf("Row %02d", i), "Nothing to do.")
	}
	b := y.open(1440, 900)
	b.Complaints()
	const height, last = `document.querySelector("#tasks .row:not(.names)")?.offsetHeight`,
		`document.querySelector("#tasks").scrollHeight`
	const names = `document.querySelector(".row.names")?.offsetHeight`
	b.Go("/ui/tasks")
	is(b, height, "44")
	is(b, last, "1320")
	is(b, names, "34")
	b.Go("/ui/settings")
	b.Choose("rows", "compact")
	b.Press("g", "t")
	is(b, height, "32")
	is(b, last, "960")
	is(b, names, "34")
	b.Go("/ui/tasks")
	is(b, height, "32")
	usable(b, "compact rows")
	b.Resize(390, 800)
	is(b, height, "64")
	is(b, names+" + document.querySelector('#tasks').getBoundingClientRect().top - document.querySelector('.listbox').getBoundingClientRect().top", "2")
	clean(t, b)
}

// Arrows and their like move in the list of a page without a click into it, and shortcuts
// of the browser do not act on rows. With single letters off, letters do nothing in a grid
// that has the focus either; arrows do.
func TestKeysOfLists(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	for i := range 20 {
		y.task(fmt.Sprintf("Row %02d", i), "Nothing to do.")
	}
	b := y.open(1440, 900)
	b.Complaints()
	b.Go("/ui/tasks")
	marked(b, "tasks", "Row 19")
	b.Press("ArrowDown")
	marked(b, "tasks", "Row 18")
	b.Press("PageDown")
	marked(b, "tasks", "Row 03")
	b.Press("End")
	marked(b, "tasks", "Row 00")
	b.Press("Home")
	marked(b, "tasks", "Row 19")
	b.Press("Ctrl+j", "Ctrl+x", "Alt+j")
	marked(b, "tasks", "Row 19")
	if browser.Eval[bool](b, `!!document.querySelector("#tasks [aria-selected=true]")`) {
		t.Error("Ctrl X selects a row")
	}
	b.Press("Ctrl+k")
	b.Until("the palette", `document.querySelector("dialog.palette[open]")`)
	b.Press("Escape")
	b.Until("no palette", `!document.querySelector("dialog[open]")`)
	marked(b, "tasks", "Row 19")
	b.Press("?")
	b.See("select to here")
	if broken := browser.Eval[[]string](b, `[...document.querySelectorAll(".shortcuts > div")].filter(e => {
		const [dt, dd] = e.children, of = [...dt.children].map(k => k.getBoundingClientRect());
		return of.some(r => r.top !== of[0].top || r.height > 24 || r.right > dd.getBoundingClientRect().left);
	}).map(e => e.innerText)`); len(broken) > 0 {
		t.Errorf("keys are broken or lie over what they do: %q", broken)
	}
	told := browser.Eval[string](b, `document.querySelector("dialog[open]").innerText.replace(/\s+/g, " ")`)
	for _, want := range []string{"↓↑ next, previous row", "g , Settings"} {
		if !strings.Contains(told, want) {
			t.Errorf("the keys do not say %q: %s", want, told)
		}
	}
	shots(b, "keys")
	b.Click("dialog[open] input[type=checkbox]")
	b.Press("Escape")
	b.Until("no dialog", `!document.querySelector("dialog[open]")`)
	browser.Eval[any](b, `document.getElementById("tasks").focus()`)
	b.Press("j", "x", "ArrowDown")
	marked(b, "tasks", "Row 18")
	if browser.Eval[bool](b, `!!document.querySelector("#tasks [aria-selected=true]")`) {
		t.Error("a letter selects a row where letters are off")
	}
	heads := browser.Eval[string](b,
		`[...document.querySelectorAll("#tasks-names [role=columnheader]")].map(e => e.textContent.trim()).join()`)
	if heads != "Selected,Status,Title,Repository,Box or place,Asked by,Cost,Age" {
		t.Errorf("the columns are %q", heads)
	}
	usable(b, "a list of tasks")
	clean(t, b)
}

// What was selected is cancelled, reassigned or queued again with one call each, after one
// question; what was refused is named with the reason.
func TestManyTasks(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	ids := map[string]string{}
	for _, title := range []string{"Many one", "Many two", "Many three", "Many four"} {
		ids[title] = y.task(title, "Nothing to do.")
	}
	b := y.open(1440, 900)
	b.Complaints()
	b.Go("/ui/tasks")
	marked(b, "tasks", "Many four")
	b.Press("x")
	b.See("1 selected")
	b.Press("j", "j", "X")
	b.See("3 selected")
	usable(b, "selected rows")
	b.Press("Escape")
	b.Gone("selected")
	b.Press("Home", "x", "j", "x")
	b.See("2 selected")
	for _, id := range ids {
		if got := y.call("GET", "/v1/tasks/"+id, "")["status"]; got != "pending" {
			t.Fatalf("a task that was selected is %v", got)
		}
	}
	y.call("POST", "/v1/tasks/"+ids["Many four"]+"/cancel", "")
	b.Until("its state", `document.querySelector("#tasks .row").innerText.includes("cancelled")`)
	b.Button("Cancel 2")
	b.See("Cancel 2 tasks?")
	b.Yes()
	b.See("1 of 2 cancelled, 1 not:")
	b.See("Many four: It was over already.")
	b.See("1 selected") // what was refused stays selected
	y.status(ids["Many three"], "cancelled")
	usable(b, "a tally")
	b.Press("Escape", "End", "x", "k", "X")
	b.See("2 selected")
	b.Button("Redispatch 2")
	b.See("Queue them again")
	usable(b, "guidance for many")
	b.Fill("Guidance", "Mind the cat.")
	b.Button("Queue them again")
	b.See("0 of 2 queued again, 2 not:")
	b.See("The task is already in the queue.")
	if got := y.call("GET", "/v1/tasks/"+ids["Many one"], "")["status"]; got != "pending" {
		t.Errorf("a task that was not selected is %v", got)
	}
	for _, c := range b.Complaints() { // the browser tells of what was refused
		if !strings.Contains(c, "status of 409") {
			t.Errorf("the browser complains: %s", c)
		}
	}
}
