package plan

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/seed"
)

// TestAPlanFollowsItsTasks holds that a plan goes from held to done by itself
// as its tasks merge.
func TestAPlanFollowsItsTasks(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.draw(true, nil, []int{0}, []int{0, 1})
		want := func(status Status, bucket Bucket, merged, held int64, groups ...string) {
			t.Helper()
			p := f.plan(id)
			var got []string
			for _, g := range p.Groups {
				got = append(got, string(g.Status))
			}
			if p.Status != status || p.Bucket != bucket || p.Merged != merged || p.HeldCount != held || p.Total != 3 ||
				!slices.Equal(got, groups) {
				f.t.Fatalf("the plan is %s (%s), %d of %d merged, %d held, %v; want %s (%s), %d merged, %d held, %v",
					p.Status, p.Bucket, p.Merged, p.Total, p.HeldCount, got, status, bucket, merged, held, groups)
			}
		}
		want(Held, BucketHeld, 0, 3, Held, Held, Held)
		tasks := texts(f.call("POST", "/v1/plans/"+id+"/approve", nil, 200)["task_ids"])
		want(Running, BucketActive, 0, 0, Ready, Waiting, Waiting)
		f.run(tasks[0])
		want(Running, BucketActive, 0, 0, Running, Waiting, Waiting)
		f.change(tasks[0], func(tx *db.Tx, t *task.Row) error { return f.Tasks.Hold(tx, t, task.Blocked, "A key is missing.") })
		want(Running, BucketStalled, 0, 1, Held, Waiting, Waiting)
		f.change(tasks[0], f.Tasks.Release)
		f.merge(tasks[0])
		want(Running, BucketActive, 1, 0, Done, Ready, Waiting)
		f.fail(tasks[1])
		want(Failed, BucketStalled, 1, 0, Done, Failed, Failed)
		f.change(tasks[1], func(tx *db.Tx, t *task.Row) error { return nil })
		if p := f.plan(id); !p.LastActivityAt.After(p.CreatedAt) {
			f.t.Error("nothing seems to have happened")
		}
		if n := f.audits(id, "plan.approved"); n != 1 {
			f.t.Errorf("%d audit rows of one approval", n)
		}
	})
}

// TestApprovedOnce holds that concurrent approvals mint the tasks once.
func TestApprovedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.draw(true, nil, []int{0}, []int{1}, []int{0, 2})
		answers := make([]object, 6)
		var g sync.WaitGroup
		for i := range answers {
			g.Go(func() { answers[i] = f.call("POST", "/v1/plans/"+id+"/approve", nil, 200) })
		}
		g.Wait()
		fresh := 0
		for _, a := range answers {
			if a["kind"] == "approved" {
				fresh++
			}
			if got, want := texts(a["task_ids"]), texts(answers[0]["task_ids"]); len(got) != 4 || !slices.Equal(got, want) {
				f.t.Errorf("answers name %v and %v", got, want)
			}
		}
		if fresh != 1 {
			f.t.Errorf("%d approvals minted", fresh)
		}
	})
}

