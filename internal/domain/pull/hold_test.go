package pull

import (
	"errors"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/proof/seed"
)

// named has the policy name a check, after heads were there.
func (y *yard) named() {
	y.t.Helper()
	y.policy(checked)
	y.write(func(tx *db.Tx) error {
		r, _, err := repo.ByID(tx, y.repo)
		if err != nil {
			return err
		}
		return y.PolicyChanged(tx, r)
	})
}

// enable switches the repository on or off.
func (y *yard) enable(to bool) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		if _, err := seed.SetEnabled.Exec(tx, y.repo, to); err != nil {
			return err
		}
		r, _, err := repo.ByID(tx, y.repo)
		return errors.Join(err, y.PolicyChanged(tx, r))
	})
}

// A person's order waits while the check of the head runs again or has failed, and is
// carried out once it passes.
func TestOrdersWaitForChecks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
		y.named()
		y.approve(pr, sha)
		y.pass(sweep)
		y.wantState(pr, record.Open) // it runs
		y.checked(y.check[0], &one)
		y.pass(sweep)
		y.pass(merge.LongestWait)
		if got := y.wantState(pr, record.Open); got.Checks != record.ChecksFailed || got.Babysit.State != record.BabysitCI {
			t.Errorf("it is %s and %s", got.Checks, got.Babysit.State)
		}
		y.wantActions(pr, "approved")
		y.write(func(tx *db.Tx) error {
			r, _, err := repo.ByID(tx, y.repo)
			if err != nil {
				return err
			}
			return y.CheckAgain(tx, r, pr, sha)
		})
		y.wantTold("task-svc/a", "awaits")
		y.checked(y.check[1], &zero)
		y.wantTold("task-svc/a", "mergeable")
		y.pass(0)
		y.wantState(pr, record.Merged)
	})
}

// An order whose head does not pass its checks has no place in a merge queue.
func TestRedHeadsLeaveTheQueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.approve(pr, sha)
		y.line.on = true
		order := y.pr(pr).PendingAction.ID
		stands := func() (ok bool) {
			y.write(func(tx *db.Tx) error {
				all, err := record.StandingOrders(tx, []string{order})
				_, ok = all[order]
				return err
			})
			return ok
		}
		if !stands() {
			t.Error("the order of a green head does not stand")
		}
		y.named()
		if stands() {
			t.Error("the order stands while the check runs")
		}
		y.checked(y.check[0], &one)
		if stands() {
			t.Error("the order stands although the check has failed")
		}
	})
}

// Nothing is merged in a repository that is not enabled. What a person has ordered there is
// carried out when it is enabled again.
func TestOrdersWaitForTheRepository(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.approve(pr, sha)
		order := y.pr(pr).PendingAction.ID
		y.enable(false)
		y.pass(0)
		y.pass(merge.LongestWait)
		if got := y.row(pr); got.State != record.Open {
			t.Errorf("it is %s", got.State)
		}
		y.write(func(tx *db.Tx) error {
			all, err := record.StandingOrders(tx, []string{order})
			if len(all) != 0 {
				t.Error("it may be in a merge queue")
			}
			return err
		})
		y.enable(true)
		y.pass(sweep)
		y.wantState(pr, record.Merged)
	})
}

// A no holds on over new heads: what the policy would merge is asked about, until a person
// says yes.
func TestNoOutlivesItsHead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		const auto = "version: 1\nmerge: {mode: auto}\n"
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.call(200, "POST", "/v1/prs/"+pr+"/skip-pending", `{"head_sha": "`+sha+`"}`, nil)
		y.policy(auto)
		sha = y.commit("svc/a", "a", "2\n")
		y.moved("svc/a", sha)
		y.pass(0)
		y.pass(sweep)
		y.wantState(pr, record.Open)
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
		y.approve(pr, sha)
		sha = y.commit("svc/a", "a", "3\n") // the yes counts, although its head was not merged
		y.clock.Add(1)
		y.moved("svc/a", sha)
		y.pass(0)
		y.pass(sweep)
		y.wantState(pr, record.Merged)
	})
}
