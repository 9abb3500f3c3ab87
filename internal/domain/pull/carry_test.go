package pull

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// strictForge is a forge whose branches want the last push approved by somebody else.
type strictForge struct{ codehost.NoForge }

func (strictForge) Can(c codehost.Capability) bool { return c == codehost.KeepRules }

func (strictForge) BranchRules(context.Context, codehost.Repo, string, codehost.Tag) (codehost.BranchRules, codehost.Tag, error) {
	return codehost.BranchRules{LastPush: true}, "", nil
}

var (
	heads    = db.Q[string](`SELECT a.state || ' ' || a.head_sha FROM pull_actions a WHERE a.pr_id = $1 ORDER BY a.requested_at, a.id`)
	carries  = db.Q[string](`SELECT data FROM audit WHERE account_id = 'acme' AND kind = 'approval.carried' ORDER BY seq`)
	retarget = db.S(`UPDATE pulls SET base_ref = $2, facts_want = facts_want + 1 WHERE id = $1`)
)

// rewrite makes the branch svc/a anew with git, and reports the push.
func (y *yard) rewrite(by string, fn func()) (sha string) {
	y.t.Helper()
	y.git("checkout", "--quiet", "svc/a")
	fn()
	sha = y.git("rev-parse", "HEAD")
	y.push("svc/a")
	y.git("checkout", "--quiet", "main")
	y.write(func(tx *db.Tx) error {
		r, _, err := repo.ByID(tx, y.repo)
		if err != nil {
			return err
		}
		return y.OnPush(tx, r, "svc/a", sha, by)
	})
	return sha
}

// onMain commits to main, as somebody else would.
func (y *yard) onMain(path, text string) { y.moved("main", y.commit("main", path, text)) }

// held is a green head that was approved and is not merged, since the merges of its host
// fail.
func (y *yard) held() (prID, sha string) {
	y.t.Helper()
	y.host.merge = context.DeadlineExceeded
	sha = y.commit("svc/a", "b.txt", "b\n")
	prID = y.propose("svc/a", sha)
	y.pass(0)
	return prID, sha
}

func lines(n int, changed ...string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Repeat("x", i+1)
	}
	for _, c := range changed {
		at, text, _ := strings.Cut(c, " ")
		all[len(at)] = text
	}
	return strings.Join(all, "\n") + "\n"
}

