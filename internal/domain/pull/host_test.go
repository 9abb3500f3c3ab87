package pull

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// keeper is a forge that keeps the pull requests of a yard's repository.
type keeper struct {
	codehost.NoForge
	*yard
	pulls       []codehost.Pull // the nth has the number n
	open, merge error
	closed      []int64
	may         map[string]codehost.Permission
	ids         map[string]string // of people at the host
	away, edit  error
	threads     []codehost.Thread
}

// keep has the host of a yard keep pull requests.
func (y *yard) keep() *keeper {
	k := &keeper{yard: y}
	y.Hosts.Set(codehost.BuiltIn, codehost.Sides{Host: y.host, Forge: k})
	return k
}

// Can implements codehost.Forge.
func (*keeper) Can(c codehost.Capability) bool { return c == codehost.KeepPulls }

// OpenPull implements codehost.Forge.
func (k *keeper) OpenPull(_ context.Context, _ codehost.Repo, _ codehost.Once, n codehost.NewPull) (codehost.Pull, error) {
	if k.open != nil {
		return codehost.Pull{}, k.open
	}
	return k.add(codehost.Pull{
		Title: n.Title, Body: n.Body, HeadRef: n.Head, HeadSHA: k.git("rev-parse", n.Head), BaseRef: n.Base,
		Author: codehost.User{Login: "yard[bot]", Bot: true, Own: true},
	}), nil
}

func (k *keeper) add(p codehost.Pull) codehost.Pull {
	p.Number, p.Open, p.URL = int64(len(k.pulls)+1), true, "https://host/acme/web/pull/"
	p.UpdatedAt = time.UnixMicro(k.clock.Load())
	k.pulls = append(k.pulls, p)
	return p
}

// EditPull implements codehost.Forge.
func (k *keeper) EditPull(_ context.Context, _ codehost.Repo, _ codehost.Once, n int64, e codehost.PullEdit) (codehost.Pull, error) {
	if k.edit != nil {
		return codehost.Pull{}, k.edit
	}
	if e.Open != nil && !*e.Open {
		k.closed = append(k.closed, n)
	}
	return k.pulls[n-1], nil
}

// MergePull implements codehost.Forge.
func (k *keeper) MergePull(ctx context.Context, r codehost.Repo, _ codehost.Once, n int64, m codehost.PullMerge) (string, error) {
	if k.merge != nil {
		return "", k.merge
	}
	p := &k.pulls[n-1]
	return k.host.Merge(ctx, r, codehost.MergeOptions{
		Base: p.BaseRef, Head: p.HeadRef, HeadSHA: m.HeadSHA, Method: m.Method, Title: m.Title, Body: m.Body,
		Author: k.Bot, Committer: k.Bot,
	})
}

// settle lets the host carry out what is wanted, and then the loop pass.
func (y *yard) settle() {
	duetest.Pass(y.ctx(), y.t, y.Intents.Due)
	y.pass(time.Second)
	duetest.Pass(y.ctx(), y.t, y.Intents.Due)
}

// says has the host tell of a pull request, a second later.
func (k *keeper) says(p codehost.Pull) {
	k.t.Helper()
	k.clock.Add(time.Second.Microseconds())
	p.UpdatedAt = time.UnixMicro(k.clock.Load())
	k.tells(p)
}

func (k *keeper) tells(p codehost.Pull) {
	k.t.Helper()
	var r repo.Ref
	k.write(func(tx *db.Tx) (err error) { r, _, err = repo.ByID(tx, k.repo); return err })
	e := codehost.PullChanged{Happening: codehost.Happening{Repo: webRepo, By: codehost.User{Login: "Bob"}}, Pull: p}
	if err := k.HostChanged(k.ctx(), r, e); err != nil {
		k.t.Fatal(err)
	}
}

// checkedThere says what the host's checks of a head have come to.
func (y *yard) checkedThere(sha, result string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		return y.HostChecked(tx, HostEnd{RepoID: y.repo, SHA: sha, Result: result, Why: "these checks failed: build"})
	})
}