// TestExecutedOnce holds that a directory and revision make one plan, however
// many calls come at once.
func TestExecutedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.commit("web", map[string]string{"p/overview.md": "# P", "p/01-a.md": "# A",
			"p/02-b.md": "---\ndepends_on: [01-a]\nrepo: acme/api\n---\n# B", "p/status.yml": "units: {01-a: done}"})
		answers := make([]object, 6)
		var g sync.WaitGroup
		for i := range answers {
			g.Go(func() { answers[i] = f.call("POST", "/v1/plans/execute", object{"repo": "acme/web", "dir": "p"}, 202) })
		}
		g.Wait()
		made := 0
		for _, a := range answers {
			if a["kind"] == "created" {
				made++
			}
			if a["plan_id"] != answers[0]["plan_id"] {
				f.t.Errorf("two plans: %v, %v", a, answers[0])
			}
		}
		p := f.plan(answers[0]["plan_id"].(string))
		if made != 1 || p.Total != 2 || p.Groups[0].Repo != "acme/api" || p.Groups[0].Status != Ready || p.Groups[1].Slug != "status" ||
			p.Groups[1].Repo != "acme/web" {
			f.t.Errorf("%d made: %+v", made, p)
		}
		// The list knows each repository that a plan works in.
		for _, name := range []string{"acme/web", "acme/api"} {
			listed := f.call("GET", "/v1/plans?repo="+name, nil, 200)
			rows, _ := listed["data"].([]any)
			if len(rows) != 1 || !slices.Equal(texts(listed["repos"]), []string{"acme/api", "acme/web"}) {
				f.t.Errorf("of %s are listed %v, of the repositories %v", name, listed["data"], listed["repos"])
			}
		}
		second := f.call("POST", "/v1/plans/execute", object{"repo": "acme/web", "dir": "p", "revision": 2}, 202)
		if second["kind"] != "created" || second["plan_id"] == p.ID {
			f.t.Errorf("a revision is a plan of its own: %v", second)
		}
		if newest := f.call("POST", "/v1/plans/execute", object{"repo": "acme/web", "dir": "p"},
			202); newest["plan_id"] != second["plan_id"] {
			f.t.Errorf("without a revision it is the newest: %v", newest)
		}
		for _, dir := range []string{"", ".", "/p", "p/", "./p", "p/..", "a//b", `p\q`, ".git", "p\n"} {
			f.refused("POST", "/v1/plans/execute", object{"repo": "acme/web", "dir": dir}, 422, "plan-path")
		}
		f.seats = 0
		f.refused("POST", "/v1/plans/execute", object{"repo": "acme/web", "dir": "p", "revision": 3}, 403, "no-capacity")
		f.seats = 2
		f.queueCap(1)
		if p := f.refused("POST", "/v1/plans/execute", object{"repo": "acme/web", "dir": "p", "revision": 3}, 429,
			"queue-full"); p["retry_after"] == nil {
			f.t.Errorf("not said when to come again: %v", p)
		}
	})
}

// TestFiledAgain holds that a held plan is corrected by filing it again, if the
// caller names the plan that is there.
func TestFiledAgain(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.commit("web", map[string]string{"README": "a\nb\n"})
		body := func(more object) object {
			b := object{"repo": "acme/web", "slug": "x", "dry_run": true, "documents": object{"overview.md": "# X", "01-a.md": "# A",
				"02-b.md": "# B"}}
			for k, v := range more {
				b[k] = v
			}
			return b
		}
		first := f.call("POST", "/v1/plans/file", body(nil), 202)["plan_id"]
		other := object{"overview.md": "# X", "01-a.md": "# A, better"}
		if p := f.refused("POST", "/v1/plans/file", body(object{"documents": other}), 422, "plan-stale"); p["plan_id"] != first {
			f.t.Errorf("it is not said which plan is there: %v", p)
		}
		second := f.call("POST", "/v1/plans/file", body(object{"documents": other, "replaces": first}), 202)
		if second["kind"] != "created" || second["revision"] != 2.0 {
			f.t.Errorf("%v", second)
		}
		if p := f.plan(first.(string)); p.Status != Cancelled {
			f.t.Errorf("the plan that was replaced is %s", p.Status)
		}
		f.refused("POST", "/v1/plans/file",
			body(object{"documents": object{"overview.md": "# X", "01-c.md": "# C"}, "replaces": first}), 422, "plan-stale")
		if files := f.files("plans/x"); !slices.Equal(files, []string{"01-a.md", "overview.md", "status.yml"}) {
			f.t.Errorf("the directory holds %v", files)
		}
		// Another person changes the documents meanwhile.
		f.commit("web", map[string]string{"plans/x/01-a.md": "# A, by hand"})
		f.refused("POST", "/v1/plans/file", body(object{"documents": object{"overview.md": "# X", "01-c.md": "# C"},
			"replaces": second["plan_id"]}), 422, "plan-stale")
		// A plan whose status file says done stays done.
		f.commit("web", map[string]string{"plans/y/overview.md": "# Y", "plans/y/01-a.md": "# A", "plans/y/status.yml": "status: done"})
		f.refused("POST", "/v1/plans/file", body(object{"slug": "y"}), 422, "plan-closed")
		f.refused("POST", "/v1/plans/execute", object{"repo": "acme/web", "dir": "plans/y"}, 422, "plan-invalid")
		// Concurrent equal calls make one plan.
		answers := make([]object, 4)
		var g sync.WaitGroup
		for i := range answers {
			g.Go(func() { answers[i] = f.call("POST", "/v1/plans/file", body(object{"slug": "twins"}), 202) })
		}
		g.Wait()
		for _, a := range answers {
			if a["plan_id"] != answers[0]["plan_id"] {
				f.t.Errorf("twins are %v and %v", a, answers[0])
			}
		}
		// A file in the place of the directory, and a repository without a
		// commit.
		f.commit("web", map[string]string{"plans/file": "x"})
		f.refused("POST", "/v1/plans/file", body(object{"slug": "file"}), 422, "plan-invalid")
	})
}

