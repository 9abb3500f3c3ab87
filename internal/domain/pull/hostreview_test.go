package pull

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// Permission implements codehost.Forge. Who is not named may not even read.
func (k *keeper) Permission(_ context.Context, _ codehost.Repo, login string) (codehost.Permission, error) {
	return k.may[login], k.away
}

// Threads implements codehost.Forge.
func (k *keeper) Threads(context.Context, codehost.Repo, int64) ([]codehost.Thread, error) {
	return k.threads, nil
}

// Pull implements codehost.Forge.
func (k *keeper) Pull(_ context.Context, _ codehost.Repo, n int64, _ codehost.Tag) (codehost.Pull, codehost.Tag, error) {
	if n < 1 || int(n) > len(k.pulls) {
		return codehost.Pull{}, "", codehost.ErrNotFound
	}
	return k.pulls[n-1], "", nil
}

// reviewed delivers a review of the first pull request.
func (k *keeper) reviewed(action codehost.Action, key, login, state, sha string) error {
	k.t.Helper()
	who := codehost.User{Login: login, ID: k.ids[login], Bot: strings.HasSuffix(login, "[bot]")}
	return k.deliver(codehost.ReviewPosted{
		Happening: codehost.Happening{Repo: webRepo, Action: action, By: who}, Number: 1,
		Review: codehost.Review{ID: key, Author: who, State: state, HeadSHA: sha, Body: "Not so."},
	})
}

func (k *keeper) deliver(e codehost.ReviewPosted) error {
	k.t.Helper()
	var r repo.Ref
	k.write(func(tx *db.Tx) (err error) { r, _, err = repo.ByID(tx, k.repo); return err })
	return k.HostReviewed(k.ctx(), r, e)
}

// open1 has the first pull request open, with a head that has passed.
func (k *keeper) open1() (prID, sha string) {
	k.t.Helper()
	sha = k.commit("one", "a", "a")
	prID = k.propose("one", sha)
	k.settle()
	k.checkedThere(sha, record.ChecksPassed)
	k.wantActions(prID, "pending")
	return prID, sha
}

func (y *yard) action(prID string) (a record.Action) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) { a, _, err = record.OpenAction.Maybe(tx, prID); return err })
	return a
}

// An approval at the host answers the question, once, for the head that it names.
func TestHostApproves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.may = map[string]codehost.Permission{"ann": codehost.PermitWrite, "ada": codehost.PermitAdmin}
		k.ids = map[string]string{"ada": "known-ada"}
		prID, sha := k.open1()
		if err := k.reviewed(codehost.ActionSubmitted, "1", "ann", "approved", sha); err != nil {
			t.Fatal(err)
		}
		a := y.action(prID)
		if a.State != record.ActionApproved || *a.DecidedBy != "code-host:ann" {
			t.Fatalf("approved: %+v", a)
		}
		if err := k.reviewed(codehost.ActionDismissed, "1", "ann", "dismissed", sha); err != nil {
			t.Fatal(err)
		}
		if a = y.action(prID); a.State != record.ActionPending {
			t.Fatalf("dismissed: %+v", a)
		}
		if err := k.reviewed(codehost.ActionSubmitted, "1", "ann", "approved", sha); err != nil { // the same delivery again
			t.Fatal(err)
		}
		y.wantActions(prID, "stale pending")
		if err := k.reviewed(codehost.ActionSubmitted, "2", "ada", "approved", sha); err != nil {
			t.Fatal(err)
		}
		if a = y.action(prID); *a.DecidedBy != "user:ada" {
			t.Errorf("a user of ours: %s", *a.DecidedBy)
		}
		y.settle()
		if pr := y.row(prID); pr.State != record.Merged || *pr.MergedBy != "user:ada" {
			t.Errorf("%s", pr.State)
		}
	})
}

