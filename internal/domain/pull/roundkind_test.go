package pull

import (
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// A round whose trouble has gone is charged to no ladder, whatever it was to repair: the one
// that answers requests has a ladder of its own.
func TestStoppedRoundIsNotCharged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		sha := y.commit("svc/a", "a", "1\n")
		prID := y.green("svc/a", sha)
		y.findings = "a finding"
		y.write(func(tx *db.Tx) error {
			return y.Progressed(tx, prID, sha, ReviewProgress{Outcome: record.ReviewReviewed, Findings: 1})
		})
		if pr := y.row(prID); pr.ReviewRounds != 1 {
			t.Fatalf("%d rounds of reviews", pr.ReviewRounds)
		}
		sha = y.answersRound(1, "svc/a", prID, "2\n")
		y.write(func(tx *db.Tx) error {
			return y.Progressed(tx, prID, sha, ReviewProgress{Outcome: record.ReviewReviewed})
		})
		y.checked(y.check[len(y.check)-1], &zero)
		y.pass(0)

		y.requests("ada", prID, sha, "Not so.")
		if pr := y.row(prID); pr.RequestRounds != 1 || len(y.round) != 2 {
			t.Fatalf("%d rounds of requests, %d in all", pr.RequestRounds, len(y.round))
		}
		if slug := y.takesBack("ada", prID, ""); slug != "" {
			t.Fatal(slug)
		}
		if pr := y.row(prID); pr.RequestRounds != 0 || pr.ReviewRounds != 1 || pr.Repairing() {
			t.Errorf("taken back: %d rounds of requests, %d of reviews, %s", pr.RequestRounds, pr.ReviewRounds, pr.Babysit)
		}
		y.wantNeed(prID, record.NeedsDecision, "pr.approve_pending")
	})
}

// A round of findings that were dismissed meanwhile ends, although a request that was answered
// before still waits for a person.
func TestRoundOfDismissedFindingsEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		sha := y.commit("svc/a", "a", "1\n")
		prID := y.green("svc/a", sha)
		y.requests("ada", prID, sha, "Not so.")
		sha = y.answersRound(1, "svc/a", prID, "2\n")
		y.checked(y.check[len(y.check)-1], &zero)
		y.findings = "a finding"
		found := func(n int) {
			y.write(func(tx *db.Tx) error {
				return y.Progressed(tx, prID, sha, ReviewProgress{Outcome: record.ReviewReviewed, Findings: n})
			})
		}
		if found(1); len(y.round) != 2 {
			t.Fatalf("%d rounds", len(y.round))
		}
		found(0)
		if pr := y.row(prID); pr.Repairing() || pr.ReviewRounds != 0 || pr.RequestRounds != 1 {
			t.Errorf("dismissed: %s, %d rounds of reviews, %d of requests", pr.Babysit, pr.ReviewRounds, pr.RequestRounds)
		}
		y.wantNeed(prID, record.NeedsDecision, "pr.approve_pending")
	})
}

// A round that a person has asked for goes on although nothing is wrong with the head, also
// where agents look after the pull request anyway.
func TestAskedRoundGoesOn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		prID := y.green("svc/a", y.commit("svc/a", "a", "1\n"))
		y.moved("main", y.commit("main", "b", "b"))
		y.pass(time.Second)
		if why := y.asks(func(tx *db.Tx) error { return y.TakeBase(tx, prID) }); why != "" {
			t.Fatal(why)
		}
		y.pass(time.Second)
		if pr := y.row(prID); pr.Babysit != record.BabysitConflict || pr.ConflictRounds != 1 || len(y.stopped) != 0 {
			t.Fatalf("asked for: %s, %d rounds, stopped %v", pr.Babysit, pr.ConflictRounds, y.stopped)
		}
		y.write(func(tx *db.Tx) error { return y.RoundEnded(tx, prID, "round-1", false) })
		if pr := y.row(prID); pr.Babysit != record.BabysitWatching {
			t.Errorf("after it: %s", pr.Babysit)
		}
	})
}
