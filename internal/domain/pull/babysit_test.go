package pull

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// ended ends the newest round.
func (y *yard) ended(prID string, cancelled bool) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		return y.RoundEnded(tx, prID, fmt.Sprintf("round-%d", len(y.round)), cancelled)
	})
	y.pass(0)
}

func (y *yard) wantBabysit(prID, state string, ci, conflict int64) {
	y.t.Helper()
	if got := y.pr(prID).Babysit; string(got.State) != state || got.CIRoundsUsed != ci || got.ConflictRoundsUsed != conflict {
		y.t.Errorf("babysit is %+v, want %s after %d and %d rounds", got, state, ci, conflict)
	}
}

func TestFailedCheckIsRepaired(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.wantBabysit(pr, record.BabysitWatching, 0, 0)
		y.full = true
		y.checked(y.check[0], &one)
		y.wantBabysit(pr, record.BabysitWatching, 0, 0)
		y.full = false
		y.pass(sweep)
		y.wantBabysit(pr, record.BabysitCI, 1, 0)
		if r := y.round[len(y.round)-1]; r.Branch != "svc/a" || r.TaskID != "task-svc/a" || !strings.Contains(r.Problem, "code 1") ||
			!strings.Contains(r.Problem, "make check") ||
			!strings.Contains(r.Problem, "```\nok\n```") {
			t.Errorf("round %+v", r)
		}
		sha := y.commit("svc/a", "a", "2\n")
		y.moved("svc/a", sha)
		y.ended(pr, false)
		y.wantBabysit(pr, record.BabysitWatching, 1, 0)
		y.checked(y.check[1], &zero)
		if got := y.pr(pr); got.Checks != record.ChecksPassed || got.PendingAction == nil || got.PendingAction.HeadSHA != sha {
			t.Errorf("repaired: %+v", got)
		}
	})
}

func TestSpentRoundsAreRearmed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		rearm := func(status int) (out Rearmed) {
			y.call(status, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "the runner was broken"}`, &out)
			return out
		}
		y.checked(y.check[0], &one)
		for n := range 3 { // rounds that change nothing, or do not repair the head
			if n == 1 {
				y.moved("svc/a", y.commit("svc/a", "a", "2\n"))
				y.checked(y.check[1], &one) // before the round is over
			}
			y.wantBabysit(pr, record.BabysitCI, int64(n+1), 0)
			y.ended(pr, false)
			y.pass(time.Hour)
		}
		y.wantBabysit(pr, record.BabysitSpent, 3, 0)
		y.wantTold("task-svc/a", "stuck: ci_ladder_spent")
		if !slices.Equal(y.asked, []string{"ci_ladder_spent"}) {
			t.Errorf("escalations %v", y.asked)
		}
		y.pass(0)
		if len(y.round) != 3 {
			t.Errorf("%d rounds", len(y.round))
		}
		if out := rearm(202); out.Forgiven != 3 || out.Sweep != "queued" || out.Babysit.State != record.BabysitCI ||
			out.Babysit.CIRoundsUsed != 1 || out.Began == nil || *out.Began != "round" {
			t.Errorf("rearmed %+v", out)
		}
		y.pass(0)
		y.wantBabysit(pr, record.BabysitCI, 1, 0)
		y.ended(pr, true)
		y.wantBabysit(pr, record.BabysitSpent, 1, 0)
		if got := rearm(202); got.Forgiven != 1 || y.pr(pr).Babysit.Forgiven != 4 {
			t.Errorf("rearmed again: %+v", got)
		}
		y.callAs("rival", 404, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "mine"}`, nil)
		y.call(400, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{}`, nil)

		y.pass(0)
		sha := y.commit("svc/a", "a", "3\n")
		y.moved("svc/a", sha)
		y.ended(pr, false)
		y.checked(y.check[len(y.check)-1], &zero)
		y.approve(pr, sha)
		y.pass(0)
		y.wantBabysit(pr, record.BabysitDone, 1, 0)
		var problem map[string]any
		y.call(409, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "once more"}`, &problem)
		if problem["reason"] != "pr_not_open" {
			t.Errorf("%v", problem)
		}
	})
}

// A check that could not be run is no result for the head: rearming queues it again.
func TestLostCheckIsMadeAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.checked(y.check[0], nil)
		y.wantNeed(pr, record.NeedsMachine, "pr.rearm_babysit")
		y.call(202, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "the box is back"}`, nil)
		y.pass(0)
		if got := y.pr(pr); len(y.check) != 2 || len(y.round) != 0 || got.Checks != record.ChecksPending {
			t.Errorf("%d checks, %d rounds, %+v", len(y.check), len(y.round), got)
		}
	})
}

func TestConflictsAreResolved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "README", "mine\n")
		pr := y.propose("svc/a", sha)
		y.commit("main", "README", "theirs\n")
		y.approve(pr, sha)
		y.pass(0)
		for n := range int64(2) {
			y.wantBabysit(pr, record.BabysitConflict, 0, n+1)
			if r := y.round[n]; !strings.Contains(r.Problem, "Merge origin/main") {
				t.Errorf("round %+v", r)
			}
			sha = y.commit("svc/a", "a", fmt.Sprint(n))
			y.moved("svc/a", sha)
			y.ended(pr, false)
		}
		y.wantBabysit(pr, record.BabysitSpent, 0, 2)
		y.wantTold("task-svc/a", "stuck: merge_conflict")
	})
}
