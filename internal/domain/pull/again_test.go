package pull

import (
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
)

// changeRow changes the row of a pull request.
func changeRow(tx *db.Tx, prID string, to func(*record.Pull)) error {
	pr, _, err := record.Lock(tx, prID)
	if err != nil {
		return err
	}
	to(pr)
	return record.Save(tx, pr)
}

// repairs begins the second round of a pull request.
func repairs(tx *db.Tx, prID, taskID string) error {
	return changeRow(tx, prID, func(pr *record.Pull) {
		pr.CIRounds = 1
		pr.BeginRound(record.BabysitCI, moves.KindCI, taskID, false)
	})
}

// A check that turns green while an agent repairs its head ends the round, which is not
// charged; a round that has moved the head goes on.
func TestGreenEndsTheRound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.keep()
		sha := y.commit("one", "a", "a")
		prID := y.propose("one", sha)
		y.settle()
		y.write(func(tx *db.Tx) error {
			return repairs(tx, prID, "round")
		})
		y.checkedThere(sha, record.ChecksPassed)
		pr := y.row(prID)
		if pr.Babysit != record.BabysitWatching || pr.BabysitTask != nil || pr.CIRounds != 1 || !slices.Contains(y.stopped, "round") {
			t.Errorf("%s with task %v after %d rounds, stopped %q", pr.Babysit, pr.BabysitTask, pr.CIRounds, y.stopped)
		}
		if pr.Needs != record.NeedsDecision {
			t.Errorf("it needs %q", pr.Needs)
		}
		y.write(func(tx *db.Tx) error { return y.RoundEnded(tx, prID, "round", true) }) // the end of the task comes later
		if pr = y.row(prID); pr.Babysit != record.BabysitWatching {
			t.Errorf("the end of the round makes it %s", pr.Babysit)
		}

		next := y.commit("one", "a", "b")
		y.write(func(tx *db.Tx) error {
			return repairs(tx, prID, "other")
		})
		y.moved("one", next)
		y.checkedThere(next, record.ChecksPassed)
		if pr = y.row(prID); pr.Babysit != record.BabysitCI || pr.CIRounds != 2 || slices.Contains(y.stopped, "other") {
			t.Errorf("a round that has pushed is %s after %d rounds", pr.Babysit, pr.CIRounds)
		}
	})
}

// The checks of a head wait for a person, who is asked once; that ends by itself, or the
// head is read anew when somebody arms it again.
func TestChecksHeldForPeople(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.keep()
		sha := y.commit("one", "a", "a")
		prID := y.propose("one", sha)
		y.settle()
		holds := func(hold string) record.Pull {
			y.write(func(tx *db.Tx) error {
				return y.HostChecked(tx, HostEnd{RepoID: y.repo, SHA: sha, Result: record.ChecksPending, Hold: hold,
					Why: "these checks wait: CI"})
			})
			return y.row(prID)
		}
		for range 2 {
			if pr := holds(record.NeedsApproval); pr.Needs != record.NeedsApproval ||
				!slices.Equal(y.asked, []string{record.NeedsApproval}) {
				t.Errorf("it needs %q, people were asked %q", pr.Needs, y.asked)
			}
		}
		if pr := holds(record.NeedsBase); pr.Needs != record.NeedsBase || len(y.asked) != 1 {
			t.Errorf("it needs %q, people were asked %q", pr.Needs, y.asked)
		}
		if pr := holds(""); pr.Needs != "" || len(y.resolved) != 1 {
			t.Errorf("it needs %q, resolved %q", pr.Needs, y.resolved)
		}
		if pr := holds(""); pr.Needs != "" || len(y.resolved) != 1 {
			t.Errorf("it is resolved again: %q", y.resolved)
		}

		// Armed again, what waits for a person is read anew.
		holds(record.NeedsMachine)
		if _, err := y.rearm(y.ctx(), rearmIn{ID: prID, Reason: "The machines are back."}); err != nil {
			t.Fatal(err)
		}
		if pr := y.row(prID); pr.Needs != "" || pr.HostChecks != record.ChecksPending || pr.Checks != record.ChecksPending {
			t.Errorf("armed again: needs %q, checks %s", pr.Needs, pr.Checks)
		}

		// A hold comes before a question, which goes on once it is over.
		y.checkedThere(sha, record.ChecksPassed)
		if pr := holds(record.NeedsCheck); pr.Needs != record.NeedsCheck {
			t.Errorf("beside a question: %q", pr.Needs)
		}
		holds("")
		y.checkedThere(sha, record.ChecksPassed)
		if pr := y.row(prID); pr.Needs != record.NeedsDecision {
			t.Errorf("after the hold: %q", pr.Needs)
		}
		y.pass(time.Second)
	})
}

// A head that was there before the policy of its repository was read is checked once the
// policy names a check, once.
func TestHeadBeforeThePolicy(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.keep()
		y.policy("version: 1\n")
		prID := y.propose("one", y.commit("one", "a", "a"))
		y.settle()
		if len(y.check) != 0 || y.row(prID).OwnChecks != "" {
			t.Fatalf("checked by %q before the policy names a check", y.check)
		}
		known := func() {
			y.write(func(tx *db.Tx) error {
				r, _, err := repo.ByIDAnywhere(tx, y.repo)
				if err != nil {
					return err
				}
				return y.PolicyChanged(tx, r)
			})
		}
		known()
		if len(y.check) != 0 {
			t.Errorf("checked by %q, and the policy names no check", y.check)
		}
		y.policy("version: 1\nchecks: {command: make test}\n")
		known()
		if pr := y.row(prID); len(y.check) != 1 || pr.OwnChecks != record.ChecksPending {
			t.Errorf("checked by %q: %s", y.check, pr.OwnChecks)
		}
		known()
		if len(y.check) != 1 {
			t.Errorf("checked by %q", y.check)
		}
		task, full := y.check[0], y.queue
		zero := 0
		y.checked(task, &zero)
		if pr := y.row(prID); pr.OwnChecks != record.ChecksPassed {
			t.Errorf("it is %s", pr.OwnChecks)
		}

		// A queue that is full does not keep the policy from being known.
		y.policy("version: 1\n")
		two := y.propose("two", y.commit("two", "b", "b"))
		y.settle()
		y.policy("version: 1\nchecks: {command: make test}\n")
		y.queue = func(*db.Tx) (string, error) {
			return "", fault.New(fault.RateLimited, "queue-full", "The queue is full.")
		}
		known()
		if pr := y.row(two); pr.OwnChecks != "" {
			t.Errorf("it is %s, and the queue is full", pr.OwnChecks)
		}
		y.queue = full
		known()
		if pr := y.row(two); pr.OwnChecks != record.ChecksPending {
			t.Errorf("it is %s", pr.OwnChecks)
		}
	})
}
