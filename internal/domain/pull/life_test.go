package pull

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/proof/seed"
)

func (y *yard) abandon(prID, task string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { return y.Abandon(tx, prID, task) })
}

func (y *yard) wantState(prID, want string) (pr Request) {
	y.t.Helper()
	if pr = y.pr(prID); string(pr.State) != want {
		y.t.Errorf("the pull request is %s, want %s", pr.State, want)
	}
	return pr
}

func (y *yard) wantNeed(prID, why, capability string) {
	y.t.Helper()
	switch n := y.pr(prID).NeedsPerson; {
	case n == nil && why == "":
	case n == nil || string(n.Why) != why || n.Since.IsZero(), (n.Capability == nil) != (capability == ""),
		n.Capability != nil && *n.Capability != capability:
		y.t.Errorf("it needs %+v, want %s with %s", n, why, capability)
	}
}

// mergeByHand merges a branch with git and pushes main.
func (y *yard) mergeByHand(branch string) (sha string) {
	y.t.Helper()
	y.git("merge", "--quiet", "--no-ff", "--no-edit", branch)
	y.push("main")
	sha = y.git("rev-parse", "main")
	y.moved("main", sha)
	return sha
}

// deleted reports a push that deleted a branch.
func (y *yard) deleted(branch string) {
	y.t.Helper()
	y.push(":refs/heads/" + branch)
	y.moved(branch, codehost.ZeroSHA)
}

// A pull request ends with its task in any state: its questions and orders are stale, and
// there is no further check, round, question or merge.
func TestCancelledWorkIsOver(t *testing.T) {
	t.Parallel()
	zero, one := 0, 1
	for name, c := range map[string]struct {
		policy string
		before func(y *yard, pr, sha string) // called before the cancel
		after  func(y *yard)
	}{
		"asked":            {"version: 1\n", nil, nil},
		"approved":         {"version: 1\n", func(y *yard, pr, sha string) { y.approve(pr, sha) }, nil},
		"ordered":          {"version: 1\nmerge: {mode: auto}\n", nil, nil},
		"left to people":   {"version: 1\nmerge: {mode: never}\n", nil, nil},
		"a check goes on":  {checked + "merge: {mode: auto}\n", nil, func(y *yard) { y.checked(y.check[0], &zero) }},
		"a check is red":   {checked, nil, func(y *yard) { y.checked(y.check[0], &one) }},
		"it is repaired":   {checked, func(y *yard, _, _ string) { y.checked(y.check[0], &one) }, nil},
		"agents are spent": {checked, func(y *yard, pr, _ string) { y.checked(y.check[0], nil) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, y *yard) {
				y.policy(c.policy)
				sha := y.commit("svc/a", "a", "1\n")
				pr := y.propose("svc/a", sha)
				if c.before != nil {
					c.before(y, pr, sha)
				}
				y.write(func(tx *db.Tx) error { // the check or round
					for _, kind := range []string{"ci", "babysit"} {
						if err := seed.Add(tx, seed.Task{ID: kind, Account: "acme", Repo: y.repo, Kind: kind, Sink: "direct",
							Branch: new(""), Pull: &pr}); err != nil {
							return err
						}
					}
					return nil
				})
				y.abandon(pr, "task-of-another")
				y.wantState(pr, record.Open)
				y.abandon(pr, "task-svc/a")
				rounds, checks, asked := len(y.round), len(y.check), len(y.asked)
				if c.after != nil {
					c.after(y)
				}
				y.pass(0)
				y.moved("svc/a", y.commit("svc/a", "a", "2\n"))
				for range 3 {
					y.pass(time.Hour)
				}
				got := y.wantState(pr, record.Closed)
				if got.ClosedWhy == nil || *got.ClosedWhy != record.ClosedCancelled || got.ClosedAt == nil || got.ClosedBy == nil ||
					got.Babysit.State != record.BabysitOff || got.PendingAction != nil {
					t.Errorf("%+v", got)
				}
				y.wantNeed(pr, "", "")
				if len(y.round) != rounds || len(y.check) != checks || len(y.asked) != asked ||
					slices.Contains([]string{"merged", "closed"}, y.told["task-svc/a"]) {
					t.Errorf("rounds %d, checks %d, escalations %d, told %q", len(y.round), len(y.check), len(y.asked),
						y.told["task-svc/a"])
				}
				if slices.Sort(y.stopped); !slices.Equal(y.stopped, []string{"babysit", "ci"}) {
					t.Errorf("stopped %v", y.stopped)
				}
				if n := len(y.resolved); n != 1 {
					t.Errorf("resolved %d times", n)
				}
			})
		})
	}
}

// A merge that the code host has begun is recorded, although the task was cancelled
// meanwhile. If the merge fails, the pull request is closed.
func TestCancelledDuringTheMerge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {mode: auto}\n")
		merged := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.host.during = func() {
			y.abandon(merged, "task-svc/a")
			y.wantActions(merged, "approved") // so that the merge is repeated if its answer is lost
			y.wantState(merged, record.Open)
		}
		y.pass(0)
		y.wantState(merged, record.Merged)

		failed := y.propose("svc/b", y.commit("svc/b", "b", "1\n"))
		y.host.during = nil
		y.host.merge = fmt.Errorf("the disk is full")
		y.pass(0)
		y.abandon(failed, "task-svc/b")
		y.wantState(failed, record.Open) // the host may have merged
		y.host.merge = nil
		y.pass(time.Hour)
		y.wantState(failed, record.Closed)
		y.wantActions(failed, "stale")
		if _, err := os.Stat(filepath.Join(y.work, "b")); err == nil {
			t.Error("it was merged")
		}
	})
}

