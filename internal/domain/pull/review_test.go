package pull

import (
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/babysit"
	"yardmaster/internal/domain/pull/record"
)

// reviewed has a review begin for every head whose facts are known, with the findings of
// earlier ones.
func (y *yard) reviewed(findings *int) {
	HeadKnown.On(y.DB, func(tx *db.Tx, h Head) error {
		if h.Pull.MergeBase == "" || h.Pull.Change == "" || !h.Pull.Watched || !h.Pull.Open {
			y.t.Errorf("%+v", h.Pull)
		}
		return y.Progressed(tx, h.Pull.ID, h.Pull.HeadSHA, ReviewProgress{Running: true, Findings: *findings})
	})
}

// progressed says that the review of a head is over.
func (y *yard) progressed(prID, sha string, findings int) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		return y.Progressed(tx, prID, sha, ReviewProgress{Outcome: record.ReviewReviewed, Findings: findings})
	})
}

// Nobody is asked, and nothing is merged, before the review of the head has ended, however long
// that takes.
func TestOrdersWaitForReviews(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.reviewed(new(int))
		y.policy("version: 1\nmerge: {mode: auto}\n")
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.pass(0)
		y.pass(time.Minute)
		y.wantState(pr, record.Open)
		y.progressed(pr, strings.Repeat("e", 40), 0) // of another head
		y.pass(time.Minute)
		y.wantState(pr, record.Open)
		y.progressed(pr, sha, 0)
		y.pass(time.Second)
		y.wantState(pr, record.Merged)

		sha = y.commit("svc/b", "b", "1\n")
		pr = y.propose("svc/b", sha)
		for range 12 {
			y.wantState(pr, record.Open)
			y.pass(5*time.Minute + time.Second)
		}
		y.progressed(pr, sha, 0)
		y.pass(0)
		y.wantState(pr, record.Merged)

		y.policy("version: 1\n")
		sha = y.commit("svc/c", "c", "1\n")
		pr = y.propose("svc/c", sha)
		y.wantNeed(pr, "", "")
		y.call(200, "POST", "/v1/prs/"+pr+"/merge", `{"head_sha": "`+sha+`"}`, nil)
		y.pass(time.Second)
		y.wantState(pr, record.Open)
		y.progressed(pr, sha, 0)
		y.pass(0)
		y.wantState(pr, record.Merged)
	})
}

