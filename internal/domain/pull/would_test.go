package pull

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/proof/seed"
)

// numbers are n lines, of which some are others.
func numbers(n int, other ...int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "%d", i)
		if slices.Contains(other, i) {
			b.WriteString(" changed")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// above changes a branch that begins at another one, and pushes it.
func (y *yard) above(name, below string, change func()) (sha string) {
	y.t.Helper()
	y.git("branch", name, below)
	return y.branch(name, change)
}

// has answers the files of main with their content.
func (y *yard) has() map[string]string {
	y.t.Helper()
	y.git("fetch", "--quiet", "--force", y.root+"/acme/web.git", "main:refs/seen/main")
	out := map[string]string{}
	for path := range strings.FieldsSeq(y.git("ls-tree", "-r", "--name-only", "refs/seen/main")) {
		out[path] = y.git("show", "refs/seen/main:"+path)
	}
	return out
}

// Work on top of work that was squashed is merged from where it began: what it deletes of
// the work below is deleted, and lines beside each other are no conflict.
func TestStackedWorkIsMergedFromItsStart(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"squash", "merge"} {
		t.Run(method, func(t *testing.T) {
			onBoth(t, func(t *testing.T, y *yard) {
				y.policy("version: 1\nmerge: {mode: ask, method: " + method + "}\n")
				y.commit("main", "a.txt", numbers(20))
				low := y.branch("svc/low", func() { y.file("a.txt", numbers(20, 5)); y.file("helper.txt", "new\n") })
				high := y.above("svc/high", "svc/low", func() { y.file("a.txt", numbers(20, 5, 6)); y.git("rm", "-q", "helper.txt") })
				lower, upper := y.green("svc/low", low), y.green("svc/high", high)
				if w := y.pr(lower).Would; w == nil || len(w.Files) != 2 || w.Additions != 2 || w.Deletions != 1 || w.Back != nil {
					t.Errorf("the lower one would: %+v", w)
				}
				y.approve(lower, low)
				y.pass(0)
				y.pass(time.Second)
				got := y.pr(upper)
				if got.Mergeable != "clean" || got.Would == nil || got.Babysit.State != record.BabysitWatching {
					t.Fatalf("above what was merged: %+v", got)
				}
				base, err := y.host.Head(y.ctx(), webRepo, "main")
				if err != nil || got.Would.BaseSHA != base {
					t.Errorf("the merge was tried with %s, and the base is at %s, %v", got.Would.BaseSHA, base, err)
				}
				want := []record.WouldFile{
					{Path: "a.txt", Kind: "modified", Additions: 1, Deletions: 1}, {Path: "helper.txt", Kind: "deleted", Deletions: 1},
				}
				if !slices.Equal(got.Would.Files, want) || got.Would.Back != nil {
					t.Errorf("the upper one would: %+v", got.Would)
				}
				var d Diff
				y.call(200, "GET", "/v1/prs/"+upper+"/diff", "", &d)
				if len(d.Files) != 2 || d.FromSHA != low {
					t.Errorf("it shows %+v", d)
				}
				y.approve(upper, high)
				y.pass(time.Second)
				if got := y.pr(upper); got.State != record.Merged || got.Otherwise != nil || got.Would != nil {
					t.Errorf("merged: %+v", got)
				}
				now := y.has()
				if _, back := now["helper.txt"]; back || now["a.txt"] != strings.TrimSpace(numbers(20, 5, 6)) {
					t.Errorf("main has %q", now)
				}
			})
		})
	}
}

// The commits of the work below may be gone by the time that the work above is merged: its
// task knows where it began.
func TestStackedWorkKnowsItsStart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {mode: ask, method: squash}\n")
		y.commit("main", "a.txt", numbers(20))
		early := y.branch("svc/low", func() { y.file("a.txt", numbers(20, 5)); y.file("helper.txt", "new\n") })
		high := y.above("svc/high", "svc/low", func() { y.file("a.txt", numbers(20, 5, 15)); y.git("rm", "-q", "helper.txt") })
		// The squash was made elsewhere, so that no line of it names the head.
		y.commit("main", "a.txt", numbers(20, 5))
		y.commit("main", "helper.txt", "new\n")
		upper := y.green("svc/high", high)
		y.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Task{ID: "low", Account: "acme", Repo: y.repo, Status: "merged"})
		})
		y.write(func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Task{ID: "task-svc/high", Account: "acme", Repo: y.repo, Status: "awaiting_review"}); err != nil {
				return err
			}
			_, err := seed.SetStart.Exec(tx, "task-svc/high", "low", early)
			return err
		})
		y.approve(upper, high)
		y.pass(time.Second)
		now := y.has()
		if _, back := now["helper.txt"]; back || y.pr(upper).State != record.Merged {
			t.Errorf("main has %q", now)
		}
	})
}

