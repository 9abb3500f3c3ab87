//go:build !race

package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
)

// boardsOf are the ids of the boards that ada sees, by their names.
func boardsOf(y *rig.Yard) map[string]string {
	ids := map[string]string{}
	for _, b := range call[struct{ Data []struct{ ID, Name string } }](y, http.MethodGet, "/v1/dashboards", "").Data {
		ids[b.Name] = b.ID
	}
	return ids
}

// both fails the test for what axe finds on a page in either theme.
func both(b *browser.Tab, where string) {
	b.T.Helper()
	for _, theme := range []string{"dark", "light"} {
		b.Theme(theme)
		usable(b, where+" in "+theme)
	}
}

// titles are the headings of the widgets of a board, in the order in which they are read.
const titles = `[...document.querySelectorAll(".tiles h2")].map(e => e.innerText).join(", ")`

// A built-in board shows what happened: rates as n of d, a cost that nobody knows as none.
func TestBuiltInBoards(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	work(y)
	visit(b, "/ui/boards", "Boards")
	b.See("everybody, built in")
	shoot(b, "boards")
	for name, sees := range map[string][]string{
		"Work":     {"Tasks that succeeded", "in the last 30 days", "What waits"},
		"Delivery": {"Tasks that went well", "nothing yet"},
		"Spending": {"in no sum", "By repository"},
	} {
		visit(b, "/ui/boards/"+boardsOf(y)[name], name)
		for _, text := range sees {
			b.See(text)
		}
		if found := browser.Eval[string](b, `document.querySelector("main").innerText.match(/undefined|NaN|null|[a-z]+_[a-z]+/)?.[0] ?? ""`); found != "" {
			t.Errorf("%s says %q", name, found)
		}
		if n := browser.Eval[int](b, `document.querySelectorAll(".tile.stat .iv").length`); name == "Work" && n != 1 {
			t.Errorf("%d numbers have a range; how many boxes are online is no sample", n)
		}
		both(b, name)
		shoot(b, "board-"+strings.ToLower(name))
		b.Resize(900, 800)
		b.Until("no sideways scroll", `document.querySelector("main").scrollWidth <= document.querySelector("main").clientWidth`)
		shootAt(b, "board-"+strings.ToLower(name)+"-900")
		b.Resize(1440, 900)
	}
	content(b)
}

// A board is made, filled, arranged by the keyboard alone, kept, and found so after a reload.
func TestBoardByKeys(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	h := hands{b}
	visit(b, "/ui/boards", "Boards")
	h.do("New board")
	h.fill("Name", "Mornings")
	b.Press("Enter")
	heads(b, "Mornings")
	add := func() {
		h.do("Add a widget")
		b.Until("the form", `document.querySelector("dialog[open] form")`)
		h.do("Add it")
		b.Until("it is taken in", `!document.querySelector("dialog[open]")`)
	}
	add()
	is(b, titles, "Tasks filed")
	h.do("Add a widget")
	b.Choose("source", "cost")
	b.Choose("kind", "series")
	b.Choose("window", "30d")
	h.fill("Heading", "What it costs")
	b.Press("Enter")
	is(b, titles, "Tasks filed, What it costs")
	h.do("Add a widget")
	b.Choose("source", "")
	h.fill("Text", "Ask *ada*.")
	h.do("Add it")
	is(b, titles, "Tasks filed, What it costs, Text")
	b.Until("the focus at what came last", `document.activeElement.ariaLabel === "Move Text"`)
	both(b, "a board that is edited")
	shoot(b, "board-edit")
	b.Press("ArrowUp", "ArrowLeft")
	is(b, titles, "Text, Tasks filed, What it costs")
	b.Until("the focus where it was", `document.activeElement.ariaLabel === "Move Text"`)
	b.See("“Text” is number 1 of 3.")
	b.Press("Shift+ArrowRight")
	b.See("two thirds of the width")
	b.Press("ArrowRight")
	is(b, titles, "Tasks filed, Text, What it costs")
	h.do("Keep the board")
	b.See("Kept.")
	b.Until("its text", `document.querySelector(".tiles .md em")?.innerText === "ada"`)
	b.Go("/ui/boards/" + boardsOf(y)["Mornings"])
	heads(b, "Mornings")
	is(b, titles, "Tasks filed, Text, What it costs")
	if got := browser.Eval[string](b, `getComputedStyle(document.querySelector(".tile.markdown")).gridColumnEnd`); got != "span 8" {
		t.Errorf("the text is %s wide", got)
	}
	// Take one out, and rename the board, in one go.
	h.do("Edit")
	b.Until("the editor", `document.querySelector(".tile .grip")`)
	h.do("Move Text")
	b.Press("Delete")
	is(b, titles, "Tasks filed, What it costs")
	h.fill("Name", "Evenings")
	h.do("Keep the board")
	heads(b, "Evenings")
	b.Go("/ui/boards/" + boardsOf(y)["Evenings"])
	is(b, titles, "Tasks filed, What it costs")
	content(b)
}