// A review that is known costs no question to its host.
func TestKnownReview(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.may = map[string]codehost.Permission{"ann": codehost.PermitWrite}
		_, sha := k.open1()
		if err := k.reviewed(codehost.ActionSubmitted, "1", "ann", "approved", sha); err != nil {
			t.Fatal(err)
		}
		k.away = &codehost.BusyError{}
		if err := k.reviewed(codehost.ActionSubmitted, "1", "ann", "approved", sha); err != nil {
			t.Errorf("the known one: %v", err)
		}
		if err := k.reviewed(codehost.ActionSubmitted, "2", "ann", "approved", sha); err == nil {
			t.Error("a new one counts without a word of the host")
		}
	})
}

// An order stands on the last approval of its person: one that replaces the approval which
// has ordered the merge takes it back, once it is dismissed or followed by an objection.
func TestSecondApprovalIsWithdrawn(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"dismissed", "changes_requested"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				k := y.keep()
				k.may = map[string]codehost.Permission{"ann": codehost.PermitWrite}
				prID, sha := k.open1()
				for _, key := range []string{"1", "2"} {
					if err := k.reviewed(codehost.ActionSubmitted, key, "ann", "approved", sha); err != nil {
						t.Fatal(err)
					}
				}
				if y.action(prID).State != record.ActionApproved {
					t.Fatal("it is not approved")
				}
				action, key := codehost.ActionDismissed, "2"
				if end != record.ReviewDismissed {
					action, key = codehost.ActionSubmitted, "3"
				}
				if err := k.reviewed(action, key, "ann", end, sha); err != nil {
					t.Fatal(err)
				}
				if end == "changes_requested" {
					if err := k.reviewed(codehost.ActionDismissed, key, "ann", "dismissed", sha); err != nil {
						t.Fatal(err)
					}
				}
				y.settle()
				if pr := y.row(prID); pr.State != record.Open || y.action(prID).State == record.ActionApproved {
					t.Errorf("%s, its order is %q", pr.State, y.action(prID).State)
				}
			})
		})
	}
}

// An approval that comes before the checks have passed counts then; dismissed, it does not.
func TestHostApprovesEarly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.may = map[string]codehost.Permission{"ann": codehost.PermitWrite, "bea": codehost.PermitWrite}
		sha := y.commit("one", "a", "a")
		prID := y.propose("one", sha)
		y.settle()
		for i, action := range []codehost.Action{codehost.ActionDismissed, codehost.ActionSubmitted, codehost.ActionSubmitted} {
			key := "1" // the first is out of order
			if i == 2 {
				key = "2"
			}
			if err := k.reviewed(action, key, "ann", "approved", sha); err != nil {
				t.Fatal(err)
			}
		}
		y.checkedThere(sha, record.ChecksPassed)
		if a := y.action(prID); a.State != record.ActionApproved || *a.DecidedBy != "code-host:ann" {
			t.Fatalf("approved before: %+v", a)
		}
		if err := k.reviewed(codehost.ActionSubmitted, "3", "ann", "changes_requested", sha); err != nil {
			t.Fatal(err)
		}
		y.wantActions(prID, "stale")
		for range 3 {
			y.settle()
		}
		if pr := y.row(prID); pr.State != record.Open || len(y.round) != 1 || !strings.Contains(y.round[0].Problem, "Not so.") {
			t.Errorf("%s, rounds %v", pr.State, y.round)
		}
		y.write(func(tx *db.Tx) error { return y.RoundEnded(tx, prID, "round-1", false) })
		if pr := y.row(prID); pr.Needs != record.NeedsDecision || pr.Objections != 1 || pr.Remarks != 0 {
			t.Errorf("after the round: %s %d %d", pr.Needs, pr.Objections, pr.Remarks)
		}
		if err := k.reviewed(codehost.ActionSubmitted, "4", "bea", "approved", sha); err != nil { // another person takes nothing back
			t.Fatal(err)
		}
		if pr := y.row(prID); pr.Needs != record.NeedsChanges {
			t.Errorf("another approves: %s", pr.Needs)
		}
		y.settle()
		if pr := y.row(prID); pr.State != record.Open {
			t.Fatal("merged although somebody requests changes")
		}
		if err := k.reviewed(codehost.ActionDismissed, "3", "ann", "dismissed", sha); err != nil {
			t.Fatal(err)
		}
		y.settle()
		if pr := y.row(prID); pr.State != record.Merged || *pr.MergedBy != "code-host:bea" {
			t.Errorf("%s, needs %s", pr.State, pr.Needs)
		}
	})
}

