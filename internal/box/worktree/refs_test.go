package worktree

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// looseIn counts the refs of a repository that are files of their own.
func looseIn(t *testing.T, dot string) (n int) {
	t.Helper()
	for _, dir := range []string{heads, tags} {
		err := filepath.WalkDir(filepath.Join(dot, dir), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestTagsReachCheckouts(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	blob := git(t, h.bare, "rev-parse", "main:README.md")
	git(t, h.bare, "tag", "-a", "v1.2.0", "-m", "1.2.0", "main")
	git(t, h.bare, "tag", "-a", "of-a-tag", "-m", "again", "v1.2.0")
	git(t, h.bare, "tag", "light", "main")
	git(t, h.bare, "tag", "a-blob", blob)
	git(t, h.bare, "tag", "gone", "main")
	git(t, h.bare, "tag", "20240101", "main") // it could be the name of a commit
	c := fetched(t, h)
	if n := looseIn(t, c.dir); n != 0 {
		t.Errorf("%d refs of a new cache are files", n)
	}
	w := checkout(t, c)
	for _, ref := range []string{"v1.2.0", "of-a-tag", "v1.2.0^{}", "of-a-tag^{}", "light", "a-blob", "gone"} {
		if got, want := git(t, w.dir, "rev-parse", ref), git(t, h.bare, "rev-parse", ref); got != want {
			t.Errorf("%s is %s, not %s", ref, got, want)
		}
	}
	git(t, w.dir, "commit", "-q", "--allow-empty", "-m", "more")
	if got := git(t, w.dir, "describe", "--tags", "--match", "v*"); !strings.HasPrefix(got, "v1.2.0-1-g") {
		t.Errorf("describe: %q", got)
	}
	if sha, err := c.Resolve(t.Context(), "20240101"); err == nil {
		t.Errorf("a tag was taken for the commit %s", sha)
	}
	// A tag moves, one goes, and another takes the place of a folder of tags.
	git(t, h.bare, "tag", "-d", "gone")
	git(t, h.bare, "tag", "gone/deeper", "main")
	moved := git(t, h.bare, "commit-tree", "-m", "moved", "main^{tree}")
	git(t, h.bare, "tag", "-f", "light", moved)
	if err := c.Fetch(t.Context(), h.url, token); err != nil {
		t.Fatal(err)
	}
	d, err := c.Checkout(t.Context(), filepath.Join(t.TempDir(), "d"), "", "main", agentID)
	if err != nil {
		t.Fatal(err)
	}
	if got := git(t, d.dir, "tag", "-l", "gone*"); got != "gone/deeper" || git(t, d.dir, "rev-parse", "light") != moved {
		t.Errorf("%q", got)
	}
	git(t, d.dir, "fsck", "--strict")
}

// TestManyRefs holds that neither a cache nor a checkout has a file for each of many
// refs, which every command of git would read, and that what is kept has its time still.
func TestManyRefs(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	c := fetched(t, h)
	ctx := t.Context()
	base, _ := c.Resolve(ctx, "main")
	if err := c.Keep(ctx, "kept", base, ""); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(c.refFile(keptAt("kept", "")), time.Time{}, old); err != nil {
		t.Fatal(err)
	}
	var refs strings.Builder
	for i := range 300 {
		fmt.Fprintf(&refs, "create refs/heads/b%d %s\ncreate refs/tags/t%d %s\n", i, base, i, base)
	}
	cmd := exec.Command("git", "-C", h.bare, "update-ref", "--stdin")
	cmd.Stdin = strings.NewReader(refs.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for range 2 {
		if err := c.Fetch(ctx, h.url, token); err != nil {
			t.Fatal(err)
		}
		w, err := c.Checkout(ctx, filepath.Join(t.TempDir(), "task"), "svc/x--01234567", "main", agentID)
		if err != nil {
			t.Fatal(err)
		}
		if n, m := looseIn(t, c.dir), looseIn(t, filepath.Join(w.dir, ".git")); n != 0 || m != 0 {
			t.Errorf("%d refs of the cache and %d of the checkout are files", n, m)
		}
		if n := strings.Count(git(t, w.dir, "for-each-ref"), "\n"); n != 602 { // main, old, the branch of the checkout
			t.Errorf("%d refs", n+1)
		}
		if err := w.Remove(); err != nil {
			t.Error(err)
		}
	}
	git(t, h.bare, "update-ref", "-d", "refs/heads/b7")
	if err := c.Fetch(ctx, h.url, token); err != nil {
		t.Fatal(err)
	}
	if sha, err := c.Resolve(ctx, "b7"); err == nil {
		t.Errorf("a branch that is gone is at %s", sha)
	}
	if n, err := c.ForgetKept(ctx, old.Add(time.Minute)); n != 1 || err != nil {
		t.Errorf("%d forgotten, %v", n, err)
	}
	if sha, err := c.Kept(ctx, "kept", ""); err == nil {
		t.Errorf("still kept: %s", sha)
	}
}
