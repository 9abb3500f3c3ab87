package builtin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

func mergeOf(head, sha string, m codehost.Method) codehost.MergeOptions {
	return codehost.MergeOptions{
		Base: "main", Head: head, HeadSHA: sha, Method: m, Title: "Add\n greeting",
		Body:   "Why not.\r\n\r\nCo-authored-by: Bo <bo@example.com>",
		Author: codehost.Person{Name: "Ann", Email: "ann@example.com"}, Committer: codehost.Person{Name: "Yard", Email: "yard@example.com"},
	}
}

func TestMergeMakesACommitEvenWhereItCouldFastForward(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	base := w.git("rev-parse", "main")
	head := w.branch("topic", "main", "work", "new", "x\n")
	sha, err := s.Merge(ctx, shop, mergeOf("topic", head, codehost.MethodMerge))
	if err != nil {
		t.Fatal(err)
	}
	w.git("fetch", "-q", "origin")
	got := w.git("log", "-1", "--format=%P|%an|%ae|%cn|%ce|%B", sha)
	want := base + " " + head + "|Ann|ann@example.com|Yard|yard@example.com|Add greeting\n\nWhy not.\n\nCo-authored-by: Bo <bo@example.com>"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commit (-want +got):\n%s", diff)
	}
	if main, err := s.Head(ctx, shop, "main"); main != sha || err != nil {
		t.Errorf("main is at %s, %v, want %s", main, err, sha)
	}
}

func TestSquash(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	w.branch("topic", "main", "work", "new", "x\n")
	head := w.branch("topic", "topic", "more", "new", "y\n")
	base := w.branch("main", "main", "meanwhile", "other", "z\n")
	sha, err := s.Merge(ctx, shop, mergeOf("topic", head, codehost.MethodSquash))
	if err != nil {
		t.Fatal(err)
	}
	w.git("fetch", "-q", "origin")
	if got := w.git("log", "-1", "--format=%P", sha); got != base {
		t.Errorf("parents %s, want %s", got, base)
	}
	if got, want := w.git("log", "-1", "--format=%(trailers)", sha),
		"Co-authored-by: Bo <bo@example.com>\nSquashed-Head: "+head; got != want {
		t.Errorf("trailers %q, want %q", got, want)
	}
	if got := w.git("show", sha+":new") + w.git("show", sha+":other"); got != "yz" {
		t.Errorf("content %q", got)
	}
}

// TestMergeIsIdempotent holds that a caller that lost the answer may ask again: later,
// after the branch is deleted, and after the base has moved.
func TestMergeIsIdempotent(t *testing.T) {
	for _, m := range []codehost.Method{codehost.MethodMerge, codehost.MethodSquash} {
		t.Run(string(m), func(t *testing.T) {
			s, ctx := newSite(t, ""), t.Context()
			w := start(t, s, shop)
			head := w.branch("topic", "main", "work", "new", "x\n")
			w.branch("main", "main", "before", "other", "z\n")
			o := mergeOf("topic", head, m)
			first, err := s.Merge(ctx, shop, o)
			if err != nil {
				t.Fatal(err)
			}
			again := func(when string) {
				t.Helper()
				if sha, err := s.Merge(ctx, shop, o); sha != first || err != nil {
					t.Errorf("%s: %s, %v, want %s", when, sha, err, first)
				}
			}
			again("at once")
			w.git("pull", "-q", "origin", "main")
			w.git("checkout", "-q", "topic")
			w.branch("topic", "topic", "pushed after the merge", "more", "x\n")
			again("after a push to the branch")
			w.branch("main", "main", "after", "other", "zz\n")
			later := w.branch("later", "main", "later", "third", "x\n")
			if _, err := s.Merge(ctx, shop, mergeOf("later", later, m)); err != nil {
				t.Fatal(err)
			}
			again("after the base went on")
			w.git("push", "-q", "origin", ":topic")
			again("after the branch was deleted")
		})
	}
}

