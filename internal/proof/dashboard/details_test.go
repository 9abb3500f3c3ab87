//go:build !race

package dashboard_test

import (
	"testing"

	"yardmaster/internal/proof/browser"
)

// From 1200 px a list shows, beside it, what there is to know of its marked row, to who
// wants it so: it follows the mark and what becomes of the row, and reading it asks the
// server for nothing.
func TestDetailsBesideAList(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	first := y.task("Pane one", "The **first** thing.\n\n[a link](https://example.com/x) and \x1b[31mred\u202e")
	y.task("Pane two", "The second thing.")
	b := y.open(1440, 900)
	b.Complaints()
	const pane = `document.querySelector("aside.pane")`
	const says = `(document.querySelector("aside.pane")?.innerText ?? "")`
	b.Go("/ui/tasks")
	marked(b, "tasks", "Pane two")
	if browser.Eval[bool](b, "!!"+pane) {
		t.Error("the pane is there before anybody asked for it")
	}
	b.Press("i")
	b.Until("the second task", says+`.includes("The second thing.")`)
	browser.Eval[any](b, `window.asked = 0, performance.setResourceTimingBufferSize(1e4), new PerformanceObserver(l =>
		asked += l.getEntries().filter(e => /\/v1\/(tasks|prs|repos|runs|sessions|runners)/.test(e.name)).length).observe({type: "resource"}), 0`)
	b.Press("j")
	b.Until("the first task", says+`.includes("The first thing.") && `+says+`.includes("waits for a box")`)
	if n := browser.Eval[int](b, "asked"); n != 0 {
		t.Errorf("moving the mark asked the server %d times", n)
	}
	b.Click("aside.pane summary")
	b.Until("the step that goes on", `/^queue · /.test(document.querySelector("aside.pane details li")?.innerText ?? "")`)
	usable(b, "details beside a list")
	if over := browser.Eval[float64](b, `document.getElementById("tasks").getBoundingClientRect().right -
		document.querySelector("aside.pane").getBoundingClientRect().left`); over > 0 {
		t.Errorf("the list lies %v px under the pane", over)
	}
	shots(b, "details")
	y.call("POST", "/v1/tasks/"+first+"/cancel", "{}")
	b.Until("it is cancelled in the pane, too", says+`.includes("cancelled")`)
	b.Resize(1100, 800)
	b.Until("no pane where there is no room", "!"+pane)
	b.Resize(1440, 900)
	b.Go("/ui/prs")
	b.See("No pull request is open")
	if browser.Eval[bool](b, "!!"+pane) {
		t.Error("an empty list has a pane")
	}
	b.Go("/ui/tasks")
	b.Until("the choice is kept", says+`.includes("The second thing.")`)
	b.Button("Details")
	b.Until("no pane", "!"+pane)
	clean(t, b)
}
