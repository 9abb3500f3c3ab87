package odd_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/app"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/odd"
	"yardmaster/internal/proof/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// yard runs a control plane that ada of acme has set up.
func yard(t *testing.T) *rig.Yard {
	t.Helper()
	y := rig.Boot(t, db.SQLite, rig.Log(t), func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
		return app.Run(ctx, cfg, app.Options{Version: "test", Logger: log, Ready: func(a *app.App) {
			in := a.Inside()
			ready(rig.Plane{URL: a.URL(), DB: in.DB, Tasks: in.Tasks, Blockers: in.Blockers})
		}})
	})
	return y.Enter()
}

// git is the git of somebody who has configured nothing.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", args...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// all is every branch and tag of a repository, and every object that they reach with its
// name, type and size.
func all(t *testing.T, dir string) (refs, objects string) {
	t.Helper()
	refs = git(t, dir, "for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", "refs/heads", "refs/tags")
	return refs, git(t, dir, "rev-list", "--objects", "--no-object-names", "--branches", "--tags")
}

// Each repository comes back from the server as it was: the same branches, tags and
// objects, and the default branch that it was on. What is refused is so in one sentence,
// and nothing of it is left.
func TestRepositoriesComeBack(t *testing.T) {
	t.Parallel()
	y := yard(t)
	c := &client.Client{URL: y.URL, Token: y.Owner}
	for _, k := range odd.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			dir, err := k.Make(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			name := strings.Trim(strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
					return r
				}
				return '-'
			}, k.Name), "-")
			err = c.AddRepo(t.Context(), dir, "acme", name)
			var known struct {
				DefaultBranch string `json:"default_branch"`
				Enabled       bool
			}
			found := c.Call(t.Context(), "GET", "/v1/repos/acme/"+name, nil, &known)
			if k.Refused != "" {
				if err == nil || !strings.Contains(err.Error(), k.Refused) || strings.Contains(err.Error(), "\n") {
					t.Errorf("it is refused with %v, want one line with %q", err, k.Refused)
				}
				if found == nil {
					t.Errorf("the server knows it: %+v", known)
				}
				return
			}
			if err != nil || found != nil {
				t.Fatalf("add: %v, %v", err, found)
			}
			if head := strings.TrimSpace(git(t, dir, "symbolic-ref", "--short", "HEAD")); known.DefaultBranch != head || !known.Enabled {
				t.Errorf("the server has it as %+v, it is on %s", known, head)
			}
			back := filepath.Join(t.TempDir(), "back.git")
			from := strings.Replace(y.URL, "http://", "http://x:"+y.Owner+"@", 1) + "/git/acme/" + name + ".git"
			git(t, "", "clone", "--quiet", "--mirror", from, back)
			wantRefs, wantObjects := all(t, dir)
			refs, objects := all(t, back)
			if diff := cmp.Diff(wantRefs, refs); diff != "" {
				t.Errorf("refs (-want +got):\n%.2000s", diff)
			}
			if diff := cmp.Diff(wantObjects, objects); diff != "" {
				t.Errorf("objects (-want +got):\n%.2000s", diff)
			}
			if out := git(t, back, "symbolic-ref", "--short", "HEAD"); strings.TrimSpace(out) != known.DefaultBranch {
				t.Errorf("a clone is on %s", out)
			}
			if err := c.AddRepo(t.Context(), dir, "acme", name); err != nil {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}