// row reads a pull request.
func (y *yard) row(prID string) (pr record.Pull) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) { pr, err = record.ByID.One(tx, "acme", prID); return err })
	return pr
}

// A pull request is opened by its host, waits for the checks there, and is merged there.
func TestHostOpensAndMerges(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.add(codehost.Pull{HeadRef: "other"}) // so that numbers differ
		sha := y.commit("one", "a", "a")
		prID := y.propose("one", sha)
		if pr := y.row(prID); pr.State != record.Opening || pr.Number >= 0 || y.told["task-one"] != "awaits" {
			t.Errorf("at first: %s #%d, the task %s", pr.State, pr.Number, y.told["task-one"])
		}
		y.settle()
		pr := y.row(prID)
		if pr.State != record.Open || pr.Number != 2 || pr.HostURL == "" || pr.Checks != record.ChecksPending {
			t.Fatalf("opened: %+v", pr)
		}
		y.checkedThere(sha, record.ChecksPassed)
		if y.told["task-one"] != "awaits review" {
			t.Errorf("passed: the task %s", y.told["task-one"])
		}
		y.approve(prID, sha)
		y.settle()
		if pr = y.row(prID); pr.State != record.Merged || pr.MergeSHA == nil || y.told["task-one"] != "merged" {
			t.Errorf("merged: %s, the task %s", pr.State, y.told["task-one"])
		}
		p := k.pulls[1]
		p.Open, p.Merged, p.MergeSHA = false, true, *pr.MergeSHA
		k.says(p) // the echo
		if again := y.row(prID); *again.MergedBy != *pr.MergedBy {
			t.Errorf("the echo changed who merged: %s", *again.MergedBy)
		}
	})
}

// A task that is cancelled while its pull request is opened leaves none open there.
func TestCancelledWhileOpening(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		early := y.propose("early", y.commit("early", "a", "a"))
		y.write(func(tx *db.Tx) error { return y.Abandon(tx, early, "task-early") })
		y.settle()
		if pr := y.row(early); pr.State != record.Closed || len(k.pulls) != 0 {
			t.Errorf("before: %s, %d there", pr.State, len(k.pulls))
		}
		late := y.propose("late", y.commit("late", "b", "b"))
		k.open = &codehost.BusyError{After: time.Second, Cause: errors.New("lost answer")}
		duetest.Pass(y.ctx(), y.t, y.Intents.Due)
		k.open = nil
		y.write(func(tx *db.Tx) error { return y.Abandon(tx, late, "task-late") })
		for range 4 {
			y.settle()
		}
		if pr := y.row(late); pr.State != record.Closed || len(k.pulls) != len(k.closed) {
			t.Errorf("after: %s, %d there, closed %v", pr.State, len(k.pulls), k.closed)
		}
	})
}

// A host that does not open a pull request ends the task with the reason.
func TestHostRefuses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.open = codehost.ErrNoCommits
		prID := y.propose("one", y.commit("one", "a", "a"))
		y.settle()
		if pr := y.row(prID); pr.State != record.Closed || pr.ClosedWhy != record.ClosedEmpty || y.told["task-one"] != "closed" {
			t.Errorf("%s %s, the task %s", pr.State, pr.ClosedWhy, y.told["task-one"])
		}
	})
}