// What is no approval of somebody who may decide, for this head, decides nothing.
func TestHostApprovalsThatDoNotCount(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.may = map[string]codehost.Permission{
			"ann": codehost.PermitWrite, "reader": codehost.PermitTriage, "asker-task-one": codehost.PermitAdmin,
			"yard[bot]": codehost.PermitAdmin,
			"low":       codehost.PermitAdmin, "asker": codehost.PermitAdmin, "Yard": codehost.PermitAdmin,
		}
		k.ids = map[string]string{"low": "barred", "asker": "known-asker"}
		prID, sha := k.open1()
		old := y.git("rev-parse", "main")
		y.write(func(tx *db.Tx) error {
			_, err := setAuthor.Exec(tx, prID, "Yard")
			return err
		})
		for i, c := range []struct {
			action                    codehost.Action
			login, state, sha, counts string
		}{
			{codehost.ActionSubmitted, "stranger", "approved", sha, record.NotAllowed},
			{codehost.ActionSubmitted, "reader", "approved", sha, record.NotAllowed},
			{codehost.ActionSubmitted, "low", "approved", sha, record.NotAllowed},
			{codehost.ActionSubmitted, "yard[bot]", "approved", sha, record.NotPerson},
			{codehost.ActionSubmitted, "yard", "approved", sha, record.NotAllowed},
			{codehost.ActionSubmitted, "Yard", "approved", sha, record.OfAuthor},
			{codehost.ActionSubmitted, "asker-task-one", "approved", sha, record.OfAsker},
			{codehost.ActionSubmitted, "asker", "approved", sha, record.OfAsker},
			{codehost.ActionSubmitted, "ann", "approved", old, record.OtherHead},
			{codehost.ActionEdited, "ann", "approved", sha, record.NotFirst},
			{codehost.ActionSubmitted, "reader", "changes_requested", sha, record.NotAllowed},
		} {
			key := string(rune('a' + i))
			if err := k.reviewed(c.action, key, c.login, c.state, c.sha); err != nil {
				t.Fatal(err)
			}
			var got record.HostReviewRow
			y.write(func(tx *db.Tx) (err error) { got, err = record.HostReview.One(tx, "acme", prID, key); return err })
			if got.Counts != c.counts {
				t.Errorf("%v counts: %s", c, got.Counts)
			}
			if c.action == codehost.ActionEdited { // its submission comes late, and is not the first
				if err := k.reviewed(codehost.ActionSubmitted, key, c.login, c.state, c.sha); err != nil {
					t.Fatal(err)
				}
			}
			if pr := y.row(prID); pr.Objections != 0 || y.action(prID).State != record.ActionPending {
				t.Fatalf("%v decides", c)
			}
		}
		if err := k.reviewed(codehost.ActionSubmitted, "x", "ann", "commented", sha); err != nil ||
			y.action(prID).State != record.ActionPending {
			t.Errorf("a comment decides: %v", err)
		}
		other := codehost.User{Login: "reader"} // the sender is not the author
		e := codehost.ReviewPosted{Happening: codehost.Happening{Repo: webRepo, Action: codehost.ActionSubmitted, By: other}, Number: 1,
			Review: codehost.Review{ID: "y", Author: codehost.User{Login: "ann"}, State: "approved", HeadSHA: sha}}
		if err := k.deliver(e); err != nil || y.action(prID).State != record.ActionPending {
			t.Errorf("a borrowed name decides: %v", err)
		}
		k.away = &codehost.BusyError{Cause: errors.New("away")}
		if err := k.reviewed(codehost.ActionSubmitted, "z", "ann", "approved", sha); err == nil {
			t.Error("a review is dropped while the host does not say what its author may do")
		}
		k.away = codehost.ErrGone
		if err := k.reviewed(codehost.ActionSubmitted, "z", "ann", "approved", sha); err != nil ||
			y.action(prID).State != record.ActionPending {
			t.Errorf("it counts although the host does not say: %v", err)
		}
	})
}

