package overview

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

var readsAll = policy.Actor{AccountID: "acme", UserID: "ada", Scopes: policy.Scopes(policy.ReadTasks, policy.ReadPRs, policy.ReadRunners)}

func (y *yard) healthOf(a policy.Actor, in healthIn) Health {
	y.t.Helper()
	in.Owner, in.Repo = "acme", "web"
	out, err := y.health(policy.With(db.WithAccount(y.t.Context(), "acme"), a), in)
	if err != nil {
		y.t.Fatal(err)
	}
	return out
}

func (h Health) slo(t *testing.T, id string) SLO {
	t.Helper()
	i := slices.IndexFunc(h.SLOs, func(s SLO) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("%s is not among %+v", id, h.SLOs)
	}
	return h.SLOs[i]
}

func (y *yard) is(h Health, id string, n, d int64, status Grade) {
	y.t.Helper()
	if s := h.slo(y.t, id); s.N != n || s.D != d || s.Status != status {
		y.t.Errorf("%s: %d of %d is %s, want %d of %d, %s", id, s.N, s.D, s.Status, n, d, status)
	}
}

func (y *yard) do(s db.Stmt, args ...any) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { _, err := s.Exec(tx, args...); return err })
}

// ran is a run of a task of its own, which began and ended so many hours ago.
func (y *yard) ran(id string, began, ended float64, outcome, kind string) {
	y.t.Helper()
	at := func(hours float64) int64 { return y.now().Add(-time.Duration(hours * float64(time.Hour))).UnixMicro() }
	y.add(seed.Task{ID: "of-" + id, Account: "acme", Repo: "web", Status: "running"},
		seed.Run{ID: id, Account: "acme", Task: "of-" + id, Repo: "web", Box: "box-" + id})
	y.do(seed.RunBegan, id, at(began))
	if outcome != "" {
		y.do(seed.RunEnds, id, at(ended), outcome)
	}
	if kind != "" {
		y.do(seed.RunLost, id, kind)
	}
}

// A repository in which nothing happened has no data, and no bottleneck: nothing is called
// good or bad that nobody has seen.
func TestHealthOfNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		h := y.healthOf(readsAll, healthIn{})
		if h.Status != gradeNoData || h.Bottleneck != nil || len(h.SLOs) != len(objectives()) || h.WindowDays != 7 {
			t.Errorf("%+v", h)
		}
		for _, s := range h.SLOs {
			if s.Status != gradeNoData || s.N != 0 || s.D != 0 || s.To.Sub(s.From) != 7*24*time.Hour {
				t.Errorf("%+v", s)
			}
		}
		if k := h.KeyPool; k.Status != gradeNoData || *k.N != 0 || *k.D != 0 || k.Missing != "" {
			t.Errorf("%+v", k)
		}
	})
}

// A run counts in the window in which it ended, also if it began before; one that goes on,
// was stopped from outside or ended before the window does not.
func TestRunsOverTheEdge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.ran("straddles", 8*24, 6*24, "succeeded", "")
		y.ran("before", 9*24, 7*24+1, "failed", "agent_error")
		y.ran("goes on", 1, 0, "", "")
		y.ran("stopped", 2, 1, "interrupted", "")
		y.ran("lost", 2, 1, "lost", "box_lost")
		y.is(y.healthOf(readsAll, healthIn{}), "runs_succeed", 1, 2, gradeWarn)
		y.is(y.healthOf(readsAll, healthIn{Days: 8}), "runs_succeed", 1, 3, gradeWarn)
		y.is(y.healthOf(readsAll, healthIn{Days: 1}), "runs_succeed", 0, 1, gradeWarn)
	})
}

// A window is so many times 24 hours up to now, whatever the zone of the server and whether its
// clocks were put forward in between.
func TestWindowHasNoZone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		y.clock.Store(time.Date(2026, 3, 30, 0, 30, 0, 0, berlin).UnixMicro()) // a day after the change
		y.ran("in", 48, 47.9, "succeeded", "")
		y.ran("out", 49, 48.1, "succeeded", "")
		h := y.healthOf(readsAll, healthIn{Days: 2})
		y.is(h, "runs_succeed", 1, 1, gradeOK)
		if s := h.SLOs[0]; s.From.Location() != time.UTC || s.To.Sub(s.From) != 48*time.Hour {
			t.Errorf("%v to %v", s.From, s.To)
		}
	})
}

// Few say little: what would be bad of many is a warning of four, and the worst of all is
// named with what to do about it.
func TestTinyDenominators(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		for i := range 4 {
			y.ran(fmt.Sprint("r", i), 3, 2, "failed", "provider_auth")
		}
		at := y.now().UnixMicro() - 1
		for i := range 20 {
			status := []string{"failed", "passed"}[i/10]
			y.add(seed.Check{ID: fmt.Sprint("c", i), Account: "acme", Repo: "web", Status: status, Finished: at})
		}
		h := y.healthOf(readsAll, healthIn{})
		y.is(h, "runs_succeed", 0, 4, gradeWarn)
		y.is(h, "checks_pass", 10, 20, gradeBad)
		b := h.Bottleneck
		if b == nil || b.ID != "checks_pass" || b.N != 10 || b.D != 20 || b.Capability != "ci.flakes" || h.Status != gradeBad {
			t.Errorf("%+v, %+v", h.Status, b)
		}
		y.ran("r4", 3, 2, "failed", "agent_error")
		h = y.healthOf(readsAll, healthIn{})
		y.is(h, "runs_succeed", 0, 5, gradeBad)
		b = h.Bottleneck
		if b == nil || b.ID != "runs_succeed" || b.Capability != "billing.keys_list" || !strings.HasSuffix(b.Why, "provider_auth (4)") {
			t.Errorf("%+v", b)
		}
	})
}

