//go:build !race

package dashboard_test

import (
	"fmt"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/seed"
)

// history gives the yard two weeks of merged and failed tasks, and what models cost in them.
func (y *yard) history() {
	y.T.Helper()
	repo, _ := y.call("GET", "/v1/repos/acme/web", "")["id"].(string)
	now := time.Now().UTC()
	y.Write(y.Account, func(tx *db.Tx) error {
		for day := range 14 {
			for n := range 1 + day%4 {
				filed := now.Add(-time.Duration(24*day)*time.Hour - time.Duration(3+n)*time.Hour)
				paid := filed
				if day == 0 {
					paid = now // a month that has just begun has a day, too
				}
				at := func(minutes int) int64 { return filed.Add(time.Duration(minutes) * time.Minute).UnixMicro() }
				task, pr, run, asked := id.New(), id.New(), id.New(), id.New()
				merged := at(90 + 10*n)
				if err := seed.Add(tx,
					seed.Task{ID: task, Account: y.Account, Repo: repo, Status: "merged", Title: "Work", Pull: &pr, Created: at(0)},
					seed.Pull{ID: pr, Account: y.Account, Repo: repo, Task: &task, State: "merged", Merged: &merged,
						Number: 100 + 10*day + n},
					seed.Run{ID: run, Account: y.Account, Task: task, Repo: repo, Box: id.New()},
					seed.Session{ID: run, Account: y.Account, Repo: repo, Run: &run, Task: &task},
					seed.Action{ID: asked, Account: y.Account, Pull: pr, Kind: "merge", State: "applied", Decided: &merged}); err != nil {
					return err
				}
				for model, micros := range []int64{3_100_000, 1_200_000, 400_000} {
					if err := seed.Add(tx, seed.SpendDay{Account: y.Account, Session: run, Model: fmt.Sprint("model-", model+1),
						Day: paid.Unix() / 86400, Micros: micros}); err != nil {
						return err
					}
				}
				if _, err := seed.RunBegan.Exec(tx, run, at(6)); err != nil {
					return err
				}
				if _, err := seed.SessionBegan.Exec(tx, run, at(6)); err != nil {
					return err
				}
				if _, err := seed.RunEnds.Exec(tx, run, at(40), "succeeded"); err != nil {
					return err
				}
				if _, err := seed.AskAt.Exec(tx, asked, at(45)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// The flow of work is drawn on a page of its own and on Home, and as a table; what a month has
// cost is drawn day by day, by what one chooses.
func TestFlowIsDrawn(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.history()
	b := y.open(1440, 900)
	b.Complaints()
	visit(b, "/ui/flow", "Flow of work")
	b.See("Half within 1 h 4")
	b.See("is waiting for a person")
	b.Until("both are drawn", `document.querySelectorAll(".fig .chart").length >= 2 && document.querySelectorAll(".fig .chart .p-person").length >= 7`)
	if got := browser.Eval[string](b, `[...document.querySelectorAll("[aria-label='From filed to merged'] .legend li")].map(e => e.innerText.trim()).join(", ")`); got !=
		"queue, agent and repairs, people, other" {
		t.Errorf("the legend is %q", got)
	}
	b.See("Success by template")
	b.Button("As a table")
	b.Until("a row for each day", `document.querySelector("details[open] tbody").rows.length === 30`)
	both(b, "the flow of work")
	shoot(b, "flow")
	b.Resize(1440, 900)
	b.Button("7 days")
	b.Until("a week", `location.search === "?days=7" && document.querySelector("details tbody").rows.length === 7`)
	whatIf(b)
	visit(b, "/ui/usage", "Usage and budgets")
	b.Until("the parts of a day", `[...document.querySelectorAll("[aria-label='Day by day'] .legend li")].map(e => e.innerText.trim()).join() === "model-1,model-2,model-3"`)
	b.Until("its way", `document.querySelector("[aria-label='Day by day'] polyline")`)
	b.Button("Repository")
	b.Until("another way", `location.search === "?by=repo" && document.querySelector("[aria-label='Day by day'] .legend")?.innerText.trim() === "acme/web"`)
	b.Button("Model")
	b.Button("Set the budget")
	both(b, "the cost of a month")
	shoot(b, "cost")
	visit(b, "/ui/", "Home")
	b.See("Merged and failed a day")
	b.Until("they are drawn", `document.querySelectorAll(".fig .chart").length === 2`)
	both(b, "Home")
	shoot(b, "home-flow")
	b.Resize(1440, 900)
	visit(b, "/ui/tasks", "Tasks")
	b.Button("Details")
	b.Click("aside.pane summary")
	b.Until("what is done of a task is one line", `/\d steps done: queue, .*people/.test(document.querySelector("aside.pane details").innerText) &&
		document.querySelectorAll("aside.pane details li").length === 1`)
	usable(b, "the steps of a task")
	b.Button("Details")
	content(b)
}

// whatIf plays what history has seeded under another policy, beside what was.
func whatIf(b *browser.Tab) {
	b.T.Helper()
	b.Click("main a[href='/ui/flow/whatif']")
	heads(b, "What if")
	b.Fill("Days", "90")
	b.Button("Play it")
	b.Until("the refusal at its field", `document.querySelector("[name=days][aria-invalid=true]")`)
	b.Fill("Days", "21")
	b.Fill("Policy file", "merge: {mode: perhaps}")
	b.Button("Play it")
	b.Until("the fault of the file", `document.querySelector("[name=policy][aria-invalid=true]")`)
	b.Fill("Policy file", "version: 1\nmerge: {mode: auto}\n")
	b.Fill("Tasks at once", "2")
	b.Button("Play it")
	b.See("What was, and what would have been")
	b.See("tries with 2 tasks at once")
	b.Until("what people were asked, and would be", `[...document.querySelectorAll("main tr")].some(e =>
		/^People asked about merges/.test(e.innerText) && +e.cells[2].innerText > 20 && e.cells[3].innerText === "0")`)
	both(b, "what if")
	shoot(b, "what-if")
}
