package pull

import (
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// A round for which the queue of the account has no room says so, since when, and begins once
// there is room; nothing is written meanwhile but the time of the next try.
func TestFullQueueIsSaid(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		prID := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		waits := func() (w Wait, is bool) {
			y.write(func(tx *db.Tx) error {
				all, err := Waits(tx, []string{prID})
				w, is = all[prID]
				return err
			})
			return w, is
		}
		y.full = true
		y.checked(y.check[0], &one)
		since := time.UnixMicro(y.clock.Load())
		for range 3 {
			b := y.pr(prID).Babysit
			if b.QueueFullSince == nil || !b.QueueFullSince.Equal(since) || b.NextRoundAt != nil || b.State != record.BabysitWatching {
				t.Fatalf("while the queue is full: %+v", b)
			}
			if w, is := waits(); !is || !w.Full || !w.Since.Equal(since) {
				t.Errorf("it waits: %+v", w)
			}
			y.pass(sweep)
		}
		y.full = false
		y.pass(sweep)
		if b := y.pr(prID).Babysit; b.State != record.BabysitCI || b.QueueFullSince != nil {
			t.Errorf("when there is room: %+v", b)
		}
		if w, is := waits(); is {
			t.Errorf("when there is room, it waits: %+v", w)
		}
	})
}

// A wait for room ends with its trouble.
func TestFullQueueOfAnOldHead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		prID := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.full = true
		y.checked(y.check[0], &one)
		y.moved("svc/a", y.commit("svc/a", "a", "2\n"))
		if b := y.pr(prID).Babysit; b.QueueFullSince != nil {
			t.Errorf("a newer head: %+v", b)
		}
		y.checked(y.check[1], &zero)
		y.wantNeed(prID, record.NeedsDecision, "pr.approve_pending")
	})
}

// A host that does not let the branches be read is said to refuse that, and the pull request
// goes on by itself once it does.
func TestUnreadableBranches(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		sha := y.commit("svc/a", "a", "1\n")
		prID := y.green("svc/a", sha)
		y.host.hidden = &codehost.ForbiddenError{Permission: "contents: read"}
		y.moved("main", y.commit("main", "b", "b"))
		y.wantNeed(prID, record.NeedsPermission, "")
		if len(y.asked) != 1 || y.asked[0] != "code_host_permission" {
			t.Errorf("people were told of %v", y.asked)
		}
		y.pass(sweep)
		y.wantNeed(prID, record.NeedsPermission, "")
		y.host.hidden = nil
		y.pass(sweep)
		y.wantNeed(prID, record.NeedsDecision, "pr.approve_pending")
	})
}
