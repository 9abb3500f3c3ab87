package queue

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/seed"
)

// listed are the ids of a list of tasks, sorted.
func (f *fixture) listed(query string) (ids []string) {
	f.t.Helper()
	for path := "/v1/tasks?per_page=3" + query; path != ""; {
		page := f.call("acme", "GET", path, nil, 200)
		for _, row := range page["data"].([]any) {
			ids = append(ids, row.(object)["id"].(string))
		}
		if path = ""; page["next_cursor"] != nil {
			path = "/v1/tasks?cursor=" + page["next_cursor"].(string)
		}
	}
	slices.Sort(ids)
	return ids
}

// agree holds that the filters stuck and waits list exactly the tasks that are shown so,
// and that as many are counted. It returns how many are stuck, and how many wait.
func (f *fixture) agree() (stuck, waiting int) {
	f.t.Helper()
	people := append(task.PersonReasons(), task.Blocked, task.BudgetExhausted)
	wantStuck, wantWaiting := []string(nil), []string(nil)
	for _, id := range f.listed("") {
		shown := f.get(id)
		if shown["stuck"] == true {
			wantStuck = append(wantStuck, id)
		}
		if slices.ContainsFunc(reasons(shown), func(r string) bool { return slices.Contains(people, r) }) ||
			slices.Contains(f.others.parked, id) {
			wantWaiting = append(wantWaiting, id)
		}
	}
	slices.Sort(wantStuck)
	slices.Sort(wantWaiting)
	if got := f.listed("&filter=stuck:true"); !slices.Equal(got, wantStuck) {
		f.t.Errorf("stuck: %q, shown so: %q", got, wantStuck)
	}
	if got := f.listed("&filter=waits:person"); !slices.Equal(got, wantWaiting) {
		f.t.Errorf("wait for people: %q, shown so: %q", got, wantWaiting)
	}
	if err := f.DB.Read(db.WithAccount(f.t.Context(), "acme"), func(tx *db.Tx) error {
		if n, err := f.Stuck(tx); err != nil || int(n) != len(wantStuck) {
			f.t.Errorf("%d stuck, %v, want %d", n, err, len(wantStuck))
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
	return len(wantStuck), len(wantWaiting)
}

// TestFiltersAgree takes tasks through what makes them wait for people.
func TestFiltersAgree(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		step := func(name string, stuck, waiting int) {
			f.t.Helper()
			if s, w := f.agree(); s != stuck || w != waiting {
				f.t.Errorf("%s: %d are stuck and %d wait, want %d and %d", name, s, w, stuck, waiting)
			}
		}
		f.write("acme", func(tx *db.Tx) error {
			return seed.Add(tx, seed.Repo{ID: "acme-api", Account: "acme", Owner: "acme", Name: "api"})
		})
		first := f.create(nil)
		f.create(object{"depends_on": []string{first}})
		f.create(object{"template": "other"}) // whose agent no box has
		f.create(object{"template": "gone"})
		f.create(object{"repo": "acme/api"})
		step("an agent that is not there", 0, 1)
		f.others.gone = "gone"
		step("a template that is gone", 0, 2)
		f.write("", func(tx *db.Tx) error { _, err := seed.SetEnabled.Exec(tx, "acme-api", false); return err })
		step("a repository that is off", 0, 3)
		if f.claim() != first {
			f.t.Fatal("the first was not claimed")
		}
		f.change(first, f.MarkRunning)
		f.pass(time.Hour + time.Minute)
		step("an hour later", 3, 3)
		f.change(first, func(tx *db.Tx, t *task.Row) error { return f.SetStuck(tx, t, true) })
		step("a run that makes no progress, and what waits for it", 4, 4)
		f.pass(time.Hour + time.Minute)
		step("which holds up the other", 5, 4)
		f.others.parked = []string{first}
		step("its run is parked", 5, 5)
		f.others.parked = nil
		f.change(first, func(tx *db.Tx, t *task.Row) error {
			return f.AttemptFailed(tx, t, task.BudgetExhausted, "It is spent.")
		})
		step("its budget is spent", 3, 5)
		f.pass(time.Hour + time.Minute)
		step("for an hour", 5, 5)
		f.change(first, func(tx *db.Tx, t *task.Row) error { return f.Cancel(tx, t) })
		step("it is cancelled, with what waits for it", 3, 3)
		f.write("", func(tx *db.Tx) error { _, err := seed.SetPresence.Exec(tx, "box", "offline"); return err })
		f.create(nil)
		step("no box", 3, 4)
		f.pass(time.Hour + time.Minute)
		step("for an hour", 4, 4)
		f.write("acme", func(tx *db.Tx) error {
			_, err := seed.SetTarget.Exec(tx, "box", "user", "ann")
			return cmp.Or(err, seed.Add(tx, seed.User{ID: "ann"}, seed.Member{Account: "acme", User: "ann", Role: "member"}))
		})
		step("a box of a member, whose own work it takes", 4, 4)
		f.write("", func(tx *db.Tx) error { _, err := seed.SetPresence.Exec(tx, "box", "online"); return err })
		step("and which is back", 3, 3)
		f.write("", func(tx *db.Tx) error { _, err := seed.AskedByNone.Exec(tx, "acme"); return err })
		step("but nobody asked for the work", 4, 4)
	})
}

// TestStuckWithPull holds that a task is stuck whose pull request has waited for a person
// for over an hour.
func TestStuckWithPull(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		f.claim()
		f.change(id, f.MarkRunning)
		since := time.UnixMicro(f.clock.Load())
		f.write("acme", func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Pull{
				ID: "pr-1", Account: "acme", Repo: "acme-web", Number: 1, Needs: "spent", Task: &id,
			}); err != nil {
				return err
			}
			_, err := seed.SetNeedsAt.Exec(tx, "pr-1", since)
			return err
		})
		f.change(id, func(tx *db.Tx, t *task.Row) error { return f.ToAwaitingCI(tx, t, "pr-1") })
		f.others.needs = map[string]task.PullNeed{"pr-1": {Since: since, ClearsWhen: "somebody acts"}}
		if s, w := f.agree(); s != 0 || w != 1 {
			f.t.Errorf("%d stuck, %d wait", s, w)
		}
		f.pass(time.Hour + time.Minute)
		if s, w := f.agree(); s != 1 || w != 1 {
			f.t.Errorf("an hour later %d are stuck, %d wait", s, w)
		}
	})
}