// An approval holds for a new head only if every file that was looked at is the same, in a
// base where it stood as it did.
func TestApprovalOverARebase(t *testing.T) {
	t.Parallel()
	far, near, mine := "", strings.Repeat(".", 17), strings.Repeat(".", 19)
	for name, c := range map[string]struct {
		policy string
		strict bool // the branch wants the last push approved by somebody else
		by     string
		move   func(y *yard)
		want   bool
	}{
		"rebased over other files": {move: func(y *yard) { y.git("rebase", "--quiet", "main") }, want: true},
		"the base merged in":       {move: func(y *yard) { y.git("merge", "--quiet", "--no-edit", "main") }, want: true},
		"squashed and reworded": {move: func(y *yard) {
			y.git("reset", "--quiet", "--soft", "main~1")
			y.git("commit", "--quiet", "--message", "In other words")
		}, want: true},
		"rebased over the same file": {move: func(y *yard) {
			y.git("checkout", "--quiet", "main")
			y.onMain("a.txt", lines(40, far+" far"))
			y.git("checkout", "--quiet", "svc/a")
			y.git("rebase", "--quiet", "main")
		}},
		"rebased over the context": {move: func(y *yard) {
			y.git("checkout", "--quiet", "main")
			y.onMain("a.txt", lines(40, near+" near"))
			y.git("checkout", "--quiet", "svc/a")
			y.git("rebase", "--quiet", "main")
		}},
		"a merge with changes of its own": {move: func(y *yard) {
			y.git("merge", "--quiet", "--no-commit", "--no-ff", "main")
			y.git("rm", "--quiet", "--force", "b.txt")
			y.git("commit", "--quiet", "--message", "Merge")
		}},
		"a file renamed": {move: func(y *yard) {
			y.git("mv", "b.txt", "c.txt")
			y.git("commit", "--quiet", "--message", "Rename")
		}},
		"a mode": {move: func(y *yard) {
			y.git("update-index", "--chmod=+x", "b.txt")
			y.git("commit", "--quiet", "--message", "Mode")
			y.git("reset", "--quiet", "--hard")
		}},
		"two merge bases": {move: func(y *yard) {
			head, main := y.git("rev-parse", "HEAD"), y.git("rev-parse", "main")
			y.git("checkout", "--quiet", "-B", "other", "main")
			y.git("merge", "--quiet", "--no-edit", "--no-ff", head+"~1")
			y.git("push", "--quiet", "--force", y.root+"/acme/web.git", "other:main")
			y.git("branch", "--force", "main", "other")
			y.git("checkout", "--quiet", "svc/a")
			y.git("merge", "--quiet", "--no-edit", "--no-ff", main)
		}},
		"by another": {strict: true, by: "user:ann", move: func(y *yard) { y.git("rebase", "--quiet", "main") }, want: true},
		"by the approver, where another is wanted": {strict: true, by: "user:ada",
			move: func(y *yard) { y.git("rebase", "--quiet", "main") }},
		"by the approver": {by: "user:ada", move: func(y *yard) { y.git("rebase", "--quiet", "main") }, want: true},
		"the policy says never": {policy: "version: 1\napprovals: {carry: never}\n",
			move: func(y *yard) { y.git("rebase", "--quiet", "main") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				if c.strict {
					y.Hosts.Set(codehost.BuiltIn, codehost.Sides{Host: y.host, Forge: strictForge{}})
				}
				if c.policy != "" {
					y.policy(c.policy)
				}
				y.commit("main", "a.txt", lines(40))
				y.commit("svc/a", "a.txt", lines(40, mine+" mine"))
				pr, was := y.held()
				y.approve(pr, was)
				y.onMain("other.txt", "o\n")
				by := c.by
				if by == "" {
					by = "user:ann"
				}
				is := y.rewrite(by, func() { c.move(y) })
				if a := y.pr(pr).PendingAction; a != nil {
					t.Errorf("before git was asked: %+v", a)
				}
				y.pass(0)
				a := y.pr(pr).PendingAction
				if carried := a != nil && a.State == record.ActionApproved; a == nil || carried != c.want || a.HeadSHA != is {
					t.Fatalf("the action is %+v, want it carried: %t", a, c.want)
				}
				y.write(func(tx *db.Tx) error {
					data, err := carries.All(tx)
					switch {
					case !c.want && len(data) > 0:
						t.Errorf("recorded %s", data)
					case c.want && (len(data) != 1 || !strings.Contains(data[0], `"from":"`+was+`"`) ||
						!strings.Contains(data[0], `"to":"`+is+`"`) ||
						!strings.Contains(data[0], `"pushed_by":"`+by+`"`) || *a.CarriedFrom != was || *a.DecidedBy != "user:ada"):
						t.Errorf("recorded %s of %+v", data, a)
					}
					return err
				})
				y.host.merge = nil
				y.pass(10 * 60e9)
				if state := y.pr(pr).State; (state == record.Merged) != c.want {
					t.Errorf("it is %s", state)
				}
			})
		})
	}
}

func (y *yard) rebase() (sha string) {
	return y.rewrite("user:ann", func() { y.git("rebase", "--quiet", "main") })
}

// An open question is carried like an approval, and the checks of the new head come first.
func TestQuestionOverARebase(t *testing.T) {
	t.Parallel()
	zero := 0
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		sha := y.commit("svc/a", "b.txt", "b\n")
		pr := y.propose("svc/a", sha)
		y.checked(y.check[0], &zero)
		y.pass(0)
		question := y.pr(pr).PendingAction.ID
		y.onMain("other.txt", "o\n")
		is := y.rebase()
		y.pass(0)
		if a := y.pr(pr).PendingAction; a != nil {
			t.Errorf("before its checks passed: %+v", a)
		}
		y.checked(y.check[1], &zero)
		y.pass(0)
		a := y.pr(pr).PendingAction
		if a == nil || a.ID != question || a.State != record.ActionPending || a.HeadSHA != is || a.DecidedAt != nil ||
			*a.CarriedFrom != sha {
			t.Errorf("%+v", a)
		}
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
		y.approve(pr, is)
		y.pass(0)
		y.wantState(pr, record.Merged)
	})
}

