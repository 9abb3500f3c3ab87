//go:build !race

package dashboard_test

import (
	"testing"
)

// The title of a new task is typed at once. An amount that is no number is refused at its
// field: it is never taken for none, which would lift a cap.
func TestAmountsThatAreNone(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	b := y.open(1440, 900)
	b.Go("/ui/tasks")
	b.See("No tasks yet")
	b.Press("c")
	b.Until("the text has the focus", `document.activeElement?.name === "text"`)
	b.Type("Nothing to do.")
	b.Fill("Title", "Dear work")
	b.Button("More")
	b.Fill("Budget", "5,50")
	b.Button("File the task")
	b.Until("a word at the field", `document.querySelector("dialog input[name=budget][aria-invalid=true]")`)
	b.Fill("Budget", "7")
	b.Button("File the task")
	b.See("No box has it yet")
	b.Button("Change budget")
	b.Until("the cap is shown", `document.querySelector("dialog input[name=usd]")?.value === "7.00"`)
	b.Fill("Budget", "8,50")
	b.Button("Set the budget")
	b.Until("a word at the field", `document.querySelector("dialog input[name=usd][aria-invalid=true]")`)
	task := y.call("GET", "/v1/tasks?q=Dear", "")["data"].([]any)[0].(map[string]any)
	if usd, _ := task["budget"].(map[string]any)["usd"].(string); usd != "7.00" {
		t.Errorf("the cap is %q", usd)
	}
}

// Whoever opens a row with the keyboard goes on from the heading of its page, also when
// that was drawn anew because the row came later.
func TestFocusGoesAlong(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.task("By keyboard", "Nothing to do.")
	b := y.open(1440, 900)
	b.Go("/ui/tasks")
	first(b, "tasks")
	b.Until("the heading of the task has the focus",
		`document.activeElement?.tagName === "H1" && document.activeElement.innerText === "By keyboard"`)
}
