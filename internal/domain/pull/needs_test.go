package pull

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/babysit"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
)

// A pull request that is armed again goes on from any state: its question is shown again,
// a kept one is checked, and a red head without a round waits for a person.
func TestArmedGoesOn(t *testing.T) {
	t.Parallel()
	zero, one := 0, 1
	rearm := func(y *yard, pr string) {
		y.t.Helper()
		y.call(202, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "why"}`, nil)
		y.pass(0)
	}
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "README", "mine\n")
		pr := y.propose("svc/a", sha)
		before := y.git("rev-parse", "main")
		y.moved("main", y.commit("main", "README", "theirs\n"))
		y.pass(0)
		y.ended(pr, true) // the round is cancelled
		y.wantNeed(pr, record.NeedsRearm, "pr.rearm_babysit")
		y.wantTold("task-svc/a", "stuck: merge_conflict")
		y.git("reset", "--quiet", "--hard", before)
		y.push("main")
		y.moved("main", before)
		y.pass(0)
		rearm(y, pr)
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
		y.wantTold("task-svc/a", "awaits review")
		y.approve(pr, sha)
		y.pass(0)
		y.wantState(pr, record.Merged)
	})
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked + "merge: {on_cancel: keep}\n")
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.abandon(pr, "task-svc/a")
		y.wantNeed(pr, record.NeedsRearm, "pr.rearm_babysit")
		y.moved("svc/a", y.commit("svc/a", "a", "2\n"))
		y.wantNeed(pr, record.NeedsRearm, "pr.rearm_babysit")
		n := len(y.check)
		rearm(y, pr)
		if len(y.check) != n+1 {
			t.Fatal("it is not checked")
		}
		y.checked(y.check[n], &zero)
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
	})
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.checked(y.check[0], &one)
		y.ended(pr, true)
		y.moved("svc/a", y.commit("svc/a", "a", "2\n"))
		y.checked(y.check[1], &one)
		y.wantNeed(pr, record.NeedsRearm, "pr.rearm_babysit")
		rearm(y, pr)
		y.wantBabysit(pr, record.BabysitCI, 1, 0)
	})
}

// A head that waits for a person names the reason and the call that moves it on; that call does.
func TestNothingWaitsUnsaid(t *testing.T) {
	t.Parallel()
	skip := func(y *yard, pr, sha string) {
		y.call(200, "POST", "/v1/prs/"+pr+"/skip-pending", `{"head_sha": "`+sha+`"}`, nil)
	}
	for name, c := range map[string]struct {
		policy, why, capability string
		before                  func(y *yard, pr, sha string)
	}{
		"asked":    {"version: 1\n", record.NeedsDecision, "pr.approve_pending", nil},
		"declined": {"version: 1\n", record.NeedsAgain, "pr.ask_again", skip},
		"expired":  {"version: 1\n", record.NeedsExpired, "pr.ask_again", func(y *yard, _, _ string) { y.pass(record.AskFor) }},
		"never":    {"version: 1\nmerge: {mode: never}\n", record.NeedsMerge, "pr.merge", nil},
		"failed": {"version: 1\nmerge: {mode: auto}\n", record.NeedsRetry, "pr.merge", func(y *yard, _, _ string) {
			y.host.merge = fmt.Errorf("the disk is full")
			for range merge.MaxTries {
				y.pass(time.Hour)
			}
			y.host.merge = nil
		}},
	} {
		for _, way := range []string{"ask-again", "merge"} {
			t.Run(name+" "+way, func(t *testing.T) {
				onBoth(t, func(t *testing.T, y *yard) {
					y.policy(c.policy)
					sha := y.commit("svc/a", "a", "1\n")
					pr := y.propose("svc/a", sha)
					if c.before != nil {
						c.before(y, pr, sha)
					}
					y.wantNeed(pr, c.why, c.capability)
					if why := y.told["task-svc/a"]; why != "awaits review" && !strings.HasPrefix(why, "stuck") {
						t.Errorf("its task was told %q", why)
					}
					body := `{"head_sha": "` + sha + `"}`
					for range 2 { // the second changes nothing
						var d Decision
						y.call(200, "POST", "/v1/prs/"+pr+"/"+way, body, &d)
						if want := map[string]string{"ask-again": record.ActionPending,
							"merge": record.ActionApproved}[way]; string(d.Action.State) != want ||
							d.Action.HeadSHA != sha {
							t.Errorf("%+v", d)
						}
					}
					if way == "ask-again" {
						y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
						y.approve(pr, sha)
					}
					y.wantNeed(pr, "", "")
					y.wantTold("task-svc/a", "mergeable")
					y.pass(0)
					if got := y.wantState(pr, record.Merged); *got.MergedBy != "user:ada" {
						t.Errorf("%+v", got)
					}
				})
			})
		}
	}
}

// Only the present head can be ordered, and only if it is green.
func TestMergeIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		for _, way := range []string{"ask-again", "merge"} {
			for want, c := range map[string]string{"checks_not_passed": sha, "head_moved": strings.Repeat("a", 40)} {
				var problem map[string]any
				y.call(409, "POST", "/v1/prs/"+pr+"/"+way, `{"head_sha": "`+c+`"}`, &problem)
				if problem["reason"] != want {
					t.Errorf("%s: %v", way, problem)
				}
			}
			y.callAs("rival", 404, "POST", "/v1/prs/"+pr+"/"+way, `{"head_sha": "`+sha+`"}`, nil)
			y.call(400, "POST", "/v1/prs/"+pr+"/"+way, `{}`, nil)
		}
		y.abandon(pr, "task-svc/a")
		for _, way := range []string{"ask-again", "merge"} {
			var problem map[string]any
			y.call(409, "POST", "/v1/prs/"+pr+"/"+way, `{"head_sha": "`+sha+`"}`, &problem)
			if problem["reason"] != "pr_not_open" {
				t.Errorf("%s: %v", way, problem)
			}
		}
	})
}

// The order of a person covers protected changes only if its question named them.
func TestOrderOfWhatIsProtected(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {mode: never}\n")
		sha := y.branch("svc/a", func() { y.file(".svc/policy.yml", "version: 1\nmerge: {mode: auto}\n") })
		pr := y.propose("svc/a", sha)
		y.call(200, "POST", "/v1/prs/"+pr+"/merge", `{"head_sha": "`+sha+`"}`, nil)
		y.pass(0)
		if got := y.wantState(pr, record.Open); got.PendingAction == nil || got.PendingAction.Protected == nil {
			t.Errorf("%+v", got)
		}
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
		y.wantTold("task-svc/a", "awaits review")
		y.approve(pr, sha)
		y.pass(0)
		y.wantState(pr, record.Merged)
	})
}

// After a round that changes nothing the next one waits.
func TestIdleRoundsArePaced(t *testing.T) {
	t.Parallel()
	one := 1
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.checked(y.check[0], &one)
		for n, wait := range babysit.IdleRounds[:2] {
			y.wantBabysit(pr, record.BabysitCI, int64(n+1), 0)
			y.ended(pr, false)
			if at := y.pr(pr).Babysit.NextRoundAt; at == nil || !at.Equal(db.Time(y.clock.Load()).Add(wait)) {
				t.Errorf("after round %d the next is at %v", n+1, at)
			}
			y.pass(wait - time.Second)
			y.wantBabysit(pr, record.BabysitWatching, int64(n+1), 0)
			y.pass(time.Second)
		}
		y.wantBabysit(pr, record.BabysitCI, 3, 0)
	})
}

// A conflict is found when the branch or its base moves.
func TestConflictIsSeen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		pr := y.propose("svc/a", y.commit("svc/a", "README", "mine\n"))
		y.pass(0)
		if got := y.pr(pr); got.Mergeable != "clean" || got.PatchID == nil {
			t.Errorf("%+v", got)
		}
		y.moved("main", y.commit("main", "README", "theirs\n"))
		y.pass(0)
		if got := y.pr(pr); got.Mergeable != "conflict" || got.Babysit.State != record.BabysitConflict {
			t.Errorf("%+v", got)
		}
	})
}