// A question that nobody has answered in time holds for no other head: that one is asked about
// anew, for as long as any.
func TestQuestionThatIsOverIsNotCarried(t *testing.T) {
	t.Parallel()
	zero := 0
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		pr := y.propose("svc/a", y.commit("svc/a", "b.txt", "b\n"))
		y.checked(y.check[0], &zero)
		y.pass(0)
		question := y.pr(pr).PendingAction.ID
		y.onMain("other.txt", "o\n")
		is := y.rebase()
		y.read()
		y.pass(record.AskFor)
		y.checked(y.check[1], &zero)
		y.pass(0)
		a := y.pr(pr).PendingAction
		if a == nil || a.ID == question || a.State != record.ActionPending || a.HeadSHA != is || a.CarriedFrom != nil {
			t.Errorf("%+v", a)
		}
		y.wantNeed(pr, record.NeedsDecision, "pr.approve_pending")
	})
}

// Later heads are compared with the approved one, not with the last one.
func TestApprovalOverSeveralHeads(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		pr, was := y.held()
		y.approve(pr, was)
		other := y.rewrite("user:ann", func() { y.record("b.txt", "other\n") })
		y.pass(0)
		if a := y.pr(pr).PendingAction; a.State != record.ActionPending || a.HeadSHA != other {
			t.Fatalf("%+v", a)
		}
		// Back to the approved head: the approval is valid again.
		y.rewrite("user:ann", func() { y.git("reset", "--quiet", "--hard", was) })
		y.pass(0)
		if a := y.pr(pr).PendingAction; a.State != record.ActionApproved || a.HeadSHA != was {
			t.Fatalf("back at the approved head: %+v", a)
		}
		for range 3 { // before git was asked about the heads between
			y.onMain("other.txt", y.git("rev-parse", "main"))
			y.rebase()
		}
		y.pass(0)
		a := y.pr(pr).PendingAction
		if a.State != record.ActionApproved || a.HeadSHA != y.git("rev-parse", "svc/a") || *a.CarriedFrom != was {
			t.Errorf("after three rebases: %+v", a)
		}
		// A refusal in between takes the approval back.
		third := y.rewrite("user:ann", func() { y.record("b.txt", "third\n") })
		y.pass(0)
		y.call(200, "POST", "/v1/prs/"+pr+"/skip-pending", `{"head_sha": "`+third+`"}`, nil)
		y.rewrite("user:ann", func() { y.git("reset", "--quiet", "--hard", was) })
		y.pass(0)
		if a := y.pr(pr).PendingAction; a == nil || a.State != record.ActionPending {
			t.Errorf("after a refusal: %+v", a)
		}
	})
}

// record commits a file to the branch that is checked out.
func (y *yard) record(path, text string) {
	y.t.Helper()
	if err := os.WriteFile(filepath.Join(y.work, path), []byte(text), 0o644); err != nil {
		y.t.Fatal(err)
	}
	y.git("add", "--all")
	y.git("commit", "--quiet", "--message", "Write "+path)
}

// A stricter rule counts for a carried decision: what the policy allowed, it may not now.
func TestPolicyGrewSince(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {mode: auto}\n")
		y.host.merge = context.DeadlineExceeded
		pr := y.propose("svc/a", y.commit("svc/a", "b.txt", "b\n"))
		y.pass(0) // the policy ordered the merge
		y.policy("version: 1\nmerge: {mode: ask}\n")
		y.onMain("other.txt", "o\n")
		is := y.rebase()
		y.pass(0)
		if a := y.pr(pr).PendingAction; a == nil || a.State != record.ActionPending || a.HeadSHA != is {
			t.Errorf("%+v", a)
		}
	})
}