// Findings hold the merge whoever ordered it, until they are answered. Agents answer them in
// three rounds.
func TestFindingsHoldTheMerge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		open := 2
		y.reviewed(&open)
		y.findings = "1. It is wrong."
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		open = 0
		y.progressed(pr, sha, open)
		y.approve(pr, sha)
		open = 2
		y.progressed(pr, sha, open)
		y.wantTold("task-svc/a", "awaits review")
		y.pass(0)
		got := y.wantState(pr, record.Open)
		if len(y.round) != 1 || got.Babysit.State != record.BabysitReview || got.Babysit.ReviewRoundsUsed != 1 ||
			!strings.Contains(y.round[0].Problem, "1. It is wrong.") || y.round[0].Title != "Answer the review of #1" {
			t.Fatalf("%+v after %+v", got.Babysit, y.round)
		}
		// The round brings a new head. Nobody is asked about it while findings are open.
		sha = y.commit("svc/a", "a", "2\n")
		y.moved("svc/a", sha)
		y.write(func(tx *db.Tx) error { return y.RoundEnded(tx, pr, "round-1", false) })
		y.pass(time.Minute)
		if got = y.wantState(pr, record.Open); got.PendingAction != nil || len(y.round) != 1 {
			t.Errorf("%+v, %d rounds", got.PendingAction, len(y.round))
		}
		// One of them is mended: the next round begins, and there are three in all.
		y.progressed(pr, sha, 1)
		for i := 2; i <= 3; i++ {
			y.pass(time.Hour)
			if len(y.round) != i {
				t.Fatalf("%d rounds, want %d", len(y.round), i)
			}
			y.write(func(tx *db.Tx) error { return y.RoundEnded(tx, pr, "round-"+string(rune('0'+i)), false) })
		}
		// The last one changed nothing, and no other comes: none is announced, and a person is
		// asked without a wait.
		if at := y.pr(pr).Babysit.NextRoundAt; at != nil {
			t.Errorf("the next round is announced for %v", at)
		}
		y.pass(0)
		if got = y.wantState(pr, record.Open); got.Babysit.State != record.BabysitSpent || len(y.round) != 3 || len(y.asked) != 1 {
			t.Errorf("%+v, %d rounds, asked %v", got.Babysit, len(y.round), y.asked)
		}
		y.wantNeed(pr, record.NeedsRearm, "pr.rearm_babysit")
		if words := y.pr(pr).NeedsPerson.ClearsWhen; !strings.HasPrefix(words, "a person dismisses the finding that holds the merge") {
			t.Errorf("it waits until %s", words)
		}
		y.write(func(tx *db.Tx) error {
			of, err := NeedsOf(tx, []string{pr})
			if !strings.HasPrefix(of[pr].ClearsWhen, "a person dismisses the finding") {
				t.Errorf("its task waits until %+v", of)
			}
			return err
		})
		var re Rearmed
		y.call(202, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "Once more."}`, &re)
		if re.Forgiven != 3 || re.Babysit.ReviewRoundsUsed != 1 {
			t.Errorf("%+v", re)
		}
		y.pass(0)
		if len(y.round) != 4 {
			t.Errorf("%d rounds", len(y.round))
		}
		y.write(func(tx *db.Tx) error { return y.RoundEnded(tx, pr, "round-4", false) })
		// A person dismisses the last one: the question is asked.
		y.progressed(pr, sha, 0)
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
		y.approve(pr, sha)
		y.pass(time.Second)
		y.wantState(pr, record.Merged)
	})
}

// A round waits until the review is posted that it answers, for a while: its push would have
// the host refuse the review.
func TestRoundWaitsForThePosting(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.findings = "1. It is wrong."
		now := func() time.Time { return time.UnixMicro(y.clock.Load()) }
		found := func(branch string) (prID string) {
			sha := y.commit(branch, "a", branch)
			prID = y.propose(branch, sha)
			y.pass(0)
			y.posting = now()
			y.progressed(prID, sha, 1)
			return prID
		}
		pr := found("svc/a")
		for range 3 {
			y.pass(sweep)
		}
		if len(y.round) != 0 {
			t.Fatal("a round begins before the review is posted")
		}
		y.posting = time.Time{}
		y.write(func(tx *db.Tx) error { return y.ReviewPosted(tx, pr) })
		y.pass(0)
		if len(y.round) != 1 {
			t.Error("no round begins once it is posted")
		}
		found("svc/b")
		for range 3 {
			y.pass(babysit.PostingFor / 4)
		}
		if len(y.round) != 1 {
			t.Error("a round begins too early")
		}
		y.pass(babysit.PostingFor / 4)
		if len(y.round) != 2 {
			t.Error("a round waits for ever")
		}
	})
}

// A merge that the host has made is recorded, whatever its review says.
func TestMergedBeforeItsReview(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.pass(0)
		y.progressed(pr, sha, 1)
		y.mergeByHand("svc/a")
		y.pass(0)
		y.wantState(pr, record.Merged)
		y.progressed(pr, sha, 3) // changes nothing
		y.wantState(pr, record.Merged)
	})
}

// A head is reviewed only where a review has come to a verdict about it. Findings hold it,
// whatever head they are of.
func TestWhatIsSaidOfAReview(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.pass(0)
		for _, c := range []struct {
			now            ReviewProgress
			state, verdict string
		}{
			{ReviewProgress{Running: true}, record.ReviewRunning, ""},
			{ReviewProgress{Running: true, Held: true}, record.ReviewHeld, ""},
			{ReviewProgress{}, record.ReviewOff, ""},
			{ReviewProgress{Outcome: record.ReviewBlind}, record.ReviewBlind, ""},
			{ReviewProgress{Outcome: record.ReviewFailed}, record.ReviewFailed, ""},
			{ReviewProgress{Outcome: record.ReviewCancelled}, record.ReviewCancelled, ""},
			{ReviewProgress{Findings: 2}, record.ReviewOff, "failure"},
			{ReviewProgress{Outcome: record.ReviewFailed, Findings: 2}, record.ReviewFailed, "failure"},
			{ReviewProgress{Running: true, Outcome: record.ReviewReviewed, Findings: 2}, record.ReviewRunning, "failure"},
			{ReviewProgress{Outcome: record.ReviewReviewed, Findings: 2}, record.ReviewReviewed, "failure"},
			{ReviewProgress{Outcome: record.ReviewReviewed}, record.ReviewReviewed, "success"},
		} {
			y.write(func(tx *db.Tx) error { return y.Progressed(tx, pr, sha, c.now) })
			got, verdict := y.pr(pr).Review, ""
			if got.Verdict != nil {
				verdict = *got.Verdict
			}
			if got.State != c.state || verdict != c.verdict || got.Holding != int64(c.now.Findings) {
				t.Errorf("%+v: %+v, %q", c.now, got, verdict)
			}
		}
	})
}
