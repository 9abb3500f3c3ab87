//go:build !race

package dashboard_test

import (
	"fmt"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/seed"
)

// placing is where somebody is in the list of tasks.
type placing struct {
	Row   string // the title of the marked row
	Top   int    // how far down the screen the row is
	Count int    // rows that are loaded
}

// placed answers where somebody is in the list of tasks.
func placed(b *browser.Tab) placing {
	b.T.Helper()
	b.Until("the marked row is drawn", `document.querySelector("#tasks .row.on")`)
	return browser.Eval[placing](b, `(() => {
		const grid = document.querySelector("#tasks"), row = grid.querySelector(".row.on");
		return {Row: row?.querySelector("a").innerText ?? "", Count: Number(grid.getAttribute("aria-rowcount")),
			Top: Math.round((row?.getBoundingClientRect().top ?? 0) - grid.getBoundingClientRect().top)};
	})()`)
}

// same waits until somebody is in the list of tasks where they were.
func (s placing) same(b *browser.Tab, how string) {
	b.T.Helper()
	b.Until(how+": the row that was marked is, at its place", fmt.Sprintf(`(() => {
		const grid = document.querySelector("#tasks"), row = grid?.querySelector(".row.on");
		return row?.querySelector("a").innerText === %s && Number(grid.getAttribute("aria-rowcount")) >= %d &&
			Math.abs(row.getBoundingClientRect().top - grid.getBoundingClientRect().top - %d) < 2;
	})()`, quoted(s.Row), s.Count, s.Top))
}

// Whoever opens a row and goes back, with a key or with the browser, finds the list as they
// left it: the row marked and where it was on screen, though rows were loaded on the way to
// it and others have come above it. Whoever comes anew begins at the top.
func TestPlaceInAListIsKept(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	repo, _ := y.call("GET", "/v1/repos/acme/web", "")["id"].(string)
	y.Write(y.Account, func(tx *db.Tx) error {
		for i := range 350 {
			if err := seed.Add(tx, seed.Task{
				ID: id.New(), Account: y.Account, Repo: repo, Status: "completed", Title: fmt.Sprintf("Bulk %d", i), Created: int64(i),
			}); err != nil {
				return err
			}
		}
		return nil
	})
	b := hands{y.open(1440, 900)}
	b.Complaints()
	list := func() {
		t.Helper()
		b.heading("Tasks")
		b.Until("rows", `document.querySelector("#tasks .row.on")`)
	}
	opened := func(s placing) {
		t.Helper()
		b.Press("Enter")
		heading(b.Tab, s.Row)
	}
	back := b.Back
	b.Press("g", "t")
	list()
	top := placed(b.Tab)

	// A few rows down, where nothing is scrolled.
	b.Press("j", "j", "j")
	few := placed(b.Tab)
	if few.Row == top.Row || few.Top <= top.Top {
		t.Fatalf("after j the mark is at %+v, it was at %+v", few, top)
	}
	opened(few)
	b.Press("u")
	few.same(b.Tab, "up")
	opened(few)
	back()
	few.same(b.Tab, "back")

	// Whoever went on to others of the list finds the one shown last marked, and in sight.
	opened(few)
	for range 30 {
		was := browser.Eval[string](b.Tab, `location.pathname`)
		b.Press("]")
		b.Until("the next", `location.pathname !== `+quoted(was))
	}
	last := browser.Eval[string](b.Tab, `location.pathname`)
	b.Press("u")
	b.Until("the last one is marked and in sight", fmt.Sprintf(`(() => {
		const grid = document.querySelector("#tasks")?.getBoundingClientRect(), row = document.querySelector("#tasks .row.on"), at = row?.getBoundingClientRect();
		return at && row.querySelector("a").pathname === %s && at.top >= grid.top - 1 && at.bottom <= grid.bottom + 1;
	})()`, quoted(last)))

	// Far down: rows are loaded on the way, twice.
	for _, n := range []int{200, 300} {
		b.Press("End")
		b.Until("more rows", fmt.Sprintf(`document.querySelector("#tasks").getAttribute("aria-rowcount") >= %d`, n))
	}
	b.Press("PageUp", "k")
	far := placed(b.Tab)
	if far.Top < 0 || browser.Eval[int](b.Tab, `document.querySelector("#tasks").scrollTop`) < 100*32 {
		t.Fatalf("nothing is scrolled: %+v", far)
	}
	opened(far)
	b.Press("u")
	far.same(b.Tab, "up")
	b.Press("j", "k") // the mark moves from there
	far.same(b.Tab, "up, and to and fro")
	opened(far)
	y.task("One more", "It comes while somebody reads.")
	y.task("And one", "It comes while somebody reads.")
	back()
	far.same(b.Tab, "back, after rows have come")
	opened(far)
	b.Press("g", "h")
	b.heading("Home")
	back()
	heading(b.Tab, far.Row)
	back()
	far.same(b.Tab, "back, over two pages")

	// With another filter it is another list, and with that of before the one of before.
	b.Go("/ui/tasks?q=Bulk") // loads the page anew
	list()
	b.Press("PageDown", "PageDown", "PageDown")
	filtered := placed(b.Tab)
	b.do("Tasks")
	b.Until("all of them", `location.search === "" && document.querySelector("#tasks")?.innerText.includes("And one")`)
	b.Until("the top of them", `document.querySelector("#tasks").scrollTop === 0 && document.querySelector("#tasks .row.on")`)
	back()
	b.Until("the filter", `location.search === "?q=Bulk"`)
	filtered.same(b.Tab, "back to a filter")
	b.Press("k", "j") // which takes the focus from the link
	opened(filtered)
	b.Press("u")
	filtered.same(b.Tab, "up to a filter")

	// Anew: by a key, by the rail, and by the address.
	fresh := func(how string) {
		t.Helper()
		list()
		b.Until(how+": the top", `document.querySelector("#tasks").scrollTop === 0 && document.querySelector("#tasks .row.on").innerText.includes("And one")`)
		b.Press("PageDown", "PageDown", "PageDown")
	}
	b.Press("g", "h")
	b.heading("Home")
	b.Press("g", "t")
	fresh("by a key")
	b.Press("g", "h")
	b.heading("Home")
	b.do("Work")
	fresh("by the rail")
	b.Go("/ui/tasks")
	fresh("by its address")
	clean(t, b.Tab)
}

