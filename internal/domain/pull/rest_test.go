package pull

import (
	"errors"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/proof/seed"
)

// Two nodes that find the same lost check end it once.
func TestCheckIsLostOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		for range 2 {
			y.write(func(tx *db.Tx) error {
				return y.ci.Finish(tx, ci.Outcome{TaskID: y.check[0], Why: "no box took it"})
			})
		}
		if len(y.asked) != 1 {
			t.Errorf("people were asked about %v", y.asked)
		}
		y.write(func(tx *db.Tx) error {
			kinds, err := audited.All(tx, "acme")
			if n := len(slices.DeleteFunc(kinds, func(k string) bool { return k != "ci.lost" })); n != 1 {
				t.Errorf("it was told of %d times", n)
			}
			return err
		})
	})
}

// If the branch of an order has gone or moved, its task and its pull request still move
// on.
func TestOrderForNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {mode: auto}\n")
		gone := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.host.merge = errors.New("no room on the disk")
		y.pass(0)
		y.push(":svc/a")
		y.moved("svc/a", codehost.ZeroSHA)
		y.pass(0) // the merge has begun
		y.wantState(gone, record.Open)
		y.host.merge = nil
		y.pass(time.Minute)
		if got := y.wantState(gone, record.Closed); *got.ClosedWhy != record.ClosedDeleted {
			t.Errorf("%+v", got)
		}
		y.wantActions(gone, "stale")
	})
}

// If a task is cancelled right before the merge of its pull request, or the question about
// it, there is no merge and no question.
func TestCancelledBeforeTheMerge(t *testing.T) {
	t.Parallel()
	for policy, left := range map[string]string{"": record.Closed, ", on_cancel: keep": record.Open} {
		onBoth(t, func(t *testing.T, y *yard) {
			y.policy("version: 1\nmerge: {mode: auto" + policy + "}\n")
			pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
			why, how := "", ""
			if left == record.Open {
				why, how = record.NeedsMerge, "pr.merge" // the pull request is left to people
			}
			y.host.tried = func() { // as the merge will be
				y.host.tried = nil
				y.abandon(pr, "task-svc/a")
				y.wantState(pr, left)
			}
			duetest.Pass(y.ctx(), t, y.Due)
			y.wantState(pr, left)
			y.wantNeed(pr, why, how)
			y.wantActions(pr, "stale")
			if !slices.Equal(y.resolved[:1], []string{"The task was cancelled."}) && left == record.Open {
				t.Errorf("resolved %v", y.resolved)
			}
		})
	}
}

// A conflict that goes away leaves the question open. If it has cost all rounds, a person
// is asked about the head again afterwards.
func TestGreenAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\n")
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.pass(0)
		spend := func() {
			y.write(func(tx *db.Tx) error {
				err := changeRow(tx, pr, func(r *record.Pull) { r.EndRound(record.BabysitSpent) })
				return errors.Join(err, y.Move(tx, &record.Pull{ID: pr}))
			})
		}
		spend()
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending") // nothing is to be repaired
		y.call(202, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "once more"}`, nil)
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
		y.call(200, "POST", "/v1/prs/"+pr+"/skip-pending", `{"head_sha": "`+sha+`"}`, nil)
		spend()
		y.pass(0)
		y.wantNeed(pr, record.NeedsAgain, "pr.ask_again")
		y.wantActions(pr, "skipped")
	})
}

// A red new head of a pull request without a round left needs a person as well.
func TestRedAfterTheLastRound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.checked(y.check[0], &one)
		y.ended(pr, true) // a person has cancelled the round
		y.wantNeed(pr, record.NeedsRearm, "pr.rearm_babysit")
		y.moved("svc/a", y.commit("svc/a", "a", "2\n"))
		y.wantNeed(pr, "", "")
		y.checked(y.check[1], &one)
		y.wantNeed(pr, record.NeedsRearm, "pr.rearm_babysit")
	})
}

// A person who arms a kept pull request takes it over; its stopped check is queued again.
func TestKeptAndArmed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked + "merge: {on_cancel: keep}\n")
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.abandon(pr, "task-svc/a")
		y.moved("svc/a", y.commit("svc/a", "a", "2\n"))
		if len(y.check) != 1 {
			t.Fatalf("checks %v", y.check)
		}
		y.call(202, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "once more"}`, nil)
		if len(y.check) != 2 {
			t.Fatalf("checks %v", y.check)
		}
		y.checked(y.check[1], &zero)
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
	})
}

// A kept pull request that was taken over is not merged if it contains dropped work. Its
// task cannot be cancelled a second time.
func TestKeptOnTopOfDropped(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {on_cancel: keep}\n")
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.write(func(tx *db.Tx) error {
			err1 := seed.Add(tx, seed.Task{ID: "task-svc/a", Account: "acme", Repo: y.repo, Status: "running", Branch: new("")})
			_, err2 := seed.CancelTask.Exec(tx, "task-svc/a")
			return errors.Join(err1, err2)
		})
		y.abandon(pr, "task-svc/a")
		y.below = "below"
		y.call(200, "POST", "/v1/prs/"+pr+"/merge", `{"head_sha": "`+sha+`"}`, nil)
		y.pass(0)
		y.wantState(pr, record.Open)
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
		y.wantActions(pr, "stale stale pending")
	})
}

// The check of a closed or kept pull request is still recorded with its end.
func TestCheckOfWhatIsOver(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		end := func(c ci.Outcome) {
			y.write(func(tx *db.Tx) error { return y.ci.Finish(tx, c) })
		}
		y.policy(checked)
		closed := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.abandon(closed, "task-svc/a")
		end(ci.Outcome{TaskID: y.check[0], Cancelled: true})
		if got := y.wantState(closed, record.Closed); got.Checks != record.ChecksFailed {
			t.Errorf("its check was cancelled: %s", got.Checks)
		}
		y.policy(checked + "merge: {on_cancel: keep}\n")
		kept := y.propose("svc/b", y.commit("svc/b", "b", "1\n"))
		y.abandon(kept, "task-svc/b")
		y.wantNeed(kept, record.NeedsRearm, "pr.rearm_babysit")
		end(ci.Outcome{TaskID: y.check[1], RunID: "r", ExitCode: &zero})
		if got := y.wantState(kept, record.Open); got.Checks != record.ChecksPassed {
			t.Errorf("its check passed: %s", got.Checks)
		}
		y.wantNeed(kept, record.NeedsMerge, "pr.merge")
		y.wantActions(kept, "")
	})
}
