package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTreeThatMultiplies holds that a commit whose tree contains itself many times
// is not taken, and that the rest of the work is.
func TestTreeThatMultiplies(t *testing.T) {
	for name, checkedOut := range map[string]bool{"checked out": true, "on the branch": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fetched(t, newHost(t))
			w := checkout(t, c)
			entry := "100644 blob " + git(t, w.dir, "hash-object", "-w", ".git/HEAD")
			list := filepath.Join(t.TempDir(), "list")
			for range 12 {
				var tree strings.Builder
				for i := range 10 {
					fmt.Fprintf(&tree, "%s\tn%d\n", entry, i)
				}
				if err := os.WriteFile(list, []byte(tree.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				in, err := os.Open(list)
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command("git", "mktree")
				cmd.Dir, cmd.Stdin = w.dir, in
				made, err := cmd.Output()
				in.Close()
				if err != nil {
					t.Fatal(err)
				}
				entry = "040000 tree " + strings.TrimSpace(string(made))
			}
			bomb := git(t, w.dir, "commit-tree", "-p", "HEAD", "-m", "many", strings.TrimPrefix(entry, "040000 tree "))
			if !checkedOut {
				git(t, w.dir, "checkout", "-q", "--detach")
			}
			git(t, w.dir, "update-ref", "refs/heads/svc/x--01234567", bomb)
			write(t, w.dir, map[string]string{"made": "by the agent\n"})
			r := collect(t, w)
			if at(t, c, r.Tip, "made") != "by the agent" || strings.Join(r.Paths, " ") != "made" || checkedOut == (r.Damage == "") {
				t.Errorf("%+v", r)
			}
		})
	}
}
