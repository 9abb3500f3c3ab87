package pull

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// MoveBranch implements codehost.Mover.
func (f *flaky) MoveBranch(ctx context.Context, r codehost.Repo, branch, from, to string) error {
	if f.move == nil {
		return codehost.ErrCannot
	}
	if head, err := f.Head(ctx, r, branch); err != nil || head != from {
		return errors.Join(err, codehost.ErrHeadMoved)
	}
	return f.move(branch, to)
}

func (y *yard) others(prID string) (all []record.Action) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) { all, err = allOthers.All(tx, prID); return err })
	return all
}

var allOthers = db.Q[record.Action](`SELECT ` + record.ActionColumns + ` FROM pull_actions WHERE pr_id = $1 AND kind <> 'merge' ORDER BY requested_at, id`)

func (y *yard) wish(w Wish) string {
	y.t.Helper()
	return y.asks(func(tx *db.Tx) error { return y.Wish(tx, w) })
}

// What agents ask for is done once a person says yes: at a host that keeps pull requests by
// the host, else in the row.
func TestWishes(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{false, true} {
		onBoth(t, func(t *testing.T, y *yard) {
			k := &keeper{yard: y}
			if kept {
				k = y.keep()
			}
			sha := y.commit("one", "a", "a")
			prID := y.propose("one", sha)
			y.settle()
			if kept {
				y.checkedThere(sha, record.ChecksPassed)
			}
			say := func(verb string, a record.Action) {
				t.Helper()
				y.call(200, "POST", "/v1/prs/"+prID+"/"+verb+"-pending", `{"head_sha": "`+sha+`", "action_id": "`+a.ID+`"}`, nil)
				y.settle()
			}
			if why := y.wish(Wish{prID, record.KindLabel, "needs-docs", "It lacks a page."}); why != "" {
				t.Fatal(why)
			}
			if why := y.wish(Wish{prID, record.KindLabel, "other", "It lacks a page."}); why != "asked_already" {
				t.Errorf("asked twice: %q", why)
			}
			var merge record.PendingAction
			y.write(func(tx *db.Tx) error { a, err := record.OpenAction.One(tx, prID); merge = a.Wire(); return err })
			if merge.Kind != record.KindMerge || merge.State != record.ActionPending {
				t.Errorf("the merge is asked about beside it: %+v", merge)
			}
			a := y.others(prID)[0]
			q := a.Wire()
			if q.Question != `Put the label "needs-docs" on this pull request? The agent says: It lacks a page.` || *q.Label != "needs-docs" {
				t.Errorf("%+v", q)
			}
			say("approve", a)
			if pr := y.row(prID); !slices.Equal(pr.Labels.V, []string{"needs-docs"}) || y.others(prID)[0].State != record.ActionApplied {
				t.Errorf("labels %v, %s", pr.Labels.V, y.others(prID)[0].State)
			}
			if why := y.wish(Wish{prID, record.KindReopen, "", "x"}); why != "wrong_state" {
				t.Errorf("an open one is to be reopened: %q", why)
			}
			if why := y.wish(Wish{prID, record.KindClose, "", "It is of no use."}); why != "" {
				t.Fatal(why)
			}
			say("skip", y.others(prID)[1])
			if got := y.others(prID)[1].State; got != record.ActionSkipped || y.row(prID).State != record.Open {
				t.Errorf("declined: %s", got)
			}
			y.wish(Wish{prID, record.KindClose, "", "It really is of no use."})
			say("approve", y.others(prID)[2])
			pr := y.row(prID)
			if pr.State != record.Closed || pr.ClosedWhy != record.ClosedAsked || y.others(prID)[2].State != record.ActionApplied || kept &&
				len(k.closed) != 1 {
				t.Errorf("%s %s, %s, %v", pr.State, pr.ClosedWhy, y.others(prID)[2].State, k.closed)
			}
			y.wish(Wish{prID, record.KindReopen, "", "It is of use after all."})
			say("approve", y.others(prID)[3])
			if pr := y.row(prID); pr.State != record.Open || y.others(prID)[3].State != record.ActionApplied {
				t.Errorf("%s, %s", pr.State, y.others(prID)[3].State)
			}
			y.wish(Wish{prID, record.KindClose, "", "Stale in a moment."})
			next := y.commit("one", "a", "b")
			y.moved("one", next)
			if got := y.others(prID)[4].State; got != record.ActionStale {
				t.Errorf("the head has moved: %s", got)
			}
			y.wish(Wish{prID, record.KindClose, "", "Nobody answers."})
			y.pass(record.AskFor + time.Second)
			if got := y.others(prID)[5].State; got != record.ActionExpired {
				t.Errorf("nobody has answered: %s", got)
			}
			if !kept {
				return
			}
			sha = next
			k.edit = errors.New("no")
			y.wish(Wish{prID, record.KindClose, "", "The host refuses."})
			say("approve", y.others(prID)[6])
			if a := y.others(prID)[6]; a.State != record.ActionFailed || a.Error == nil || y.row(prID).State != record.Open {
				t.Errorf("the host refuses: %+v", a)
			}
		})
	}
}