// A board is copied for oneself, shared with everybody, and deleted; what it is called is no
// markup, and a name that is in use is refused at its field.
func TestBoardsAreShared(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	visit(b, "/ui/boards/"+boardsOf(y)["Delivery"], "Delivery")
	if browser.Eval[bool](b, `[...document.querySelectorAll("main button")].some(e => /^(Edit|Delete)$/.test(e.innerText))`) {
		t.Error("a built-in board can be changed")
	}
	b.Button("Copy")
	b.Fill("Name", "Delivery")
	b.Choose("seen", "")
	b.Button("Make the copy")
	b.See("built-in board")
	b.Fill("Name", "Mine <i>")
	b.Choose("seen", "personal")
	b.Button("Make the copy")
	heads(b, "Mine <i>")
	// By hand: the last one is dropped upon the first, and looks back further.
	b.Until("the editor", `document.querySelectorAll(".tile .grip").length === 7`)
	browser.Eval[any](b, `(() => { const to = document.querySelector(".tile"), grip = [...document.querySelectorAll(".tile .grip")].at(-1), dataTransfer = new DataTransfer();
		grip.dispatchEvent(new DragEvent("dragstart", {bubbles: true, dataTransfer}));
		setTimeout(() => to.dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer})), 50) })()`)
	is(b, `document.querySelector(".tiles h2").innerText`, "Merged lately")
	b.Button("Change Merged lately")
	b.Choose("window", "90d")
	b.Button("Change it")
	b.Until("what it will show", `/the last 90 days/.test(document.querySelector(".tile").innerText) && /filled once the board is kept/.test(document.querySelector(".tile").innerText)`)
	b.Button("Leave it as it was")
	b.See("seen by you alone")
	is(b, titles, "How often things go well, Merged, Merged of those that ended, Merged by day, Checks that passed, Merged by repository, Merged lately")
	b.Button("Share with everybody")
	b.Yes()
	b.See("seen by everybody here")
	b.Go("/ui/boards/" + boardsOf(y)["Mine <i>"])
	b.See("seen by everybody here")
	b.Button("Delete")
	b.Yes()
	heads(b, "Boards")
	b.See("Delivery")
	b.Gone("Mine <i>")
	if _, there := boardsOf(y)["Mine <i>"]; there {
		t.Error("the board is still there")
	}
	content(b)
}

// Two people who change one board do not overwrite each other: the second is told, and chooses.
func TestTwoChangeOneBoard(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	made := call[struct{ ID string }](y, http.MethodPost, "/v1/dashboards",
		`{"name": "Mornings", "widgets": [{"kind": "stat", "source": "tasks_filed", "window": "7d"}, {"kind": "markdown", "text": "Ask ada."}]}`)
	h := hands{b}
	visit(b, "/ui/boards/"+made.ID, "Mornings")
	edit := func() {
		h.do("Edit")
		b.Until("the editor", `document.querySelectorAll(".tile .grip").length === 2`)
		h.do("Move Text")
		b.Press("ArrowUp")
		is(b, titles, "Text, Tasks filed")
	}
	edit()
	call[struct{}](y, http.MethodPatch, "/v1/dashboards/"+made.ID, `{"name": "Noons"}`)
	h.do("Keep the board")
	b.See("Somebody has changed this board since you began.")
	both(b, "a board that another has changed")
	b.Button("See theirs, and leave mine")
	heads(b, "Noons")
	is(b, titles, "Tasks filed, Text")
	edit()
	call[struct{}](y, http.MethodPatch, "/v1/dashboards/"+made.ID, `{"name": "Evenings"}`)
	h.do("Keep the board")
	b.Button("Go on with mine, in place of theirs")
	b.Gone("Somebody has changed")
	h.do("Keep the board")
	heads(b, "Noons")
	is(b, titles, "Text, Tasks filed")
	content(b)
}
