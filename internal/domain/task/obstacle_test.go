package task

import (
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
)

var (
	addPull = db.S(`INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, head_ref, head_sha, base_ref, base_sha, state, author_kind, created_at, updated_at)
		VALUES ('pr', 'acme', 'acme-web', 1, 't', '', 'u', 'h', 'abc', 'main', 'b', 'open', 'agent', 0, 0)`)
	addAction = db.S(`INSERT INTO pull_actions (id, account_id, pr_id, kind, head_sha, state, requested_at, expires_at, due_at) VALUES ('act', 'acme', 'pr', 'merge', 'abc', 'pending', $1, 0, 0)`)
	endAction = db.S(`UPDATE pull_actions SET state = 'skipped'`)
)

// TestWaitingForPeople holds that a task which waits for one that only a person
// sets going again says so, however far it is from it, with the call that does.
func TestWaitingForPeople(t *testing.T) {
	each(t, func(f *fixture) {
		first := f.create(nil)
		second := f.create(object{"depends_on": []string{first}})
		third := f.create(object{"depends_on": []string{second, first}})
		f.create(nil) // which waits for nobody
		f.claim()
		// person is the hold of the task, if it has one, and of the queue.
		person := func(id string, stuck bool) object {
			f.t.Helper()
			got := f.get(id)
			var hold object
			for _, h := range got["holds"].([]any) {
				if h := h.(object); h["reason"] == HoldPerson {
					hold = h
				}
			}
			if !slices.Contains(reasons(got), HoldDependencies) || got["stuck"] != stuck {
				f.t.Errorf("task %v", got)
			}
			return hold
		}
		clear := func(id string, stuck bool, capability, arg, value string) {
			f.t.Helper()
			h := person(id, stuck)
			if h == nil || h["clear"].(object)["capability"] != capability || h["clear"].(object)["args"].(object)[arg] != value || h["blocking"] != true {
				f.t.Errorf("hold %v, want %s %s", h, capability, value)
			}
			for _, s := range f.call("acme", "GET", "/v1/queue/status", nil, 200)["data"].([]any) {
				s := s.(object)
				if s["reason"] == HoldPerson && s["count"] == 2.0 && len(s["task_ids"].([]any)) == 2 && s["clears_when"] == h["clears_when"] {
					return
				}
			}
			f.t.Error("the queue does not say so")
		}
		nobody := func() {
			f.t.Helper()
			for _, id := range []string{second, third} {
				if h := person(id, false); h != nil {
					f.t.Errorf("hold %v", h)
				}
			}
		}
		nobody()
		f.change(first, func(tx *db.Tx, t *Row) error { return f.MarkRunning(tx, t) })
		f.change(first, func(tx *db.Tx, t *Row) error { return f.SetStuck(tx, t, true) })
		clear(second, false, "task.redispatch", "id", first)
		f.change(first, func(tx *db.Tx, t *Row) error { return f.SetStuck(tx, t, false) })
		nobody()
		f.change(first, func(tx *db.Tx, t *Row) error { return f.AttemptFailed(tx, t, BudgetExhausted, "It is spent.") })
		clear(third, false, "task.budget_set", "id", first)
		f.pass(time.Hour + time.Minute)
		clear(third, true, "task.budget_set", "id", first)
		f.change(first, func(tx *db.Tx, t *Row) error { return f.Release(tx, t) })
		nobody()
		f.change(first, func(tx *db.Tx, t *Row) error {
			if err := f.MarkClaimed(tx, t, "run", f.box); err != nil {
				return err
			}
			if err := f.MarkRunning(tx, t); err != nil {
				return err
			}
			if _, err := addPull.Exec(tx); err != nil {
				return err
			}
			return f.ToAwaitingCI(tx, t, "pr")
		})
		nobody()
		f.write("acme", func(tx *db.Tx) error { _, err := addAction.Exec(tx, tx.Now); return err })
		clear(third, false, "pr.approve_pending", "head_sha", "abc")
		f.write("acme", func(tx *db.Tx) error { _, err := endAction.Exec(tx); return err })
		nobody()
		f.change(first, func(tx *db.Tx, t *Row) error { return f.Stick(tx, t, CILadderSpent, "It is spent.") })
		clear(second, false, "pr.rearm_babysit", "id", "pr")
	})
}
