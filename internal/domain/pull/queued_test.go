package pull

import (
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
)

// inLine opens a pull request whose head is approved, and waits in a queue.
func (y *yard) inLine(branch string) (prID, sha, action string) {
	y.t.Helper()
	y.line.on, y.line.goes = true, map[string]bool{}
	sha = y.commit(branch, branch, "1\n")
	prID = y.propose(branch, sha)
	y.approve(prID, sha)
	y.pass(time.Second)
	pr := y.pr(prID)
	if pr.State != record.Open || pr.Queue == nil || pr.Queue.Position != 1 || pr.PendingAction == nil {
		y.t.Fatalf("it does not wait: %+v", pr)
	}
	return prID, sha, pr.PendingAction.ID
}

func (y *yard) reject(o merge.Rejection) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { return y.Rejected(tx, o) })
}

// An approved merge waits for its turn in a queue, and goes on when that comes.
func TestTurnInQueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		prID, _, action := y.inLine("a")
		y.pass(merge.LongestWait / 2)
		if pr := y.pr(prID); pr.State != record.Open {
			t.Fatalf("it is %s before its turn", pr.State)
		}
		y.line.goes[action] = true
		y.write(func(tx *db.Tx) error { return y.TurnCame(tx, action) })
		y.pass(0)
		if pr := y.pr(prID); pr.State != record.Merged || pr.Queue != nil {
			t.Errorf("it is %s, at %+v", pr.State, pr.Queue)
		}
		if len(y.line.merged) != 1 || y.line.merged[0] != action {
			t.Errorf("the queue was told of %q", y.line.merged)
		}
	})
}

// The queue is told that an order is of a fork.
func TestTurnOfAFork(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		prID, _, action := y.inLine("a")
		y.write(func(tx *db.Tx) error { _, err := setFork.Exec(tx, prID); return err })
		y.write(func(tx *db.Tx) error { return y.TurnCame(tx, action) })
		y.pass(0)
		if pr := y.pr(prID); pr.State != record.Merged {
			t.Errorf("it is %s", pr.State)
		}
	})
}

var setFork = db.S(`UPDATE pulls SET fork = TRUE WHERE id = $1`)

// An order that somebody objects to, or that a finding holds, stands in no queue meanwhile:
// the queue of a host would merge it, and one of the server would wait for it.
func TestHeldOrderStandsInNoQueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.may = map[string]codehost.Permission{"ann": codehost.PermitWrite, "bea": codehost.PermitWrite}
		y.line.on, y.line.goes = true, map[string]bool{}
		prID, sha := k.open1()
		if err := k.reviewed(codehost.ActionSubmitted, "1", "ann", "approved", sha); err != nil {
			t.Fatal(err)
		}
		action := y.action(prID).ID
		stands := func() (ok bool) {
			t.Helper()
			y.write(func(tx *db.Tx) error {
				all, err := record.StandingOrders(tx, []string{action})
				_, ok = all[action]
				return err
			})
			return ok
		}
		if !stands() {
			t.Fatal("an approved order does not stand")
		}
		if err := k.reviewed(codehost.ActionSubmitted, "2", "bea", "changes_requested", sha); err != nil {
			t.Fatal(err)
		}
		if stands() {
			t.Error("it stands although somebody requests changes")
		}
		if err := k.reviewed(codehost.ActionDismissed, "2", "bea", "dismissed", sha); err != nil {
			t.Fatal(err)
		}
		if !stands() {
			t.Error("it does not stand after that")
		}
		y.write(func(tx *db.Tx) error { _, err := setFindings.Exec(tx, prID); return err })
		if stands() {
			t.Error("it stands although a finding holds it")
		}
	})
}

var setFindings = db.S(`UPDATE pulls SET findings = 1 WHERE id = $1`)