// What people do to a pull request of an agent there is recorded; older news is not.
func TestPeopleAtTheHost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		sha := y.commit("one", "a", "a")
		prID := y.propose("one", sha)
		y.settle()
		y.checkedThere(sha, record.ChecksPassed)
		old := k.pulls[0]
		p := old
		p.Title, p.Labels, p.HeadSHA = "Better", []string{"x"}, y.commit("one", "a", "b")
		k.says(p)
		pr := y.row(prID)
		if pr.Title != "Better" || !slices.Equal(pr.Labels.V, p.Labels) || pr.HeadSHA != p.HeadSHA || pr.Checks != record.ChecksPending {
			t.Errorf("edited and pushed: %+v", pr)
		}
		k.tells(old)
		if y.row(prID).Title != "Better" {
			t.Error("older news counts")
		}
		p.Open = false
		k.says(p)
		if pr = y.row(prID); pr.State != record.Closed || pr.ClosedWhy != record.ClosedAtHost || *pr.ClosedBy != "code-host:bob" {
			t.Errorf("closed: %s %s", pr.State, pr.ClosedWhy)
		}
		y.settle()
		if len(k.closed) != 0 {
			t.Error("it is closed there once more")
		}
		p.Open = true
		k.says(p)
		if pr = y.row(prID); pr.State != record.Open || y.told["task-one"] != "awaits" {
			t.Errorf("opened again: %s, the task %s", pr.State, y.told["task-one"])
		}
		p.Open, p.Merged, p.MergeSHA, p.MergedBy = false, true, strings.Repeat("c", 40), &codehost.User{Login: "Carol"}
		k.says(p)
		if pr = y.row(prID); pr.State != record.Merged || *pr.MergedBy != "code-host:carol" || y.told["task-one"] != "merged" {
			t.Errorf("merged: %s, the task %s", pr.State, y.told["task-one"])
		}
	})
}

// Pull requests of people are shown. With the label they are looked after, drafts and
// forks are not, and bots are not without it.
func TestPullRequestsOfPeople(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		sha := y.commit("theirs", "a", "a")
		bob := codehost.User{Login: "bob"}
		p := k.add(codehost.Pull{Title: "Mine", HeadRef: "theirs", HeadSHA: sha, BaseRef: "main", Author: bob})
		find := func(number int64) record.Pull {
			t.Helper()
			var prID string
			y.write(func(tx *db.Tx) (err error) { prID, err = record.ByNumber.One(tx, "acme", y.repo, number); return err })
			return y.row(prID)
		}
		asked := func(prID string) (open bool) {
			y.write(func(tx *db.Tx) (err error) { _, open, err = record.OpenAction.Maybe(tx, prID); return err })
			return open
		}
		k.says(p)
		k.says(p)
		pr := find(1)
		if pr.AuthorKind != record.ByPerson || pr.Babysit != record.BabysitOff || pr.ArmedAt != nil || pr.TaskID != nil {
			t.Fatalf("%+v", pr)
		}
		y.settle()
		y.checkedThere(sha, record.ChecksFailed)
		y.settle()
		if len(y.round) != 0 || asked(pr.ID) {
			t.Error("an unwatched one is looked after")
		}
		p.Labels = []string{"yardmaster"}
		k.says(p)
		y.settle()
		if pr = find(1); pr.Babysit == record.BabysitOff || len(y.round) != 0 && pr.CIRounds == 0 {
			t.Errorf("watched: %+v", pr)
		}
		y.checkedThere(sha, record.ChecksPassed)
		y.settle()
		if !asked(pr.ID) {
			t.Error("nothing is asked about a watched one")
		}
		p.Labels = nil
		k.says(p)
		if pr = find(1); pr.Babysit != record.BabysitOff || asked(pr.ID) {
			t.Errorf("the label is gone: %s", pr.Babysit)
		}
		label := []string{"yardmaster"}
		fork := k.add(codehost.Pull{HeadRef: "theirs", HeadSHA: sha, BaseRef: "main", Author: bob, Fork: true, Labels: label})
		k.says(fork)
		if pr = find(2); pr.Babysit != record.BabysitOff || !pr.Fork || pr.HeadRef != "refs/pull/2/head" {
			t.Errorf("a fork: %+v", pr)
		}
		draft := k.add(codehost.Pull{HeadRef: "theirs", HeadSHA: sha, BaseRef: "main", Author: bob, Draft: true, Labels: label})
		k.says(draft)
		y.checkedThere(sha, record.ChecksPassed)
		if pr = find(3); asked(pr.ID) {
			t.Error("a draft is asked about")
		}
		draft.Draft = false
		k.says(draft)
		y.read()
		if !asked(pr.ID) {
			t.Error("nothing is asked about what is ready")
		}
	})
}