// Whoever opens what a card is about and goes back is at that card: it has the focus, so
// that the next key acts on what they see. Whoever comes anew is at none.
func TestPlaceAmongCardsIsKept(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	s.held("One", "Two", "Three")
	b := s.enter(1440, 900)
	b.Complaints()
	is(b, waits, "3")
	is(b, cardCount, "3")
	b.Press("j", "j")
	second := browser.Eval[string](b, atCard)
	browser.Eval[any](b, `document.activeElement.closest("li[data-id]").querySelector("a[href^='/ui/tasks/']").click()`)
	b.Until("the task", `location.pathname.startsWith("/ui/tasks/")`)
	heading(b, second)
	// What the card is of is known before all else is.
	browser.Eval[any](b, `(() => { const real = fetch; window.fetch = async (...a) => {
		const answer = await real(...a);
		if (/\/v1\/plans/.test(String(a[0]))) await new Promise(go => { window.letGo = go });
		if (/\/v1\/tasks\?.*held/.test(String(a[0]))) setTimeout(() => { window.came = true }, 50);
		return answer;
	} })()`)
	b.Back()
	b.Until("the tasks, but not the plans", `window.came && window.letGo`)
	browser.Eval[any](b, `window.letGo()`)
	is(b, atCard, second)
	browser.Eval[any](b, `window.letGo = window.came = undefined`)
	b.Press("g", "t")
	heads(b, "Tasks")
	b.Press("g", "h")
	b.Until("the plans are asked for", `window.letGo`)
	browser.Eval[any](b, `window.letGo()`)
	is(b, cardCount, "3")
	if got := browser.Eval[string](b, atCard); got == second {
		t.Errorf("whoever comes anew is at %q", got)
	}
	clean(t, b)
}