// A head that is thrown out is repaired, tried again, or left to a person.
func TestThrownOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		ends   func(y *yard, pr Request)
	}{
		"by its check": {merge.RejectedCheck, func(y *yard, pr Request) {
			if pr.Checks != record.ChecksFailed || len(y.round) != 1 || pr.PendingAction != nil {
				y.t.Fatalf("%+v, rounds %+v", pr, y.round)
			}
			for _, want := range []string{"Merge origin/main into the branch", "together with main, it broke", "the log"} {
				if !strings.Contains(y.round[0].Problem, want) {
					y.t.Errorf("the agent is not told %q: %s", want, y.round[0].Problem)
				}
			}
		}},
		"by a conflict": {merge.RejectedConflict, func(y *yard, pr Request) {
			if pr.Mergeable != "conflict" || len(y.round) != 1 || pr.Babysit.State != record.BabysitConflict {
				y.t.Errorf("%+v, rounds %+v", pr, y.round)
			}
		}},
		"by a rule": {merge.RejectedRule, func(y *yard, pr Request) {
			a := pr.PendingAction
			if a == nil || a.State != record.ActionApproved || a.RetryAt == nil || !strings.Contains(*a.Error, "it broke") {
				y.t.Errorf("it is not tried again: %+v", a)
			}
		}},
		"by a person": {"person", func(y *yard, pr Request) {
			if pr.NeedsPerson == nil || pr.NeedsPerson.Why != record.NeedsRetry || len(y.round) > 0 {
				y.t.Errorf("%+v", pr)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				prID, sha, action := y.inLine("a")
				y.reject(merge.Rejection{PRID: prID, ActionID: "another", HeadSHA: sha, Reason: c.reason})
				if a := y.pr(prID).PendingAction; a == nil || a.State != record.ActionApproved {
					t.Fatalf("the rejection of another order ended it: %+v", a)
				}
				why := "together with main, it broke"
				if c.reason == merge.RejectedCheck {
					y.line.failed = why
				}
				y.reject(merge.Rejection{PRID: prID, ActionID: action, HeadSHA: sha, Reason: c.reason, Why: why})
				y.pass(0)
				c.ends(y, y.pr(prID))
			})
		})
	}
}

// A head that passed its check and was thrown out of its queue is checked again when a
// person asks for it. If it passes, a person decides again; if it fails, it is repaired.
func TestCheckAgainAfterQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exit int
		ends func(y *yard, pr Request)
	}{
		"passes": {0, func(y *yard, pr Request) {
			if pr.Checks != record.ChecksPassed || pr.PendingAction == nil || pr.PendingAction.State != record.ActionPending {
				y.t.Errorf("%+v", pr)
			}
			if len(y.stopped) != 1 {
				y.t.Errorf("the rounds that were stopped: %q", y.stopped)
			}
		}},
		"fails": {1, func(y *yard, pr Request) {
			if pr.Checks != record.ChecksFailed || pr.Babysit.State != record.BabysitCI || len(y.stopped) != 0 {
				y.t.Errorf("%+v, stopped %q", pr, y.stopped)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				y.policy("version: 1\nchecks: {command: make test}\n")
				y.line.on, y.line.goes = true, map[string]bool{}
				sha := y.commit("a", "a", "1\n")
				prID := y.propose("a", sha)
				zero := 0
				y.checked(y.check[0], &zero)
				y.approve(prID, sha)
				y.pass(time.Second)
				y.line.failed = "together with main, it broke"
				action := y.pr(prID).PendingAction.ID
				y.reject(merge.Rejection{PRID: prID, ActionID: action, HeadSHA: sha, Reason: merge.RejectedCheck, Why: y.line.failed})
				y.pass(0)
				if pr := y.pr(prID); pr.Checks != record.ChecksFailed || len(y.round) != 1 {
					t.Fatalf("%+v, rounds %+v", pr, y.round)
				}
				y.call(202, "POST", "/v1/prs/"+prID+"/rearm-babysit", `{"reason": "The network was away."}`, nil)
				if pr := y.pr(prID); len(y.check) != 2 || pr.Checks != record.ChecksPending {
					t.Fatalf("checked by %q, it is %s", y.check, pr.Checks)
				}
				y.checked(y.check[1], &c.exit)
				y.pass(0)
				c.ends(y, y.pr(prID))
			})
		})
	}
}