// What agents ask for is checked, whatever their box says.
func TestWishesAreChecked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		prID := y.propose("one", y.commit("one", "a", "a"))
		for _, w := range []Wish{
			{prID, record.KindMerge, "", "x"}, {prID, record.KindPush, "", "x"}, {prID, "delete", "", "x"},
			{prID, record.KindLabel, "", "x"},
			{prID, record.KindLabel, " ", "x"},
			{prID, record.KindLabel, strings.Repeat("x", 51), "x"}, {prID, record.KindLabel, "a\u202eb", "x"},
			{prID, record.KindClose, "label", "x"},
			{prID, record.KindClose, "", ""}, {prID, record.KindClose, "", strings.Repeat("x", 501)},
			{prID, record.KindClose, "", "a\x00b"},
			{"0199d3a4-5b6c-7d8e-9f01-23456789abcd", record.KindClose, "", "x"},
		} {
			if err := y.DB.Write(y.ctx(), func(tx *db.Tx) error { return y.Wish(tx, w) }); err == nil {
				t.Errorf("%+v is asked", w)
			}
		}
		if err := y.DB.Write(db.WithAccount(y.ctx(), "rival"), func(tx *db.Tx) error {
			return y.Wish(tx, Wish{prID, record.KindClose, "", "x"})
		}); err == nil {
			t.Error("a rival asks")
		}
		if n := len(y.others(prID)); n != 0 {
			t.Errorf("%d asked", n)
		}
	})
}

// A round on the branch of a person works on a branch of its own, and asks before its work
// gets to theirs.
func TestPushIsAsked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		y.host.move = func(branch, to string) error { y.push("+" + to + ":refs/heads/" + branch); return nil }
		prID, p := k.theirs()
		if why := y.asks(func(tx *db.Tx) error { return y.Watch(tx, prID, "x") }); why != "" {
			t.Fatal(why)
		}
		y.commit("main", "a", "clash")
		y.write(func(tx *db.Tx) error { return y.Recheck(tx, y.repo) })
		y.checkedThere(p.HeadSHA, record.ChecksPassed)
		y.settle()
		if len(y.round) != 1 || y.round[0].Start != p.HeadSHA || !strings.HasPrefix(y.round[0].Branch, "svc/round-") {
			t.Fatalf("%+v", y.round)
		}
		// work is a commit of the round on its branch, and the end of its task.
		work := func(round int, text string) (sha string) {
			t.Helper()
			branch := y.round[round].Branch
			y.git("branch", branch, y.round[round].Start)
			sha = y.commit(branch, "fixed", text)
			task := []string{"round-1", "round-2", "round-3"}[round]
			y.write(func(tx *db.Tx) error {
				apart, err := y.RoundPushed(tx, prID, task, branch, sha)
				if err != nil || !apart {
					t.Errorf("pushed apart: %v %v", apart, err)
				}
				return y.RoundEnded(tx, prID, task, false)
			})
			for range 2 {
				y.settle()
			}
			return sha
		}
		sha := work(0, "1")
		pr, a := y.row(prID), y.others(prID)[0]
		if pr.HeadSHA != p.HeadSHA || pr.Needs != record.NeedsPush || a.State != record.ActionPending || a.Kind != record.KindPush ||
			len(y.round) != 1 {
			t.Fatalf("%s, %+v, %d rounds", pr.Needs, a, len(y.round))
		}
		if q := y.pr(prID); q.PendingAction.Kind != record.KindPush || q.NeedsPerson.Args["action_id"] != a.ID ||
			*q.PendingAction.PushSHA != sha {
			t.Errorf("shown: %+v, %+v", q.PendingAction, q.NeedsPerson)
		}
		y.refused("question_changed", prID, "approve", pr.HeadSHA)
		say := func(verb, head string) {
			t.Helper()
			all := y.others(prID)
			body := `{"head_sha": "` + head + `", "action_id": "` + all[len(all)-1].ID + `"}`
			y.call(200, "POST", "/v1/prs/"+prID+"/"+verb+"-pending", body, nil)
		}
		say("approve", pr.HeadSHA)
		y.settle()
		if got := y.git("ls-remote", filepath.Join(y.root, "acme", "web.git"), "refs/heads/theirs"); !strings.HasPrefix(got, sha) {
			t.Errorf("the branch is at %s, want %s", got, sha)
		}
		y.settle()
		if pr = y.row(prID); pr.HeadSHA != sha || y.others(prID)[0].State != record.ActionApplied {
			t.Errorf("at %s, %s", pr.HeadSHA, y.others(prID)[0].State)
		}
		if got := y.git("ls-remote", filepath.Join(y.root, "acme", "web.git"), "refs/heads/svc/*"); got != "" {
			t.Errorf("branches are left: %s", got)
		}
		y.checkedThere(sha, record.ChecksPassed)
		for range 3 {
			y.pass(20 * time.Minute)
		}
		if len(y.round) != 2 {
			t.Fatalf("%d rounds", len(y.round))
		}
		sha = work(1, "2")
		say("skip", y.row(prID).HeadSHA)
		y.settle()
		pr = y.row(prID)
		if pr.Babysit != record.BabysitSpent || pr.Needs != record.NeedsRearm || pr.HeadSHA == sha ||
			y.others(prID)[1].State != record.ActionSkipped {
			t.Errorf("declined: %s %s %s", pr.Babysit, pr.Needs, y.others(prID)[1].State)
		}
		y.call(202, "POST", "/v1/prs/"+prID+"/rearm-babysit", `{"reason": "Again."}`, nil)
		y.settle()
		if len(y.round) != 3 {
			t.Fatalf("%d rounds after it was armed", len(y.round))
		}
		work(2, "3")
		theirs := y.commit("theirs", "own", "by hand")
		at := y.row(prID).HeadSHA
		say("approve", at)
		y.settle()
		if a := y.others(prID)[2]; a.State != record.ActionStale {
			t.Errorf("the person has pushed meanwhile: %s", a.State)
		}
		if got := y.git("ls-remote", filepath.Join(y.root, "acme", "web.git"), "refs/heads/theirs"); !strings.HasPrefix(got, theirs) {
			t.Errorf("what the person has pushed is lost: %s", got)
		}
	})
}

