package queue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/seed"
)

// TestWaitingForPeople holds that a task which waits for one that only a person
// sets going again says so, however far it is from it, with the call that does.
func TestWaitingForPeople(t *testing.T) {
	t.Parallel()
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
				if h := h.(object); h["reason"] == task.HoldPerson {
					hold = h
				}
			}
			if !slices.Contains(reasons(got), task.HoldDependencies) || got["stuck"] != stuck {
				f.t.Errorf("task %v", got)
			}
			return hold
		}
		clear := func(id string, stuck bool, capability, arg, value string) {
			f.t.Helper()
			h := person(id, stuck)
			if h == nil || h["clear"].(object)["capability"] != capability || h["clear"].(object)["args"].(object)[arg] != value ||
				h["blocking"] != true {
				f.t.Errorf("hold %v, want %s %s", h, capability, value)
			}
			for _, s := range f.call("acme", "GET", "/v1/queue/status", nil, 200)["data"].([]any) {
				s := s.(object)
				if s["reason"] == task.HoldPerson && s["count"] == 2.0 && len(s["task_ids"].([]any)) == 2 &&
					s["clears_when"] == h["clears_when"] {
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
		f.change(first, func(tx *db.Tx, t *task.Row) error { return f.MarkRunning(tx, t) })
		f.change(first, func(tx *db.Tx, t *task.Row) error { return f.SetStuck(tx, t, true) })
		clear(second, false, "task.redispatch", "id", first)
		f.change(first, func(tx *db.Tx, t *task.Row) error { return f.SetStuck(tx, t, false) })
		nobody()
		f.change(first, func(tx *db.Tx, t *task.Row) error {
			return f.AttemptFailed(tx, t, task.BudgetExhausted, "It is spent.")
		})
		clear(third, false, "task.budget_set", "id", first)
		f.pass(time.Hour + time.Minute)
		clear(third, true, "task.budget_set", "id", first)
		f.change(first, func(tx *db.Tx, t *task.Row) error { return f.Release(tx, t) })
		nobody()
		f.change(first, func(tx *db.Tx, t *task.Row) error {
			if err := f.MarkClaimed(tx, t, "run", f.box); err != nil {
				return err
			}
			if err := f.MarkRunning(tx, t); err != nil {
				return err
			}
			if err := seed.Add(tx, seed.Pull{ID: "pr", Account: "acme", Repo: "acme-web"}); err != nil {
				return err
			}
			return f.ToAwaitingCI(tx, t, "pr")
		})
		nobody()
		now := time.UnixMicro(f.clock.Load())
		f.others.waited = map[string]task.PullWait{"pr": {Since: now, Until: now.Add(time.Minute)}}
		if h := f.get(first)["holds"].([]any); len(h) != 1 || h[0].(object)["reason"] != task.HoldRate || h[0].(object)["clear"] != nil {
			f.t.Errorf("while its host takes no calls: %v", h)
		}
		nobody() // no person ends that
		f.others.waited = map[string]task.PullWait{"pr": {Since: now, Full: true}}
		if h := f.get(first)["holds"].([]any); len(h) != 1 || h[0].(object)["reason"] != task.HoldQueue || h[0].(object)["clear"] != nil {
			f.t.Errorf("while there is no room for its repair: %v", h)
		}
		nobody()
		f.others.waited = nil
		needs := func(why string) {
			f.t.Helper()
			f.write("acme", func(tx *db.Tx) error { _, err := seed.SetNeeds.Exec(tx, "pr", why); return err })
			if got := slices.Contains(reasons(f.get(first)), task.HoldNeeds); got != (why != "") {
				f.t.Errorf("it needs %q, and says so: %v", why, got)
			}
		}
		f.others.needs = map[string]task.PullNeed{"pr": {Since: time.UnixMicro(f.clock.Load()), ClearsWhen: "it is done",
			Clear: &task.Clear{Capability: "pr.approve_pending", Args: map[string]string{"id": "pr", "head_sha": "abc"}}}}
		needs("asked")
		clear(third, false, "pr.approve_pending", "head_sha", "abc")
		// Whoever reads of it is told the pull request and the call.
		words := "it is done (pr.approve_pending of the pull request pr)"
		for _, id := range []string{first, third} {
			if !slices.ContainsFunc(f.get(id)["holds"].([]any),
				func(h any) bool { return strings.HasSuffix(h.(object)["clears_when"].(string), words) }) {
				f.t.Errorf("no hold says %q: %v", words, f.get(id)["holds"])
			}
		}
		p := f.refused("POST", "/v1/tasks/"+first+"/redispatch", nil, 409, "already_shipped")
		if !strings.Contains(p["detail"].(string), words) || p["pr_id"] != "pr" ||
			p["clear"].(object)["capability"] != "pr.approve_pending" {
			f.t.Errorf("a redispatch is refused with %v", p)
		}
		f.others.needs = nil
		needs("")
		nobody()
		if p := f.refused("POST", "/v1/tasks/"+first+"/redispatch", nil, 409, "already_shipped"); p["pr_id"] != "pr" || p["clear"] != nil {
			f.t.Errorf("a redispatch is refused with %v", p)
		}
		f.change(first, func(tx *db.Tx, t *task.Row) error { return f.Stick(tx, t, task.CILadderSpent, "It is spent.") })
		clear(second, false, "pr.rearm_babysit", "id", "pr")

		// What waits for files behind what waits for the person says so, too.
		fourth := f.create(nil)
		f.change(fourth, func(tx *db.Tx, t *task.Row) error {
			return task.HoldBack(tx, f.Service.Hub, t, third, nil)
		})
		if got := f.get(fourth); !slices.Contains(reasons(got), task.HoldConflict) || !slices.Contains(reasons(got), task.HoldPerson) {
			f.t.Errorf("holds %v", got["holds"])
		}
		for _, s := range f.call("acme", "GET", "/v1/queue/status", nil, 200)["data"].([]any) {
			if s := s.(object); s["reason"] == task.HoldPerson && (s["count"] != 3.0 || len(s["task_ids"].([]any)) != 3) {
				f.t.Errorf("the queue says %v", s)
			}
		}
	})
}