// A pull request that was reverted later no longer stands, also where the revert was merged
// after the others of the window; a revert of what was merged before takes nothing from it.
func TestRevertedLater(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		task := "task"
		filed := y.now().Add(-6*24*time.Hour - 12*time.Hour).UnixMicro()
		y.add(seed.Task{ID: task, Account: "acme", Repo: "web", Status: "merged", Created: filed},
			y.merged(1, 6, seed.Pull{Title: "Say when", Task: &task, Merge: sha}),
			y.merged(2, 5, seed.Pull{Title: "Say where"}),
			y.merged(3, 9, seed.Pull{Title: "Too old"}),
			y.merged(4, 4, seed.Pull{Title: `Revert "Too old"`, Author: "human"}))
		h := y.healthOf(readsAll, healthIn{})
		y.is(h, "merges_stand", 2, 2, gradeOK)
		y.is(h, "merged_in_a_day", 1, 1, gradeOK)
		y.is(h, "prs_merged", 3, 3, gradeOK)
		y.add(y.merged(5, 0.001, seed.Pull{Title: "Undo", Body: "This reverts commit " + sha + ".", Author: "human"}))
		y.is(y.healthOf(readsAll, healthIn{}), "merges_stand", 1, 2, gradeWarn)
		y.is(y.healthOf(readsAll, healthIn{Days: 9}), "merges_stand", 1, 3, gradeWarn)
	})
}

// Questions: what people answered within a day, and what has waited for longer. The policy's own
// answers are none, and what was asked an hour ago is not late.
func TestAnswers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		ada, byPolicy := "user:ada", "policy"
		ago := func(hours int) int64 { return y.now().Add(-time.Duration(hours) * time.Hour).UnixMicro() }
		for i, q := range []struct {
			asked, decided int
			by             *string
		}{{30, 10, &ada}, {60, 10, &ada}, {30, 29, &byPolicy}, {30, -1, nil}, {1, -1, nil}, {400, 200, &ada}} {
			id := fmt.Sprint("q", i)
			a := seed.Action{ID: id, Account: "acme", Pull: "pr" + id, Kind: "merge", By: q.by}
			if q.by != nil {
				at := ago(q.decided)
				a.State, a.Decided = "applied", &at
			}
			y.add(seed.Pull{ID: "pr" + id, Account: "acme", Repo: "web", Number: i + 1}, a)
			y.do(seed.AskAt, id, ago(q.asked))
		}
		y.is(y.healthOf(readsAll, healthIn{}), "answered_in_a_day", 1, 3, gradeWarn)
	})
}

// The queue is that of now: what a box could take, and how much of it has waited for too long.
func TestQueueMoves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		for i := range 6 {
			id := fmt.Sprint("t", i)
			y.add(seed.Task{ID: id, Account: "acme", Repo: "web"}, seed.Task{ID: "other" + id, Account: "acme", Repo: "api"})
			y.do(seed.QueueTask, id, y.now().Add(-time.Duration(i)*30*time.Minute).UnixMicro())
		}
		h := y.healthOf(readsAll, healthIn{})
		y.is(h, "queue_moves", 3, 6, gradeBad)
		if h.Bottleneck == nil || h.Bottleneck.Capability != "box.utilization" {
			t.Errorf("%+v", h.Bottleneck)
		}
	})
}

// The key pool is shown to whoever reads boxes; whoever does not learns nothing of it, not even
// by the grade of the whole.
func TestKeyPool(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.do(seed.AddKey, "one", "acme", "failing")
		y.do(seed.AddKey, "theirs", "rival", "ok")
		h := y.healthOf(readsAll, healthIn{})
		if k := h.KeyPool; k.Status != gradeBad || *k.N != 0 || *k.D != 1 || h.Status != gradeBad {
			t.Errorf("%+v", k)
		}
		if b := h.Bottleneck; b == nil || b.ID != "key_pool" {
			t.Errorf("%+v", b)
		}
		less := readsAll
		less.Scopes = policy.Scopes(policy.ReadTasks, policy.ReadPRs)
		h = y.healthOf(less, healthIn{})
		if h.KeyPool != (PoolHealth{Status: gradeUnknown, Missing: "read:runners"}) || h.Status != gradeNoData || h.Bottleneck != nil {
			t.Errorf("%+v", h)
		}
		y.do(seed.AddKey, "two", "acme", "unverified")
		if k := y.healthOf(readsAll, healthIn{}).KeyPool; k.Status != gradeWarn || *k.N != 1 || *k.D != 2 {
			t.Errorf("%+v", k)
		}
	})
}
