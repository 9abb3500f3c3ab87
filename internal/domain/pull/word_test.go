package pull

import (
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/fault"
)

// theirs has a pull request of a person open, which nobody looks after.
func (k *keeper) theirs() (prID string, p codehost.Pull) {
	k.t.Helper()
	sha := k.commit("theirs", "a", "a")
	p = k.add(codehost.Pull{Title: "Mine", HeadRef: "theirs", HeadSHA: sha, BaseRef: "main", Author: codehost.User{Login: "bob"}})
	k.says(p)
	k.write(func(tx *db.Tx) (err error) { prID, err = record.ByNumber.One(tx, "acme", k.repo, p.Number); return err })
	k.settle()
	return prID, p
}

// asks runs a command on a pull request, and answers the reason why it was refused.
func (y *yard) asks(fn func(tx *db.Tx) error) string {
	y.t.Helper()
	err := y.DB.Write(y.ctx(), fn)
	if err == nil {
		return ""
	}
	if f := fault.From(err); f.Kind == fault.Conflict {
		return f.Slug
	}
	y.t.Fatal(err)
	return ""
}

// A person has agents look after a pull request that the policy leaves alone, and leave it
// alone again. What they said outlasts later news of its labels.
func TestWatchedOnRequest(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		prID, p := k.theirs()
		y.checkedThere(p.HeadSHA, record.ChecksFailed)
		y.settle()
		if len(y.round) != 0 {
			t.Fatal("it is looked after before")
		}
		if why := y.asks(func(tx *db.Tx) error { return y.Watch(tx, prID, "code-host:bob") }); why != "" {
			t.Fatal(why)
		}
		k.says(p)
		y.settle()
		if pr := y.row(prID); pr.Babysit == record.BabysitOff || pr.Watch != record.WatchOn {
			t.Fatalf("watched: %s %s", pr.Babysit, pr.Watch)
		}
		y.checkedThere(p.HeadSHA, record.ChecksPassed)
		y.settle()
		y.wantActions(prID, "pending")
		if why := y.asks(func(tx *db.Tx) error { return y.Unwatch(tx, prID, "code-host:bob") }); why != "" {
			t.Fatal(why)
		}
		y.wantActions(prID, "stale")
		p.Labels = []string{"yardmaster"}
		k.says(p)
		for range 3 {
			y.settle()
		}
		if pr := y.row(prID); pr.Babysit != record.BabysitOff || pr.Needs != "" {
			t.Errorf("a label counts against what a person said: %s, needs %s", pr.Babysit, pr.Needs)
		}
		y.wantActions(prID, "stale")
		if why := y.asks(func(tx *db.Tx) error { return y.Watch(tx, prID, "code-host:bob") }); why != "" {
			t.Fatal(why)
		}
		y.wantActions(prID, "stale pending")
		p.Open = false
		k.says(p)
		for _, fn := range []func(tx *db.Tx) error{
			func(tx *db.Tx) error { return y.Watch(tx, prID, "x") },
			func(tx *db.Tx) error { return y.Unwatch(tx, prID, "x") },
			func(tx *db.Tx) error { return y.TakeBase(tx, prID) },
		} {
			if why := y.asks(fn); why != "pr_not_open" {
				t.Errorf("a closed one: %q", why)
			}
		}
	})
}

// The pull request of an agent that is stopped has no round, and nothing is asked about it
// until a person has agents go on.
func TestStopped(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nchecks: {command: make}\n")
		sha := y.commit("one", "a", "a")
		prID := y.propose("one", sha)
		y.checked(y.check[0], new(1))
		if len(y.round) != 1 {
			t.Fatalf("%d rounds", len(y.round))
		}
		if why := y.asks(func(tx *db.Tx) error { return y.Watch(tx, prID, "x") }); why != "round_under_way" {
			t.Errorf("watched within a round: %q", why)
		}
		if why := y.asks(func(tx *db.Tx) error { return y.Unwatch(tx, prID, "x") }); why != "" {
			t.Fatal(why)
		}
		if !slices.Equal(y.stopped, []string{"round-1"}) {
			t.Errorf("stopped %v", y.stopped)
		}
		y.write(func(tx *db.Tx) error { return y.RoundEnded(tx, prID, "round-1", true) })
		y.moved("one", y.commit("one", "a", "b"))
		y.checked(y.check[1], new(0))
		for range 3 {
			y.pass(time.Second)
		}
		if pr := y.row(prID); pr.Needs != record.NeedsStopped || len(y.round) != 1 || y.action(prID).ID != "" {
			t.Errorf("needs %s, %d rounds, asked %q", pr.Needs, len(y.round), y.action(prID).ID)
		}
		y.call(202, "POST", "/v1/prs/"+prID+"/rearm-babysit", `{"reason": "Go on."}`, nil)
		if pr := y.row(prID); pr.Needs != record.NeedsDecision || y.action(prID).State != record.ActionPending {
			t.Errorf("armed again: %s", pr.Needs)
		}
	})
}

// A round that somebody asks for brings the base in, and leaves the watch as it was.
func TestTakeBase(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		prID, p := k.theirs()
		y.checkedThere(p.HeadSHA, record.ChecksPassed)
		take := func(tx *db.Tx) error { return y.TakeBase(tx, prID) }
		if why := y.asks(take); why != "up_to_date" {
			t.Errorf("nothing to bring in: %q", why)
		}
		y.commit("main", "b", "b")
		y.write(func(tx *db.Tx) error { return y.Recheck(tx, y.repo) })
		y.settle()
		if why := y.asks(take); why != "" {
			t.Fatal(why)
		}
		if len(y.round) != 1 || y.round[0].Start != p.HeadSHA || !strings.Contains(y.round[0].Problem, "origin/main") {
			t.Fatalf("%+v", y.round)
		}
		if why := y.asks(take); why != "round_under_way" {
			t.Errorf("twice: %q", why)
		}
		y.write(func(tx *db.Tx) error { return y.RoundEnded(tx, prID, "round-1", false) })
		if pr := y.row(prID); pr.Babysit != record.BabysitOff || pr.ConflictRounds != 1 {
			t.Errorf("after it: %s", pr.Babysit)
		}
		y.settle()
		if a := y.action(prID); a.ID != "" {
			t.Error("a person is asked about what nobody watches")
		}
		fork := k.add(codehost.Pull{HeadRef: "theirs", HeadSHA: p.HeadSHA, BaseRef: "main", Author: p.Author, Fork: true})
		k.says(fork)
		var forked string
		y.write(func(tx *db.Tx) (err error) {
			forked, err = record.ByNumber.One(tx, "acme", k.repo, fork.Number)
			return err
		})
		for _, fn := range []func(tx *db.Tx) error{
			func(tx *db.Tx) error { return y.Watch(tx, forked, "x") },
			func(tx *db.Tx) error { return y.TakeBase(tx, forked) },
		} {
			if why := y.asks(fn); why != "fork" {
				t.Errorf("a fork: %q", why)
			}
		}
	})
}