// A question about what is protected is not answered at the host, and an approval before it
// is known does not cover what is found.
func TestHostApprovalOfProtected(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.may = map[string]codehost.Permission{"ann": codehost.PermitWrite}
		y.policy("version: 1\n")
		sha := y.commit("one", ".svc/policy.yml", "version: 1\nmerge: {mode: auto}\n")
		prID := y.propose("one", sha)
		y.settle()
		if err := k.reviewed(codehost.ActionSubmitted, "1", "ann", "approved", sha); err != nil {
			t.Fatal(err)
		}
		y.checkedThere(sha, record.ChecksPassed)
		for range 3 {
			y.settle()
		}
		a := y.action(prID)
		if pr := y.row(prID); pr.State != record.Open || a.State != record.ActionPending || a.Protected == nil {
			t.Fatalf("%s %+v", pr.State, a)
		}
		if err := k.reviewed(codehost.ActionSubmitted, "2", "ann", "approved", sha); err != nil {
			t.Fatal(err)
		}
		if a = y.action(prID); a.State != record.ActionPending {
			t.Errorf("answered at the host: %s", a.State)
		}
	})
}

// A review whose head the server does not know yet waits for nothing: the host is asked.
func TestHostApprovesBeforeThePushIsKnown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.may = map[string]codehost.Permission{"ann": codehost.PermitWrite}
		prID, _ := k.open1()
		next := y.commit("one", "a", "b")
		y.push("one")
		k.pulls[0].HeadSHA = next
		k.pulls[0].UpdatedAt = k.pulls[0].UpdatedAt.Add(1e9)
		if err := k.reviewed(codehost.ActionSubmitted, "1", "ann", "approved", next); err != nil {
			t.Fatal(err)
		}
		y.checkedThere(next, record.ChecksPassed)
		y.settle()
		if a := y.action(prID); a.HeadSHA != "" && (a.HeadSHA != next || a.State != record.ActionApproved) {
			t.Errorf("%+v", a)
		}
		for range 2 {
			y.settle()
		}
		if pr := y.row(prID); pr.State != record.Merged || pr.HeadSHA != next {
			t.Errorf("%s at %s", pr.State, pr.HeadSHA)
		}
	})
}

var setAuthor = db.S(`UPDATE pulls SET author = $2 WHERE id = $1`)

// Of the reviews of one person the latest counts, in whichever order they are delivered.
func TestReviewsOutOfOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.may = map[string]codehost.Permission{"ann": codehost.PermitWrite, "bob": codehost.PermitWrite}
		prID, sha := k.open1()
		give := func(action codehost.Action, key, login, state string, at int) {
			t.Helper()
			who := codehost.User{Login: login}
			if err := k.deliver(codehost.ReviewPosted{
				Happening: codehost.Happening{Repo: webRepo, Action: action, By: who}, Number: 1,
				Review: codehost.Review{
					ID: key, Author: who, State: state, HeadSHA: sha, SubmittedAt: time.Unix(1_800_000_000+int64(at), 0),
				},
			}); err != nil {
				t.Fatal(err)
			}
		}
		give(codehost.ActionSubmitted, "2", "ann", record.ReviewObjects, 20)
		give(codehost.ActionSubmitted, "1", "ann", record.ReviewApproved, 10)
		if pr := y.row(prID); pr.Objections != 1 || y.action(prID).State == record.ActionApproved {
			t.Errorf("an older approval: %d objections, %s", pr.Objections, y.action(prID).State)
		}
		give(codehost.ActionDismissed, "2", "ann", record.ReviewDismissed, 20)
		if pr := y.row(prID); pr.Objections != 0 || y.action(prID).State == record.ActionApproved {
			t.Errorf("dismissed: %d objections, %s", pr.Objections, y.action(prID).State)
		}
		give(codehost.ActionSubmitted, "4", "bob", record.ReviewApproved, 40)
		give(codehost.ActionSubmitted, "3", "bob", record.ReviewObjects, 30)
		if pr := y.row(prID); pr.Objections != 0 || y.action(prID).State != record.ActionApproved {
			t.Errorf("an older objection: %d objections, %s", pr.Objections, y.action(prID).State)
		}
	})
}