// rewritten makes main a history without its last commit.
func (y *yard) rewritten() {
	y.t.Helper()
	y.git("reset", "--quiet", "--hard", "HEAD~1")
	y.push("main")
	y.moved("main", y.git("rev-parse", "main"))
}

// What a base was rewritten without is named before a merge brings it back, in every mode,
// and whatever was asked or approved before.
func TestRewrittenBaseIsAskedAbout(t *testing.T) {
	t.Parallel()
	for mode, before := range map[string]func(y *yard, pr, sha string){
		"ask":   func(*yard, string, string) {},
		"auto":  func(*yard, string, string) {},
		"never": func(*yard, string, string) {},
		"ask, approved": func(y *yard, pr, sha string) {
			y.line.on = true // the merge waits for its turn
			y.approve(pr, sha)
			y.pass(0)
		},
	} {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, func(t *testing.T, y *yard) {
				y.policy(checked + "merge: {mode: " + strings.TrimSuffix(mode, ", approved") + "}\n")
				y.commit("main", "key.pem", "secret\n")
				sha := y.commit("svc/a", "a", "1\n")
				pr := y.propose("svc/a", sha)
				y.pass(0)
				if mode != "auto" {
					y.checked(y.check[0], &zero)
					y.pass(0)
				}
				if w := y.pr(pr).Would; w == nil || len(w.Files) != 1 || w.Back != nil {
					t.Fatalf("before: %+v", w)
				}
				before(y, pr, sha)
				y.rewritten()
				if mode == "auto" {
					y.checked(y.check[0], &zero)
				}
				y.pass(3 * time.Minute)
				got := y.pr(pr)
				if got.State != record.Open || got.PendingAction == nil || got.PendingAction.State != record.ActionPending {
					t.Fatalf("after: %+v, %+v", got, got.PendingAction)
				}
				q := got.PendingAction
				want := "Merge this head, although it would bring back what was dropped: key.pem; " +
					"1 commit that the base was rewritten without?"
				if q.Question != want || q.Protected == nil || q.Protected.Back == nil || q.Protected.Back.Commits != 1 {
					t.Errorf("asked %q about %+v", q.Question, q.Protected)
				}
				if w := got.Would; w == nil || w.Back == nil || !slices.Equal(w.Back.Paths, []string{"key.pem"}) || len(w.Files) != 2 {
					t.Errorf("it would: %+v", w)
				}
				y.line.on = false
				y.refused("question_changed", pr, "approve", sha)
				y.approve(pr, sha)
				y.pass(3 * time.Minute)
				if got := y.pr(pr); got.State != record.Merged || *got.MergedBy != "user:ada" {
					t.Errorf("after a person said yes: %+v", got)
				}
			})
		})
	}
}

// A head without what the base has dropped brings nothing back.
func TestRewrittenBaseAndHead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.commit("main", "key.pem", "secret\n")
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.green("svc/a", sha)
		y.rewritten()
		y.pass(0)
		if w := y.pr(pr).Would; w == nil || w.Back == nil {
			t.Fatalf("it would: %+v", w)
		}
		y.git("branch", "--force", "svc/a", "main")
		sha = y.branch("svc/a", func() { y.file("a", "1\n") })
		y.moved("svc/a", sha)
		y.pass(0)
		y.approve(pr, sha)
		y.pass(time.Second)
		if got := y.pr(pr); got.State != record.Merged || y.has()["key.pem"] != "" {
			t.Errorf("a rebased head: %+v", got)
		}
	})
}

// Where a person has squashed the work below at the host, no line in git says so: the host
// has told that it is merged.
func TestSquashedAtTheHost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		y.commit("main", "a.txt", numbers(20))
		low := y.branch("svc/low", func() { y.file("helper.txt", "new\n") })
		high := y.above("svc/high", "svc/low", func() { y.file("a.txt", numbers(20, 6)); y.git("rm", "-q", "helper.txt") })
		lower := y.propose("svc/low", low)
		y.settle()
		upper := y.propose("svc/high", high)
		y.settle()
		p := k.pulls[0]
		p.Open, p.Merged, p.MergeSHA = false, true, y.commit("main", "helper.txt", "new\n")
		k.says(p)
		y.pass(0)
		w := y.pr(upper).Would
		if y.pr(lower).State != record.Merged || w == nil || len(w.Files) != 2 || w.Files[1].Kind != "deleted" {
			t.Errorf("the upper one would: %+v", w)
		}
	})
}