// The policy may have agents push at once, or never.
func TestPushPolicy(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		for mode, rounds := range map[string]int{"auto": 1, "never": 0} {
			y.policy("version: 1\npulls: {watch: all, push: " + mode + "}\n")
			y.round = nil
			sha := y.commit(mode, "a", mode)
			p := k.add(codehost.Pull{HeadRef: mode, HeadSHA: sha, BaseRef: "main", Author: codehost.User{Login: "bob"}})
			k.says(p)
			y.commit("main", "a", "clash with "+mode)
			y.write(func(tx *db.Tx) error { return y.Recheck(tx, y.repo) })
			y.checkedThere(sha, record.ChecksPassed)
			y.settle()
			if len(y.round) != rounds || rounds > 0 && y.round[0].Branch != mode {
				t.Errorf("%s: %+v", mode, y.round)
			}
			var prID string
			y.write(func(tx *db.Tx) (err error) { prID, err = record.ByNumber.One(tx, "acme", k.repo, p.Number); return err })
			if pr := y.row(prID); mode == "never" && pr.Needs != record.NeedsHands {
				t.Errorf("%s: needs %q", mode, pr.Needs)
			}
			y.write(func(tx *db.Tx) error { return y.Unwatch(tx, prID, "x") })
		}
	})
}

// No round works on the default branch, whatever the policy says of pushes: what it changes
// there, such as the policy, would be judged by no merge.
func TestNoRoundOnTheDefaultBranch(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"auto", "ask"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				k := y.keep()
				y.policy("version: 1\npulls: {watch: all, push: " + mode + "}\n")
				y.git("branch", "release", "main")
				y.push("release")
				sha := y.commit("main", "a", "next")
				p := k.add(codehost.Pull{HeadRef: "main", HeadSHA: sha, BaseRef: "release", Author: codehost.User{Login: "bob"}})
				k.says(p)
				y.commit("release", "a", "clash")
				y.write(func(tx *db.Tx) error { return y.Recheck(tx, y.repo) })
				y.checkedThere(sha, record.ChecksPassed)
				y.settle()
				var prID string
				y.write(func(tx *db.Tx) (err error) { prID, err = record.ByNumber.One(tx, "acme", k.repo, p.Number); return err })
				if pr := y.row(prID); len(y.round) != 0 || pr.Babysit != record.BabysitWatching || pr.Needs != record.NeedsHands {
					t.Errorf("%d rounds, %s, needs %s", len(y.round), pr.Babysit, pr.Needs)
				}
				if why := y.asks(func(tx *db.Tx) error { return y.TakeBase(tx, prID) }); why != "default_branch" {
					t.Errorf("a rebase that somebody asks for: %q", why)
				}
			})
		})
	}
}