// The policy may keep the pull request of a cancelled task open, for people.
func TestKeptPullRequest(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {on_cancel: keep}\n")
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.abandon(pr, "task-svc/a")
		y.pass(time.Hour)
		y.wantState(pr, record.Open)
		y.wantActions(pr, "stale")
		y.call(200, "POST", "/v1/prs/"+pr+"/merge", `{"head_sha": "`+sha+`"}`, nil)
		y.pass(0)
		y.wantState(pr, record.Merged)
	})
}

// A merge that a person made with git is recorded, with the person who pushed it.
func TestMergedByHand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ policy, before string }{
		"asked":          {"version: 1\n", "pending"},
		"declined":       {"version: 1\n", "skipped"},
		"left to people": {"version: 1\nmerge: {mode: never}\n", ""},
		"a check runs":   {checked, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, y *yard) {
				y.policy(c.policy)
				sha := y.commit("svc/a", "a", "1\n")
				pr := y.propose("svc/a", sha)
				if c.before == "skipped" {
					y.call(200, "POST", "/v1/prs/"+pr+"/skip-pending", `{"head_sha": "`+sha+`"}`, nil)
				}
				other := y.propose("svc/b", y.commit("svc/b", "b", "1\n"))
				y.pass(0)
				before := y.wantState(other, record.Open).BaseSHA
				merge := y.mergeByHand("svc/a")
				y.pass(0)
				got := y.wantState(pr, record.Merged)
				if got.MergeSHA == nil || *got.MergeSHA != merge || *got.MergedBy != "user:ann" || got.Mergeable != "clean" {
					t.Errorf("%+v", got)
				}
				y.wantTold("task-svc/a", "merged")
				y.wantTold(pr, "event")
				y.wantNeed(pr, "", "")
				if after := y.wantState(other, record.Open); after.BaseSHA == before || after.BaseSHA != merge ||
					after.Mergeable != "clean" ||
					after.PatchID == nil {
					t.Errorf("the other: %+v", after)
				}
			})
		})
	}
}

// The branch is deleted, comes back, is deleted again after its merge, and is moved to a
// commit that the base has.
func TestClosedAndReopened(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.deleted("svc/a")
		y.pass(0)
		got := y.wantState(pr, record.Closed)
		if *got.ClosedWhy != record.ClosedDeleted || *got.ClosedBy != "user:ann" || got.HeadSHA != sha {
			t.Errorf("%+v", got)
		}
		y.wantTold("task-svc/a", "closed")
		y.wantActions(pr, "stale")
		y.pass(time.Hour)
		var closed struct{ Data []Request }
		y.call(200, "GET", "/v1/repos/acme/web/prs?filter=state:closed", "", &closed)
		if len(closed.Data) != 1 {
			t.Errorf("%d closed", len(closed.Data))
		}

		y.push("svc/a")
		y.gone = true // the task was redispatched
		y.moved("svc/a", sha)
		y.wantState(pr, record.Closed)
		y.gone = false
		y.moved("svc/a", sha)
		if got := y.wantState(pr, record.Open); got.ClosedAt != nil || got.ClosedWhy != nil || got.PendingAction == nil ||
			got.Babysit.State != record.BabysitWatching {
			t.Errorf("%+v", got)
		}
		y.wantTold("task-svc/a", "awaits review")

		y.git("merge", "--quiet", "--no-ff", "--no-edit", "svc/a")
		y.push("main")
		y.deleted("svc/a") // reported first
		y.moved("main", y.git("rev-parse", "main"))
		y.pass(0)
		y.wantState(pr, record.Merged)

		again := y.propose("svc/b", y.commit("svc/b", "b", "1\n"))
		y.pass(0)
		y.git("branch", "--force", "svc/b", "main")
		y.push("svc/b")
		y.moved("svc/b", y.git("rev-parse", "main"))
		y.pass(0)
		if got := y.wantState(again, record.Closed); *got.ClosedWhy != record.ClosedEmpty {
			t.Errorf("%+v", got)
		}
	})
}

// A branch that is moved to an old commit of its base brings nothing to the base, even if
// the base moves in the same push.
func TestResetBranchIsNotMerged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.pass(0)
		old := y.git("rev-parse", "main")
		y.moved("main", y.commit("main", "other", "1\n"))
		y.git("branch", "--force", "svc/a", old)
		y.push("svc/a")
		y.moved("svc/a", old)
		y.pass(0)
		if got := y.wantState(pr, record.Closed); got.ClosedWhy == nil || *got.ClosedWhy != record.ClosedEmpty {
			t.Errorf("%+v", got)
		}
	})
}

// A branch that is deleted while its merge is ordered closes the pull request.
func TestDeletedWhileOrdered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.approve(pr, sha)
		y.deleted("svc/a")
		for range 3 {
			y.pass(0)
		}
		if got := y.wantState(pr, record.Closed); got.ClosedWhy == nil || *got.ClosedWhy != record.ClosedDeleted {
			t.Errorf("%+v", got)
		}
	})
}

// A repository that the code host has lost changes no pull request.
func TestLostRepositoryClosesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		if err := os.Rename(filepath.Join(y.root, "acme", "web.git"), filepath.Join(y.root, "acme", "away.git")); err != nil {
			t.Fatal(err)
		}
		y.write(func(tx *db.Tx) error { return y.Recheck(tx, y.repo) })
		y.pass(0)
		y.wantState(pr, record.Open)
		if err := os.Rename(filepath.Join(y.root, "acme", "away.git"), filepath.Join(y.root, "acme", "web.git")); err != nil {
			t.Fatal(err)
		}
		y.pass(0)
		if got := y.wantState(pr, record.Open); got.Mergeable != "clean" {
			t.Errorf("%+v", got)
		}
	})
}