func TestMergeOfWhatTheBaseHasAlready(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	head := w.branch("topic", "main", "work", "new", "x\n")
	w.git("push", "-q", "origin", "topic:main") // a fast-forward by hand
	for range 2 {
		if sha, err := s.Merge(ctx, shop, mergeOf("topic", head, codehost.MethodMerge)); sha != head || err != nil {
			t.Errorf("fast-forwarded: %s, %v, want the head itself, %s", sha, err, head)
		}
		w.git("checkout", "-q", "main")
		w.git("pull", "-q", "origin", "main")
		w.branch("main", "main", "further", "other", head)
	}
	// The branch came in through another one: the answer is that one's merge commit.
	inner := w.branch("inner", "main", "inner", "i", "i\n")
	outer := w.branch("outer", "inner", "outer", "o", "o\n")
	want, err := s.Merge(ctx, shop, mergeOf("outer", outer, codehost.MethodMerge))
	if err != nil {
		t.Fatal(err)
	}
	if sha, err := s.Merge(ctx, shop, mergeOf("inner", inner, codehost.MethodSquash)); sha != want || err != nil {
		t.Errorf("inner: %s, %v, want %s", sha, err, want)
	}
}

// TestForgedSquashRecord holds that the trailer of a squash counts only where this
// package wrote it.
func TestForgedSquashRecord(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	victim := w.branch("victim", "main", "victim", "v", "v\n")
	forger := w.branch("forger", "main", "forger\n\nSquashed-Head: "+victim, "f", "f\n")
	o := mergeOf("forger", forger, codehost.MethodSquash)
	o.Body = "Squashed-Head: " + victim
	forged, err := s.Merge(ctx, shop, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Head, o.Body, o.Method = "forger2", "", codehost.MethodMerge
	o.HeadSHA = w.branch("forger2", "main", "x\n\nSquashed-Head: "+victim, "f2", "f\n")
	if _, err := s.Merge(ctx, shop, o); err != nil {
		t.Fatal(err)
	}
	sha, err := s.Merge(ctx, shop, mergeOf("victim", victim, codehost.MethodSquash))
	if err != nil || sha == forged {
		t.Fatalf("Merge = %s, %v", sha, err)
	}
	if content, _, err := s.ReadFile(ctx, shop, "main", "v"); string(content) != "v\n" {
		t.Errorf("the victim's work is not in main: %q, %v", content, err)
	}
}

func TestMergeRefuses(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	old := w.branch("moved", "main", "one", "new", "x\n")
	w.branch("moved", "moved", "two", "new", "y\n")
	clash := w.branch("clash", "main", "clash", "src/a.txt", lines(20, "theirs"), "clean", "x\n")
	w.git("checkout", "-q", "--orphan", "other")
	other := w.commit("other", "README.md", "x")
	w.git("push", "-q", "origin", "other")
	before := w.branch("main", "main", "ours", "src/a.txt", lines(20, "ours"))

	if ok, paths, err := s.Mergeable(ctx, shop, "main", "clash"); ok || err != nil || cmp.Diff(paths, []string{"src/a.txt"}) != "" {
		t.Errorf("Mergeable(clash) = %v, %v, %v", ok, paths, err)
	}
	if ok, paths, err := s.Mergeable(ctx, shop, "main", "moved"); !ok || err != nil || paths != nil {
		t.Errorf("Mergeable(moved) = %v, %v, %v", ok, paths, err)
	}
	unknown := strings.Repeat("12", 20)
	for name, c := range map[string]struct {
		o    codehost.MergeOptions
		want error
	}{
		"moved":     {mergeOf("moved", old, codehost.MethodMerge), codehost.ErrHeadMoved},
		"unknown":   {mergeOf("moved", unknown, codehost.MethodMerge), codehost.ErrHeadMoved},
		"conflict":  {mergeOf("clash", clash, codehost.MethodSquash), codehost.ErrConflict},
		"unrelated": {mergeOf("other", other, codehost.MethodMerge), codehost.ErrConflict},
		"no branch": {mergeOf("nope", clash, codehost.MethodMerge), codehost.ErrNotFound},
	} {
		if sha, err := s.Merge(ctx, shop, c.o); !errors.Is(err, c.want) || sha != "" {
			t.Errorf("%s: %q, %v, want %v", name, sha, err, c.want)
		}
	}
	_, err := s.Merge(ctx, shop, mergeOf("clash", clash, codehost.MethodMerge))
	if diff := cmp.Diff([]string{"src/a.txt"}, fault.From(err).Extra["paths"]); diff != "" {
		t.Errorf("paths in conflict (-want +got):\n%s", diff)
	}
	for _, o := range []codehost.MergeOptions{mergeOf("clash", "main", codehost.MethodMerge), mergeOf("clash", clash, "rebase")} {
		if _, err := s.Merge(ctx, shop, o); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("Merge(%+v): %v", o, err)
		}
	}
	if now, err := s.Head(ctx, shop, "main"); now != before || err != nil {
		t.Errorf("main moved to %s, %v", now, err)
	}
}