// A decision about a base is none about another.
func TestRetargeted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		pr, was := y.held()
		y.approve(pr, was)
		y.git("branch", "next", "main")
		y.push("next")
		y.write(func(tx *db.Tx) error {
			_, err := retarget.Exec(tx, pr, "next")
			return err
		})
		y.onMain("other.txt", "o\n")
		y.git("push", "--quiet", y.root+"/acme/web.git", "main:next")
		is := y.rebase()
		y.pass(0)
		if a := y.pr(pr).PendingAction; a == nil || a.State != record.ActionPending || a.HeadSHA != is {
			t.Errorf("%+v", a)
		}
		y.write(func(tx *db.Tx) error {
			all, err := heads.All(tx, pr)
			if !slices.Contains(all, "stale "+was) {
				t.Errorf("the actions are %q", all)
			}
			return err
		})
	})
}

// When the default branch has another name, open pull requests to it follow; those to other
// branches do not.
func TestDefaultBranchRenamed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		pr, _ := y.held()
		other := y.propose("svc/b", y.commit("svc/b", "b", "2\n"))
		y.write(func(tx *db.Tx) error {
			_, err := retarget.Exec(tx, other, "release")
			return err
		})
		y.write(func(tx *db.Tx) error {
			r, _, err := repo.ByName(tx, "acme", "web")
			if err != nil {
				return err
			}
			r.DefaultBranch = "trunk"
			return y.DefaultRenamed(tx, repo.Renamed{Repo: r, From: "main"})
		})
		if got := y.pr(pr).BaseRef; got != "trunk" {
			t.Errorf("its base is %s", got)
		}
		if got := y.pr(other).BaseRef; got != "release" {
			t.Errorf("the base of the other is %s", got)
		}
	})
}

// reworded is a pull request whose merge was approved at a head, and a next one that has the same
// change in other words, before git was asked about that.
func (y *yard) reworded() (prID, next string) {
	sha := y.commit("svc/a", "a", "1\n")
	prID = y.green("svc/a", sha)
	y.approve(prID, sha)
	y.git("checkout", "--quiet", "svc/a")
	y.git("commit", "--quiet", "--amend", "--message", "In other words")
	y.push("svc/a")
	next = y.git("rev-parse", "HEAD")
	y.git("checkout", "--quiet", "main")
	y.reported("svc/a", next)
	return prID, next
}

// Who has the question put about a new head, or orders its merge, before git was asked about
// that leaves the earlier decision behind at once.
func TestAskedBeforeTheCarryIsJudged(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"ask-again", "merge"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				y.policy("version: 1\nmerge: {grace: 600}\n")
				prID, next := y.reworded()
				if pr := y.row(prID); pr.Carry != record.CarryLook {
					t.Fatalf("carry is %q", pr.Carry)
				}
				y.call(200, "POST", "/v1/prs/"+prID+"/"+verb, `{"head_sha": "`+next+`"}`, nil)
				y.asTable()
				if pr := y.row(prID); pr.Carry != "" {
					t.Errorf("carry is %q", pr.Carry)
				}
				y.pass(0)
				if a := y.action(prID); a.CarriedFrom != nil || a.HeadSHA != next {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

// What was decided about an earlier head is carried over no end: not over a cancel of the task
// that keeps the pull request, nor over a close, nor once agents were told to leave it alone.
func TestCarryEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct{ end, back func(y *yard, pr, sha string) }{
		"cancelled": {func(y *yard, pr, _ string) {
			y.write(func(tx *db.Tx) error { return y.Abandon(tx, pr, "task-svc/a") })
		}, func(y *yard, pr, _ string) {
			y.call(202, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "After all."}`, nil)
		}},
		"closed": {func(y *yard, _, _ string) {
			y.push(":svc/a")
			y.moved("svc/a", codehost.ZeroSHA)
		}, func(y *yard, _, sha string) {
			y.push("svc/a")
			y.moved("svc/a", sha)
		}},
		"stopped": {func(y *yard, pr, _ string) {
			y.write(func(tx *db.Tx) error { return y.Unwatch(tx, pr, "x") })
		}, func(y *yard, pr, _ string) {
			y.call(202, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "After all."}`, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				y.policy("version: 1\nmerge: {grace: 600, on_cancel: keep}\n")
				prID, next := y.reworded()
				end.end(y, prID, next)
				y.asTable()
				end.back(y, prID, next)
				y.pass(0)
				if a := y.action(prID); a.State != record.ActionPending || a.CarriedFrom != nil {
					t.Errorf("%s, and back: %+v", name, a)
				}
			})
		})
	}
}
