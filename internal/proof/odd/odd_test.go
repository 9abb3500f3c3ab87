package odd_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// contents are the names of what a repository has of Git LFS, which are their sums.
func contents(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, ".git/lfs/objects"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, d.Name())
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

// contentsComeBack fetches what a clone lacks of Git LFS as people do, and holds it against its
// names.
func contentsComeBack(t *testing.T, back string, want []string) {
	t.Helper()
	git(t, back, "lfs", "fetch", "--all")
	for _, name := range want {
		b, err := os.ReadFile(filepath.Join(back, "lfs/objects", name[:2], name[2:4], name))
		if sum := sha256.Sum256(b); err != nil || hex.EncodeToString(sum[:]) != name {
			t.Errorf("the content %s: %v, %d bytes", name, err, len(b))
		}
	}
}

// add makes a repository of a kind and those beside it, and puts them on the server.
func add(t *testing.T, c *client.Client, k odd.Kind, name string) (dir string, err error) {
	t.Helper()
	for _, other := range k.Beside {
		if _, err := add(t, c, other, other.Name); err != nil {
			t.Fatal(other.Name, err)
		}
	}
	if dir, err = k.Make(t.Context(), t.TempDir()); err != nil {
		t.Fatal(k.Name, err)
	}
	return dir, c.AddRepo(t.Context(), dir, "acme", name)
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
			name := nameOf(k)
			dir, err := add(t, c, k, name)
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
			if want := contents(t, dir); len(want) > 0 {
				contentsComeBack(t, back, want)
			}
			if err := c.AddRepo(t.Context(), dir, "acme", name); err != nil {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

// shop is a server with a box.
type shop struct {
	*rig.Yard
	t *testing.T
	c *client.Client
}

func newShop(t *testing.T) *shop {
	t.Helper()
	y := yard(t)
	s := &shop{y, t, &client.Client{URL: y.URL, Token: y.Owner}}
	var enrollment struct{ Token string }
	s.call("POST", "/v1/runners/enrollments", map[string]any{"name": "bench"}, &enrollment)
	y.Box(enrollment.Token)
	return s
}

func (s *shop) call(method, path string, in, out any) {
	s.t.Helper()
	if err := s.c.Call(s.t.Context(), method, path, in, out); err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// work is a task in a repository.
type work struct{ name, before, from, task, branch string }

// withPolicy puts a policy file on the default branch, unless the folder has one that was pushed,
// and returns its commit.
func (s *shop) withPolicy(w work, dir string) string {
	t := s.t
	t.Helper()
	if git(t, dir, "ls-tree", "HEAD", odd.PolicyFile) != "" {
		return strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
	}
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, "", "clone", "--quiet", "--no-tags", "--single-branch", "--no-checkout", "--depth=1", w.from, clone)
	file := filepath.Join(clone, odd.PolicyFile)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(odd.Policy), 0o644)); err != nil {
		t.Fatal(err)
	}
	git(t, clone, "read-tree", "HEAD")
	git(t, clone, "add", odd.PolicyFile)
	git(t, clone, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--message", "policy")
	git(t, clone, "push", "--quiet", "origin", "HEAD")
	return strings.TrimSpace(git(t, clone, "rev-parse", "HEAD"))
}

// begin has an agent add one file to a repository of acme that is on the server, whose default
// branch is that of a folder.
func (s *shop) begin(k odd.Kind, dir string) work {
	t := s.t
	t.Helper()
	w := work{name: nameOf(k), branch: strings.TrimSpace(git(t, dir, "symbolic-ref", "--short", "HEAD"))}
	w.from = strings.Replace(s.URL, "http://", "http://x:"+s.Owner+"@", 1) + "/git/acme/" + w.name + ".git"
	w.before = s.withPolicy(w, dir)
	holds := k.Holds
	if holds == "" {
		holds = "true"
	}
	s.call("PUT", "/v1/templates/"+w.name, map[string]any{"agent": "command", "command": []string{"sh", "-c", holds +
		` && echo new >NEW.txt && git add NEW.txt && git commit --quiet --message new && echo "Added a file." >"$YARDMASTER_REPORT"`}}, nil)
	var filed struct {
		ID string `json:"task_id"`
	}
	s.call("POST", "/v1/tasks", map[string]any{"repo": "acme/" + w.name, "title": "Add a file", "problem": "Add NEW.txt.",
		"template": w.name}, &filed)
	w.task = filed.ID
	return w
}

// merged waits for the end of some work, and wants of its merge that it changes one file and
// nothing else. It returns a clone.
func (s *shop) merged(w work) (back string) {
	t := s.t
	t.Helper()
	var now struct {
		Status  string
		Failure *string `json:"failure"`
	}
	s.Eventually("the end of the task in "+w.name, func() bool {
		s.call("GET", "/v1/tasks/"+w.task, nil, &now)
		return now.Status == "merged" || now.Status == "failed" || now.Status == "completed" || now.Status == "held"
	})
	if now.Status != "merged" {
		why := ""
		if now.Failure != nil {
			why = *now.Failure
		}
		t.Errorf("%s: the task is %s: %s", w.name, now.Status, why)
		return ""
	}
	back = filepath.Join(t.TempDir(), "back.git")
	git(t, "", "clone", "--quiet", "--bare", "--single-branch", w.from, back)
	changed := git(t, back, "diff", "--raw", "--no-renames", "--abbrev=40", w.before, w.branch)
	if strings.Count(changed, "\n") != 1 || !strings.HasSuffix(changed, " A\tNEW.txt\n") {
		t.Errorf("%s: the merge changes\n%.2000s", w.name, changed)
	}
	if out := git(t, back, "rev-list", "--count", w.before, "--not", w.branch); strings.TrimSpace(out) != "0" {
		t.Errorf("%s: %s commits are gone", w.name, out)
	}
	return back
}

// An agent that adds one file to a repository of any kind changes that file alone: what it
// has done is merged, and all else is as it was, byte for byte. It has what the repository keeps
// elsewhere.
func TestWorkInRepositoriesOfAllKinds(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var all []work
	for _, k := range odd.Kinds() {
		if k.Refused != "" {
			continue
		}
		dir, err := add(t, s.c, k, nameOf(k))
		if err != nil {
			t.Fatal(k.Name, err)
		}
		all = append(all, s.begin(k, dir))
	}
	for _, w := range all {
		s.merged(w)
	}
}

// large puts a repository of so many bytes through all that the others go through.
func large(t *testing.T, size int64) {
	s := newShop(t)
	k := odd.Large(size)
	dir, err := add(t, s.c, k, nameOf(k))
	if err != nil {
		t.Fatal(err)
	}
	w := s.begin(k, dir)
	_, want := all(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, ".git", "objects", "pack")); err != nil { // the disk is not endless
		t.Fatal(err)
	}
	back := s.merged(w)
	if back == "" {
		return
	}
	_, objects := all(t, back)
	have := strings.Fields(objects)
	for _, sha := range strings.Fields(want) {
		if !slices.Contains(have, sha) {
			t.Errorf("%s did not come back", sha)
		}
	}
}

func TestLargeRepository(t *testing.T) {
	t.Parallel()
	large(t, 100<<20)
}

// TestTwoGigabytes is played at night. It has its data on the disk: what lies in memory may be
// too small.
func TestTwoGigabytes(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "odd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // the agent of a root box is another user, who must get through
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	large(t, 2_000_000_000)
}