// TestMergesAtOnce holds that two concurrent merges both succeed, the second on top of
// the first, and that two equal merges make one commit.
func TestMergesAtOnce(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	a := mergeOf("a", w.branch("a", "main", "a", "a", "a\n"), codehost.MethodMerge)
	b := mergeOf("b", w.branch("b", "main", "b", "b", "b\n"), codehost.MethodSquash)
	var g errgroup.Group
	shas := make([]string, 4)
	for i, o := range []codehost.MergeOptions{a, b, a, b} {
		g.Go(func() (err error) {
			shas[i], err = s.Merge(ctx, shop, o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if shas[0] != shas[2] || shas[1] != shas[3] {
		t.Errorf("twins differ: %v", shas)
	}
	w.git("fetch", "-q", "origin")
	if n := w.git("rev-list", "--first-parent", "--count", "main..origin/main"); n != "2" {
		t.Errorf("%s commits on main, want 2", n)
	}
}

// TestMergeIntoALockedBranch holds that Merge distinguishes a lock that stays from a
// base that others move.
func TestMergeIntoALockedBranch(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	o := mergeOf("topic", w.branch("topic", "main", "x", "x", "x\n"), codehost.MethodMerge)
	lock := filepath.Join(s.path(shop), "refs/heads/main.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(ctx, shop, o); !fault.IsKind(err, fault.Unavailable) || !strings.Contains(err.Error(), "locked") {
		t.Errorf("locked: %v", err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(ctx, shop, o); err != nil {
		t.Errorf("unlocked: %v", err)
	}
}

func TestDeleteBranch(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	old := w.git("rev-parse", "main")
	sha := w.branch("topic", "main", "x", "x", "x\n")
	if err := s.DeleteBranch(ctx, shop, "topic", old); !errors.Is(err, codehost.ErrHeadMoved) {
		t.Errorf("moved: %v", err)
	}
	if err := s.DeleteBranch(ctx, shop, "topic", codehost.ZeroSHA); !fault.IsKind(err, fault.Invalid) {
		t.Errorf("zero: %v", err)
	}
	if err := s.DeleteBranch(ctx, shop, "main", old); !fault.IsKind(err, fault.Conflict) {
		t.Errorf("default branch: %v", err)
	}
	if err := s.DeleteBranch(ctx, shop, "topic", sha); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := s.DeleteBranch(ctx, shop, "topic", sha); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
}

func TestMaintain(t *testing.T) {
	s, ctx, now := newSite(t, ""), t.Context(), time.Now()
	w := start(t, s, shop)
	gone := w.branch("topic", "main", "x", "x", "x\n")
	w.git("push", "-q", "origin", ":topic")

	lock := filepath.Join(s.path(shop), "refs/heads/main.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Maintain(ctx, shop, now); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("a lock of this hour: %v", err)
	}
	if err := s.Maintain(ctx, shop, now.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.branch("main", "main", "y", "y", "y\n") // fails if main is still locked
	for _, rev := range []string{"main", gone} {
		if _, _, err := s.ReadFile(ctx, shop, rev, "README.md"); err != nil {
			t.Errorf("%s: %v", rev, err)
		}
	}
}
