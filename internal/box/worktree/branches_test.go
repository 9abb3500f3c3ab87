package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNoCommitIsLost holds that what an agent has committed anywhere is in the work, or is
// named and kept.
func TestNoCommitIsLost(t *testing.T) {
	t.Parallel()
	commit := func(t *testing.T, w *Checkout, name string) string {
		put(t, w, name, name+"\n")
		git(t, w.dir, "add", "-A")
		git(t, w.dir, "commit", "-q", "-m", "add "+name)
		return git(t, w.dir, "rev-parse", "HEAD")
	}
	const own = "svc/x--01234567"
	for _, c := range []struct {
		name  string
		do    func(t *testing.T, w *Checkout) (tip string) // "": a commit of the box
		paths string
		apart string // branch and number of commits
	}{
		{"on a branch that is left", func(t *testing.T, w *Checkout) string {
			git(t, w.dir, "checkout", "-q", "-b", "feature")
			commit(t, w, "a")
			tip := commit(t, w, "b")
			git(t, w.dir, "checkout", "-q", own)
			return tip
		}, "a b", ""},
		{"on two that go on from each other", func(t *testing.T, w *Checkout) string {
			git(t, w.dir, "checkout", "-q", "-b", "zero/one")
			commit(t, w, "a")
			git(t, w.dir, "checkout", "-q", "-b", "two")
			tip := commit(t, w, "b")
			git(t, w.dir, "pack-refs", "--all")
			git(t, w.dir, "checkout", "-q", own)
			return tip
		}, "a b", ""},
		{"on two that go apart", func(t *testing.T, w *Checkout) string {
			git(t, w.dir, "checkout", "-q", "-b", "one")
			commit(t, w, "a")
			git(t, w.dir, "checkout", "-q", "-b", "two", "origin/main")
			commit(t, w, "b")
			git(t, w.dir, "checkout", "-q", own)
			return w.base
		}, "", "one 1, two 1"},
		{"on a branch that is checked out, and on the own one", func(t *testing.T, w *Checkout) string {
			commit(t, w, "a")
			git(t, w.dir, "checkout", "-q", "-b", "two", "origin/main")
			return commit(t, w, "b")
		}, "b", own + " 1"},
		{"beside files that are not committed", func(t *testing.T, w *Checkout) string {
			git(t, w.dir, "checkout", "-q", "-b", "one")
			commit(t, w, "a")
			commit(t, w, "b")
			git(t, w.dir, "checkout", "-q", own)
			put(t, w, "c", "c\n")
			return ""
		}, "c", "one 2"},
		{"detached", func(t *testing.T, w *Checkout) string {
			git(t, w.dir, "checkout", "-q", "--detach")
			return commit(t, w, "a")
		}, "a", ""},
		{"put aside", func(t *testing.T, w *Checkout) string {
			put(t, w, "README.md", "changed\n")
			git(t, w.dir, "stash")
			return w.base
		}, "", "stash 2"},
		{"a branch of the remote and an old commit", func(t *testing.T, w *Checkout) string {
			git(t, w.dir, "branch", "old", "origin/old")
			git(t, w.dir, "branch", "again")
			return w.base
		}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cache := fetched(t, newHost(t))
			w := checkout(t, cache)
			tip := c.do(t, w)
			r := collect(t, w)
			if got := strings.Join(r.Paths, " "); got != c.paths || tip != "" && r.Tip != tip || r.Damage != "" {
				t.Errorf("%q, not %q: %+v", got, c.paths, r)
			}
			var apart []string
			for _, a := range r.Apart {
				apart = append(apart, fmt.Sprintf("%s %d", a.Branch, a.Commits))
				if a.Subject == "" || !strings.Contains(a.String(), a.SHA[:12]) {
					t.Errorf("%+v", a)
				}
			}
			if got := strings.Join(apart, ", "); got != c.apart {
				t.Errorf("apart: %q, not %q", got, c.apart)
			}
			if err := w.Remove(); err != nil {
				t.Fatal(err)
			}
			for _, a := range r.Apart { // kept, until it is old
				if got := git(t, cache.dir, "--git-dir="+cache.dir, "for-each-ref", "--contains", a.SHA, keptRefs); got == "" {
					t.Errorf("%s is not kept", a.Branch)
				}
			}
			if got := git(t, cache.dir, "--git-dir="+cache.dir, "for-each-ref", "refs/box"); got != "" {
				t.Errorf("left of the checkout: %s", got)
			}
			if n, err := cache.ForgetKept(t.Context(), time.Now().Add(time.Hour)); err != nil || n != len(r.Apart) {
				t.Errorf("%d forgotten of %d, %v", n, len(r.Apart), err)
			}
		})
	}
}

func TestBranchThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	w := checkout(t, fetched(t, newHost(t)))
	git(t, w.dir, "checkout", "-q", "-b", "broken")
	put(t, w, "a", "of its own\n")
	git(t, w.dir, "add", "-A")
	git(t, w.dir, "commit", "-q", "-m", "a")
	sha := git(t, w.dir, "rev-parse", "HEAD:a")
	git(t, w.dir, "checkout", "-q", "svc/x--01234567")
	put(t, w, "b", "b\n")
	git(t, w.dir, "add", "-A")
	git(t, w.dir, "commit", "-q", "-m", "b")
	if err := os.Remove(filepath.Join(w.dir, ".git/objects", sha[:2], sha[2:])); err != nil {
		t.Fatal(err)
	}
	r := collect(t, w)
	if !slices.Equal(r.Paths, []string{"b"}) || r.Damage != "" || len(r.Apart) != 1 || r.Apart[0].Branch != "broken" ||
		r.Apart[0].Damage == "" {
		t.Errorf("%+v", r)
	}
}