// TestCancelled holds that the tasks of a cancelled plan stop, and that tasks
// that look after an open pull request go on.
func TestCancelled(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.draw(false, nil, []int{0}, []int{1})
		var tasks []string
		for _, g := range f.plan(id).Groups {
			tasks = append(tasks, g.Tasks[0].ID)
		}
		outside := f.newTask(tasks[2])
		f.merge(tasks[0])
		f.run(tasks[1])
		review, closed := f.newTask(), f.newTask()
		f.openPRs["pr"] = true
		f.write(func(tx *db.Tx) error {
			for task, pr := range map[string]string{review: "pr", closed: "gone"} {
				if _, err := seed.SetReview.Exec(tx, task, pr); err != nil {
					return err
				}
			}
			_, err := seed.SetPull.Exec(tx, tasks[1], "pr")
			if err == nil {
				_, err = seed.SetPull.Exec(tx, tasks[0], "gone")
			}
			return err
		})
		a := f.call("POST", "/v1/plans/"+id+"/cancel", nil, 200)
		stopped := texts(a["stopped"])
		slices.Sort(stopped)
		want := []string{tasks[1], tasks[2], closed}
		slices.Sort(want)
		if !slices.Equal(stopped, want) || !slices.Equal(texts(a["already_finished"]), tasks[:1]) ||
			!slices.Equal(texts(a["reviews_not_stopped"]), []string{review}) {
			f.t.Errorf("%v", a)
		}
		for i, want := range []task.Status{task.Completed, task.Cancelled, task.Cancelled} {
			if got := f.task(tasks[i]).Status; got != want {
				f.t.Errorf("task %d is %s, want %s", i, got, want)
			}
		}
		if got := f.task(outside); got.Status != task.Failed {
			f.t.Errorf("what waits for a cancelled task is %s", got.Status)
		}
		if p := f.plan(id); p.Status != Cancelled || p.Bucket != BucketCancelled || p.Groups[0].Status != Done ||
			p.Groups[2].Status != Stopped {
			f.t.Errorf("%+v", p)
		}
		f.refused("POST", "/v1/plans/"+id+"/approve", nil, 409, "plan-stopped")
		done := f.draw(false, nil)
		f.merge(f.plan(done).Groups[0].Tasks[0].ID)
		if a := f.call("POST", "/v1/plans/"+done+"/cancel", nil, 200); a["status"] != Done {
			f.t.Errorf("a plan that is done: %v", a)
		}
	})
}

// TestReplacedInFlight holds that a task that takes a place in a plan while a
// box works on it waits like any other once it is back in the queue, and ends
// if a task for which it waits has failed.
func TestReplacedInFlight(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		planID := f.draw(false, nil, []int{0})
		groups := f.plan(planID).Groups
		first := groups[0].Tasks[0].ID
		var tasks []string
		for range 2 {
			tasks = append(tasks, f.newTask())
			f.run(tasks[len(tasks)-1])
		}
		f.call("POST", "/v1/plans/"+planID+"/regroup", object{"group_ids": []string{groups[1].ID}, "task_ids": tasks}, 200)
		f.change(tasks[0], func(tx *db.Tx, t *task.Row) error { return f.Tasks.Requeue(tx, t, "drained") })
		if got := f.task(tasks[0]); got.Status != task.Pending || got.WaitingDeps != 1 {
			f.t.Errorf("%s, waits for %d", got.Status, got.WaitingDeps)
		}
		f.fail(first)
		f.change(tasks[1], func(tx *db.Tx, t *task.Row) error { return f.Tasks.AttemptFailed(tx, t, task.AgentError, "By a test.") })
		for _, id := range tasks {
			if got := f.task(id); got.Status != task.Failed || *got.FailureKind != task.DependencyFailed {
				f.t.Errorf("%s for %v", got.Status, got.FailureKind)
			}
		}
	})
}