// A rule of the host holds a merge back, with its words; a busy host is asked again.
func TestHostHoldsTheMerge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		sha := y.commit("one", "a", "a")
		prID := y.propose("one", sha)
		y.settle()
		y.checkedThere(sha, record.ChecksPassed)
		k.merge = &codehost.BusyError{After: time.Minute, Limit: true}
		y.approve(prID, sha)
		for range 2 * merge.MaxTries {
			y.pass(time.Minute)
		}
		if pr := y.row(prID); pr.Needs != "" {
			t.Errorf("a busy host: %s", pr.Needs)
		}
		waits := func() (all map[string]Wait) {
			y.write(func(tx *db.Tx) (err error) { all, err = Waits(tx, []string{prID, "another"}); return err })
			return all
		}
		if w, ok := waits()[prID]; len(waits()) != 1 || !ok || !w.Until.After(w.Since) {
			t.Errorf("it waits %+v", waits())
		}
		k.merge = &codehost.BlockedError{Missing: []string{"2 reviews"}}
		for range 2 * merge.MaxTries {
			y.pass(merge.LongestWait)
		}
		if len(waits()) != 0 {
			t.Errorf("it still waits %+v", waits())
		}
		pr := y.row(prID)
		var why string
		y.write(func(tx *db.Tx) (err error) { why, err = lastError.One(tx, prID); return err })
		if pr.Needs != record.NeedsRetry || !strings.Contains(why, "2 reviews") {
			t.Errorf("a rule: %s, %q", pr.Needs, why)
		}
	})
}

// A merge that lacks a permission which is yet to be granted waits for the grant: that is no
// try, and no person has to try again.
func TestMergeWaitsForAGrant(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		var lacks []merge.Refusal
		merge.Ungranted.On(y.DB, func(tx *db.Tx, r merge.Refusal) error {
			tx.AfterCommit(func() { lacks = append(lacks, r) })
			return nil
		})
		prID, sha := k.open1()
		k.merge = &codehost.ForbiddenError{Permission: "contents: write", Asked: true}
		y.approve(prID, sha)
		for range 2 * merge.MaxTries {
			y.pass(merge.LongestWait)
		}
		if a := y.action(prID); a.State != record.ActionApproved || a.RetryAt == nil || !strings.Contains(*a.Error, "contents: write") {
			t.Errorf("it waits as %+v", a)
		}
		want := merge.Refusal{RepoID: y.repo, Permission: "contents: write"}
		if pr := y.row(prID); pr.Needs != "" || len(lacks) == 0 || lacks[0] != want {
			t.Errorf("it needs %q, told %+v", pr.Needs, lacks)
		}
		k.merge = nil
		y.pass(0)
		if pr := y.row(prID); pr.State != record.Open {
			t.Errorf("%s before it is due", pr.State)
		}
		y.write(func(tx *db.Tx) error { return y.RetryNow(tx, []string{y.repo}) })
		y.pass(0)
		if pr := y.row(prID); pr.State != record.Merged {
			t.Errorf("%s after the grant", pr.State)
		}
	})
}

// The branch of a merged pull request is deleted, unless another open one has it as its base.
func TestBaseOfOthersStays(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		for _, name := range []string{"alone", "below"} {
			sha := y.commit(name, name, name)
			prID := y.propose(name, sha)
			y.settle()
			if name == "below" {
				k.says(k.add(codehost.Pull{
					HeadRef: "above", HeadSHA: y.commit("above", "c", "c"), BaseRef: "below", Author: codehost.User{Login: "bob"},
				}))
			}
			y.checkedThere(sha, record.ChecksPassed)
			y.approve(prID, sha)
			y.settle()
			if pr := y.row(prID); pr.State != record.Merged {
				t.Fatalf("%s is %s", name, pr.State)
			}
			_, err := y.host.Head(y.ctx(), webRepo, name)
			if there := err == nil; there != (name == "below") {
				t.Errorf("the branch %s is there: %t, %v", name, there, err)
			}
		}
	})
}

var lastError = db.Q[string](`SELECT error FROM pull_actions WHERE pr_id = $1 ORDER BY requested_at DESC LIMIT 1`)
