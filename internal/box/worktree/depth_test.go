package worktree

import "testing"

// A checkout of some depth shows so much history, and its work is collected as from any other.
func TestShorten(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	seed := t.TempDir()
	git(t, seed, "clone", "-q", h.bare, "w")
	dir := seed + "/w"
	for _, name := range []string{"two", "three", "four"} {
		write(t, dir, map[string]string{name: name})
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-qm", name)
	}
	git(t, dir, "push", "-q", "origin", "HEAD:main")
	c := fetched(t, h)
	w := checkout(t, c)
	if err := w.Shorten(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if got := git(t, w.Dir(), "rev-list", "--count", "HEAD"); got != "2" {
		t.Errorf("%s commits", got)
	}
	if got := git(t, w.Dir(), "status", "--short"); got != "" {
		t.Errorf("git takes files for changed: %s", got)
	}
	write(t, w.Dir(), map[string]string{"five": "five"})
	git(t, w.Dir(), "add", "-A")
	git(t, w.Dir(), "commit", "-qm", "five")
	write(t, w.Dir(), map[string]string{"six": "six"})
	r, err := w.Collect(t.Context(), "six")
	if err != nil || r.Damage != "" || r.Commits != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	if got := git(t, c.dir, "rev-list", "--count", r.Tip); got != "6" {
		t.Errorf("%s commits in the cache", got)
	}
	if err := c.Push(t.Context(), h.url, token, r.Tip, "refs/heads/work", false); err != nil {
		t.Error(err)
	}
}
