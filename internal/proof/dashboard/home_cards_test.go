//go:build !race

package dashboard_test

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

// A plan that is held and a task that is held wait on Home like all else: each says what
// the one step is, and leaves once it is taken.
func TestHomeHasPlansAndHeldTasks(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	s.plan()
	var repos struct{ Data []struct{ ID string } }
	s.into(&repos, 200, "GET", "/v1/repos", "")
	held := id.New()
	s.Write(s.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Task{ID: held, Account: s.Account, Repo: repos.Data[0].ID, Title: "Cannot go on", Status: "held",
			Failure: "agent_error", Why: "It ended in the middle."})
	})
	b := s.enter(1440, 900)
	b.Complaints()
	is(b, waits, "2")
	b.See("4 pull requests")
	b.See("It ended in the middle.")
	usable(b, "Home with a plan and a held task")
	narrow(t, b)

	at := func(title string) {
		t.Helper()
		browser.Eval[any](b, `[...document.querySelectorAll("li[data-id]")].find(e => e.querySelector("strong").innerText === `+text(title)+`).focus()`)
		is(b, atCard, title)
	}
	at("Add a name")
	b.Press("a")
	b.See("Approved. It begins.")
	b.Until("the plan has left", `!`+deck+`.includes("Add a name")`)
	is(b, waits, "1")
	at("Cannot go on")
	b.Press("k", "a") // at once after the first "a", but meant for this one
	b.See("Queued again.")
	b.See("Nothing waits for you.")
	is(b, waits, "0")
	patience.Until(s.T, "it is queued", func() bool {
		var task struct{ Status string }
		s.into(&task, 200, "GET", "/v1/tasks/"+held, "")
		return task.Status == "pending"
	})
	clean(t, b)
}
