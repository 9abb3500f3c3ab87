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

// nameOf is a name for the repository of a kind.
func nameOf(k odd.Kind) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, k.Name), "-")
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
			name := nameOf(k)
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

// policy has a pull request merged by itself.
const policy = "version: 1\nreview: {mode: \"off\"}\nmerge: {mode: auto}\n"

// An agent that adds one file to a repository of any kind changes that file alone: what it
// has done is merged, and all else is as it was, byte for byte.
func TestWorkInRepositoriesOfAllKinds(t *testing.T) {
	t.Parallel()
	y := yard(t)
	c := &client.Client{URL: y.URL, Token: y.Owner}
	var enrollment struct{ Token string }
	call := func(method, path string, in, out any) {
		t.Helper()
		if err := c.Call(t.Context(), method, path, in, out); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	call("POST", "/v1/runners/enrollments", map[string]any{"name": "bench"}, &enrollment)
	y.Box(enrollment.Token)
	call("PUT", "/v1/templates/adds", map[string]any{"agent": "command", "command": []string{"sh", "-c",
		`echo new >NEW.txt && git add NEW.txt && git commit --quiet --message new && echo "Added a file." >"$YARDMASTER_REPORT"`}}, nil)
	type work struct{ name, before, from, task, branch string }
	var all []work
	for _, k := range odd.Kinds() {
		if k.Refused != "" {
			continue
		}
		dir, err := k.Make(t.Context(), t.TempDir())
		if err == nil {
			err = c.AddRepo(t.Context(), dir, "acme", nameOf(k))
		}
		if err != nil {
			t.Fatal(k.Name, err)
		}
		w := work{name: nameOf(k), branch: strings.TrimSpace(git(t, dir, "symbolic-ref", "--short", "HEAD"))}
		w.from = strings.Replace(y.URL, "http://", "http://x:"+y.Owner+"@", 1) + "/git/acme/" + w.name + ".git"
		clone := filepath.Join(t.TempDir(), "clone")
		git(t, "", "clone", "--quiet", "--no-tags", "--single-branch", w.from, clone)
		if err := os.MkdirAll(filepath.Join(clone, ".svc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(clone, ".svc", "policy.yml"), []byte(policy), 0o644); err != nil {
			t.Fatal(err)
		}
		git(t, clone, "add", ".svc")
		git(t, clone, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--message", "policy", "--", ".svc")
		git(t, clone, "push", "--quiet", "origin", "HEAD")
		w.before = strings.TrimSpace(git(t, clone, "rev-parse", "HEAD"))
		var filed struct {
			ID string `json:"task_id"`
		}
		task := map[string]any{"repo": "acme/" + w.name, "title": "Add a file", "problem": "Add NEW.txt.", "template": "adds"}
		call("POST", "/v1/tasks", task, &filed)
		w.task = filed.ID
		all = append(all, w)
	}
	for _, w := range all {
		var now struct {
			Status  string
			Failure *string `json:"failure"`
		}
		y.Eventually("the end of the task in "+w.name, func() bool {
			call("GET", "/v1/tasks/"+w.task, nil, &now)
			return now.Status == "merged" || now.Status == "failed" || now.Status == "completed" || now.Status == "held"
		})
		if now.Status != "merged" {
			t.Errorf("%s: the task is %s: %v", w.name, now.Status, now.Failure)
			continue
		}
		back := filepath.Join(t.TempDir(), "back.git")
		git(t, "", "clone", "--quiet", "--bare", "--single-branch", w.from, back)
		changed := git(t, back, "diff", "--raw", "--no-renames", "--abbrev=40", w.before, w.branch)
		if strings.Count(changed, "\n") != 1 || !strings.HasSuffix(changed, " A\tNEW.txt\n") {
			t.Errorf("%s: the merge changes\n%.2000s", w.name, changed)
		}
		if out := git(t, back, "rev-list", "--count", w.before, "--not", w.branch); strings.TrimSpace(out) != "0" {
			t.Errorf("%s: %s commits are gone", w.name, out)
		}
	}
}
