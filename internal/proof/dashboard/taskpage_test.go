//go:build !race

package dashboard_test

import (
	"fmt"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

// deeds are the names of the buttons in the head of the page.
func deeds(b *browser.Tab, want string) {
	b.T.Helper()
	b.Until("the actions "+want, `[...document.querySelectorAll(".head button")].map(e => e.innerText).join() === `+quoted(want))
}

// The head of a task has what its state allows. One that failed says so in words and is
// queued again from there; what it depends on and holds up has names.
func TestTaskOfEachState(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	first := y.task("Lay the floor", "Nothing to do.")
	second, _ := y.call("POST", "/v1/tasks", `{"repo": "acme/web", "title": "Paint the wall", "problem": "Nothing to do.", "depends_on": ["`+
		first+`"]}`)["task_id"].(string)
	b := y.open(1440, 900)
	b.Complaints()
	b.Go("/ui/tasks/" + second + "?tab=graph")
	b.See("Depends on")
	b.Resize(390, 844)
	b.Until("a link that a thumb hits", `document.querySelector("#main .cards a").getBoundingClientRect().height >= 44`)
	b.Resize(1440, 900)
	b.Button("Lay the floor")
	heading(b, "Lay the floor")
	deeds(b, "Change budget,Cancel")
	b.See("No box has it yet.")
	y.OnTask(first, func(tx *db.Tx, row *task.Row) error {
		return y.Tasks.Fail(tx, row, "agent_crashed", "The agent crashed three times.")
	})
	deeds(b, "Redispatch")
	b.See("The agent crashed three times. It stays so unless somebody redispatches it.")
	b.Button("report")
	b.See("the task failed before one was written")
	usable(b, "a task that failed")
	b.Go("/ui/tasks/" + second)
	b.See("It goes on if that task is redispatched.")
	deeds(b, "")
	b.Go("/ui/tasks/" + first)
	b.Button("Redispatch")
	b.Fill("Guidance", "Mind the cat.")
	usable(b, "a redispatch")
	b.Button("Queue it again")
	b.See("Queued again.")
	deeds(b, "Change budget,Cancel")
	b.Button("Change budget")
	b.Fill("Budget", "5")
	b.Button("Set the budget")
	b.See("of $5")
	b.Button("Cancel")
	b.Yes()
	deeds(b, "")
	clean(t, b)
}

// A row of a running task says what it does now, where and in which attempt, and is tinted
// as it changes. Between two attempts the page of the task keeps the last transcript, and
// each attempt leads to its own.
func TestTaskThatRuns(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.box()
	id := y.task("Stand by", "Wait until somebody comes.")
	b := y.open(1440, 900)
	b.Complaints()
	b.Go("/ui/tasks")
	b.See("Stand by")
	var doing string
	patience.Until(y.T, "it does something", func() bool {
		doing, _ = y.call("GET", "/v1/tasks/"+id, "")["activity"].(string)
		return doing != ""
	})
	box, _ := y.call("GET", "/v1/tasks/"+id, "")["box_id"].(string)
	name, _ := y.call("GET", "/v1/runners/"+box, "")["name"].(string)
	b.Until("what it does, and where", `(s => s.includes(`+quoted(doing)+`) && s.includes(`+quoted(name)+`))(document.querySelector("#tasks .row").innerText)`)
	b.Button("board")
	b.Until("its column", `document.querySelector(".board section[aria-label=Working]").innerText.includes("Stand by")`)
	usable(b, "the board")
	b.Button("list")
	b.Until("its row", `document.querySelector("#tasks .row")`)
	b.Click("#tasks .row a")
	heading(b, "Stand by")
	deeds(b, "Reassign,Change budget,Cancel")
	b.See("I wait.")
	other := b.Another()
	other.Go("/ui/tasks")
	other.See("Stand by")
	other.Until("live", `document.querySelector(".link.live")`)
	browser.Eval[any](other, `void addEventListener("animationstart", e => { if (e.target.matches("#tasks .row")) window.tinted = e.animationName })`)
	y.call("POST", "/v1/runners/"+box+"/drain", "")
	other.Until("the row is tinted", `window.tinted === "changed"`)
	b.See("This was attempt ")
	b.See("I wait.")
	b.Button("attempts")
	b.Until("the attempt", `document.querySelector("#attempts .row:last-child")?.innerText.includes("drained")`)
	had := browser.Eval[int](b, `document.querySelectorAll("#attempts .row").length`)
	usable(b, "attempts")
	b.Click("#attempts .row:last-child a")
	b.Until("its transcript", `new URLSearchParams(location.search).get("run") && document.getElementById("transcript")?.innerText.includes("I wait.")`)
	y.call("POST", "/v1/runners/"+box+"/drain", `{"resume": true}`)
	b.Button("attempts")
	b.Until("the next attempt, by itself", fmt.Sprintf(`document.querySelectorAll("#attempts .row").length > %d`, had))
	b.See("Side by side")
	b.Until("what both cost, took and changed", `["Cost", "Took", "Changed", "Files", "Report"].every(n =>
		[...document.querySelectorAll(".compare tbody tr")].some(r => r.cells.length === 3 && r.cells[0].innerText === n))`)
	both(b, "two attempts side by side")
	shoot(b, "compare")
	clean(t, b)
}

// A task that failed before it reported says so on its page, and on that of its pull request.
func TestNoReportOfWhatFailed(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	failed, pull := id.New(), id.New()
	repo := y.repoID()
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Task{ID: failed, Account: y.Account, Repo: repo, Title: "Alpha", Status: "failed"},
			seed.Pull{ID: pull, Account: y.Account, Repo: repo, Title: "Gamma", State: "closed", Task: &failed})
	})
	b := y.open(1440, 900)
	for _, page := range []string{"/ui/tasks/" + failed, "/ui/prs/" + pull} {
		b.Go(page + "?tab=report")
		b.See("There is no report: the task failed before one was written.")
	}
}