// TestDrafted holds that a scout's report becomes the plan, or the plan's note
// says why it cannot.
func TestDrafted(t *testing.T) {
	t.Parallel()
	const good = "It can be done.\n\n```plan overview.md\n# All of it\n```\n~~~plan 01-a.md\n# First\n```\ncode\n```\n~~~\n```plan " +
		"02-b.md\n---\ndepends_on: [01-a]\n---\n# Second\n```\n"
	each(t, func(f *fixture) {
		f.live()
		begin := func(hold bool) (plan, scout string) {
			body := object{"repo": "acme/web", "ask": "Do it.\nAll of it."}
			if hold {
				body["require_approval"] = true
			}
			a := f.call("POST", "/v1/plans", body, 202)
			if a["queue_position"] == nil || a["run_id"] != nil || a["queue_depth_cap"] != float64(task.Uncapped) {
				f.t.Errorf("%v", a)
			}
			return a["plan_id"].(string), a["task_id"].(string)
		}
		plan, scout := begin(true)
		if p := f.plan(plan); p.Status != Drafting || p.Bucket != BucketActive || p.Title != "Do it." ||
			f.task(scout).Kind != task.KindScout {
			f.t.Errorf("%+v", p)
		}
		f.refused("POST", "/v1/plans/"+plan+"/approve", nil, 409, "plan-drafting")
		f.reports[scout] = good
		f.merge(scout)
		p := f.plan(plan)
		if p.Status != Held || p.Title != "First" || len(p.Groups) != 2 || p.Groups[1].Upstream[0].GroupID != p.Groups[0].ID ||
			p.Note != nil {
			f.t.Errorf("%+v", p)
		}
		f.call("POST", "/v1/plans/"+plan+"/approve", nil, 200)
		if !strings.Contains(f.task(f.plan(plan).Groups[0].Tasks[0].ID).Problem, "# First\n```\ncode\n```") {
			f.t.Error("a document lost its own fence")
		}

		plan, scout = begin(false)
		f.reports[scout] = good
		f.merge(scout)
		if p := f.plan(plan); p.Status != Running || p.Groups[0].Status != Ready || p.Groups[1].Status != Waiting {
			f.t.Errorf("%+v", p)
		}

		plan, scout = begin(false)
		f.reports[scout] = "```plan overview.md\n# All of it\n```\n```plan 01-a.md\n---\nrepo: rival/web\n---\n# First\n```\n"
		f.merge(scout)
		if p := f.plan(plan); p.Status != Failed || p.Note == nil || !strings.Contains(*p.Note, "no repository rival/web") {
			f.t.Errorf("%+v", p)
		}

		plan, scout = begin(false)
		f.fail(scout)
		if p := f.plan(plan); p.Status != Failed || p.Bucket != BucketStalled {
			f.t.Errorf("%+v", p)
		}
		f.reports[scout] = good
		f.seats = 0
		f.change(scout, func(tx *db.Tx, t *task.Row) error { // as a redispatch does
			t.FailureKind = ptr(task.DependencyFailed)
			_, err := f.Tasks.Relink(tx, t, nil, nil)
			return err
		})
		if p := f.plan(plan); p.Status != Drafting || p.Note != nil {
			f.t.Errorf("%+v", p)
		}
		f.merge(scout)
		if p := f.plan(plan); p.Status != Held || p.Note == nil || !strings.Contains(*p.Note, "no AI developers") {
			f.t.Errorf("what was refused holds the plan: %+v", p)
		}
	})
}

func ptr[T any](v T) *T { return &v }

func TestAuthorRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, db.SQLite)
	for what, units := range map[string][]Unit{
		"none": nil, "what comes later": {{Slug: "a", DependsOn: map[string]string{"b": Code}}, {Slug: "b"}},
		"itself": {{Slug: "a", DependsOn: map[string]string{"a": Code}}}, "twice": {{Slug: "a"}, {Slug: "a"}},
		"an edge of no kind": {{Slug: "a"}, {Slug: "b", DependsOn: map[string]string{"a": "x"}}},
	} {
		err := f.DB.Write(t.Context(), func(tx *db.Tx) error {
			_, err := f.Author(tx, Draft{Units: units})
			return err
		})
		if !fault.IsKind(err, fault.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestAPlanThatWaitsForPeopleIsStalled holds that a plan whose open groups all
// wait for people is stalled, in whatever status their tasks are.
func TestAPlanThatWaitsForPeopleIsStalled(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.draw(true, nil, []int{0})
		bucket := func(want Bucket) {
			t.Helper()
			if p := f.plan(id); p.Status != Running || p.Bucket != want {
				f.t.Errorf("the plan is %s (%s), want it %s", p.Status, p.Bucket, want)
			}
		}
		tasks := texts(f.call("POST", "/v1/plans/"+id+"/approve", nil, 200)["task_ids"])
		f.run(tasks[0])
		bucket(BucketActive)
		f.change(tasks[0], func(tx *db.Tx, t *task.Row) error { return f.Tasks.SetStuck(tx, t, true) })
		bucket(BucketStalled)
		f.change(tasks[0], func(tx *db.Tx, t *task.Row) error { return f.Tasks.SetStuck(tx, t, false) })
		bucket(BucketActive)
		f.change(tasks[0], func(tx *db.Tx, t *task.Row) error {
			if err := seed.Add(tx, seed.Pull{ID: "pr", Account: "acme", Repo: "repo-web"}); err != nil {
				return err
			}
			return f.Tasks.ToAwaitingCI(tx, t, "pr")
		})
		bucket(BucketActive)
		f.change(tasks[0], func(tx *db.Tx, t *task.Row) error {
			if err := f.Tasks.ToMergeable(tx, t); err != nil {
				return err
			}
			err := seed.Add(tx, seed.Action{ID: "ask", Account: "acme", Pull: "pr", Kind: "merge", SHA: "sha"})
			return err
		})
		bucket(BucketStalled)
		f.write(func(tx *db.Tx) error {
			row, _, err := task.Get(tx, "acme", tasks[1])
			if err != nil {
				return err
			}
			in, err := InPlan(tx, &row)
			groups := f.plan(id).Groups
			if err != nil || in.ID != id || *in.GroupID != groups[1].ID || *in.Slug != "01-part" ||
				!slices.Equal(in.Upstream, []string{groups[0].ID}) || len(in.Downstream) != 0 {
				f.t.Errorf("the task is in its plan %+v, %v", in, err)
			}
			return nil
		})
	})
}

// TestWhoAskedForAPlan holds that the requester of a plan is the requester of
// its tasks, and that the person who approves a plan without one becomes it.
func TestWhoAskedForAPlan(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		of := func(ids []string) (out []string) {
			for _, id := range ids {
				if by := f.task(id).RequestedBy; by != nil {
					out = append(out, *by)
				}
			}
			return out
		}
		id := f.draw(true, nil, []int{0}) // as triage does for an ask without a filer
		if p := f.plan(id); p.RequestedBy != nil {
			f.t.Errorf("%s asked for it", *p.RequestedBy)
		}
		tasks := texts(f.call("POST", "/v1/plans/"+id+"/approve", nil, 200)["task_ids"])
		if p := f.plan(id); p.RequestedBy == nil || *p.RequestedBy != "ann" || !slices.Equal(of(tasks), []string{"ann", "ann"}) {
			f.t.Errorf("approved by ann: asked for by %v, its tasks by %v", p.RequestedBy, of(tasks))
		}
		if none := f.plan(f.draw(false, nil)); none.RequestedBy != nil || len(of([]string{none.Groups[0].Tasks[0].ID})) != 0 {
			f.t.Errorf("nobody's plan is %+v", none.Plan)
		}
	})
}
