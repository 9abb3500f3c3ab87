package worktree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/proof/executable"
)

func collect(t *testing.T, w *Checkout) Result {
	t.Helper()
	r, err := w.Collect(t.Context(), "WIP: uncommitted\n")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// at reads a file of a commit in the cache.
func at(t *testing.T, c *Cache, sha, path string) string {
	t.Helper()
	return git(t, c.dir, "--git-dir="+c.dir, "show", sha+":"+path)
}

func TestCheckoutIsAnOrdinaryRepository(t *testing.T) {
	h := newHost(t)
	c := fetched(t, h)
	w := checkout(t, c)
	main, _ := c.Resolve(t.Context(), "main")
	for cmdline, want := range map[string]string{
		"status --porcelain": "", "rev-parse HEAD": main, "rev-parse --abbrev-ref HEAD": "svc/x--01234567",
		"rev-parse origin/main": main, "config user.email": agentID.Email, "remote": "", "log --oneline --format=%s": "first",
	} {
		if got := git(t, w.dir, strings.Fields(cmdline)...); got != want {
			t.Errorf("git %s: %q, not %q", cmdline, got, want)
		}
	}
	if r := collect(t, w); !cmp.Equal(r, Result{Base: main, Tip: main}) {
		t.Errorf("untouched: %+v", r)
	}
	d, err := c.Checkout(t.Context(), filepath.Join(t.TempDir(), "d"), "", main, agentID)
	if err != nil || git(t, d.dir, "rev-parse", "--abbrev-ref", "HEAD") != "HEAD" {
		t.Error(err)
	}
	var ce *CheckoutError
	if _, err := c.Checkout(t.Context(), w.dir, "b", main, agentID); !errors.As(err, &ce) {
		t.Error("a folder that is not empty:", err)
	}
	if _, err := c.Checkout(t.Context(), filepath.Join(t.TempDir(), "x"), "bad..name", main, agentID); !errors.As(err, &ce) {
		t.Error("a bad branch:", err)
	}
	if _, err := c.Checkout(t.Context(), filepath.Join(t.TempDir(), "x"), "b", "nope", agentID); !errors.Is(err, ErrNoRev) {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(d.dir, "closed"), 0o000); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(d.dir); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestCollectCommitsAndFiles(t *testing.T) {
	c := fetched(t, newHost(t))
	w := checkout(t, c)
	write(t, w.dir, map[string]string{"committed": "1\n"})
	git(t, w.dir, "add", "-A")
	git(t, w.dir, "commit", "-q", "-m", "one")
	write(t, w.dir, map[string]string{
		"committed": "2\n", "untracked": "u\n", "x.log": "ignored\n", "build/out": "ignored\n", "dir2/c": "c\n", "odd \"name\"\n": "o\n",
	})
	err := errors.Join(
		os.Remove(filepath.Join(w.dir, "README.md")),
		os.RemoveAll(filepath.Join(w.dir, "dir")), executable.Write(filepath.Join(w.dir, "dir"), []byte("now a file\n"), 0o755),
		os.Remove(filepath.Join(w.dir, "src/main.go")), os.MkdirAll(filepath.Join(w.dir, "src/main.go"), 0o755),
		os.WriteFile(filepath.Join(w.dir, "src/main.go/now"), []byte("a folder\n"), 0o644),
		os.Symlink("/etc/passwd", filepath.Join(w.dir, "link")),
	)
	if err != nil {
		t.Fatal(err)
	}
	r := collect(t, w)
	want := []string{"README.md", "committed", "dir", "dir/a", "dir/b", "dir2/c", "link", "odd \"name\"\n", "src/main.go",
		"src/main.go/now", "untracked"}
	if d := cmp.Diff(want, r.Paths); d != "" || !r.Dirty || r.Commits != 2 || r.Damage != "" || len(r.Skipped) != 0 {
		t.Errorf("%+v\n%s", r, d)
	}
	if got := at(t, c, r.Tip, "link"); got != "/etc/passwd" {
		t.Errorf("the link was followed: %.40q", got)
	}
	if got := git(t, c.dir, "--git-dir="+c.dir, "log", "-1", "--format=%an <%ae> %s",
		r.Tip); got != "Agent <agent@box.invalid> WIP: uncommitted" {
		t.Error(got)
	}
	if got := git(t, c.dir, "--git-dir="+c.dir, "ls-tree", r.Tip, "dir"); !strings.HasPrefix(got, "100755 blob") {
		t.Error(got)
	}
	if again := collect(t, w); again.Commits != 2 || !cmp.Equal(again.Paths, r.Paths) {
		t.Errorf("a second time: %+v", again)
	}
}

func TestCollectFromPacksAndPackedRefs(t *testing.T) {
	c := fetched(t, newHost(t))
	w := checkout(t, c)
	for i := range 3 {
		write(t, w.dir, map[string]string{"f": fmt.Sprint(i)})
		git(t, w.dir, "add", "-A")
		git(t, w.dir, "commit", "-q", "-m", "m")
	}
	git(t, w.dir, "pack-refs", "--all")
	git(t, w.dir, "repack", "-a", "-d", "-q")
	if r := collect(t, w); r.Commits != 3 || r.Dirty || r.Damage != "" || r.Tip != git(t, w.dir, "rev-parse", "HEAD") {
		t.Errorf("%+v", r)
	}
}

func TestCollectWhereTheAgentWent(t *testing.T) {
	c := fetched(t, newHost(t))
	w := checkout(t, c)
	git(t, w.dir, "commit", "-q", "--allow-empty", "-m", "on the branch")
	tip := git(t, w.dir, "rev-parse", "HEAD")
	git(t, w.dir, "checkout", "-q", "--detach", "origin/main")
	if r := collect(t, w); r.Tip != tip || r.Dirty || r.Commits != 1 {
		t.Errorf("looking elsewhere: %+v", r)
	}
	git(t, w.dir, "checkout", "-q", "-b", "own-idea")
	git(t, w.dir, "commit", "-q", "--allow-empty", "-m", "elsewhere")
	if r := collect(t, w); r.Tip != git(t, w.dir, "rev-parse", "HEAD") || r.Commits != 1 {
		t.Errorf("on a branch of its own: %+v", r)
	}
}

func TestCollectLeavesOut(t *testing.T) {
	c := fetched(t, newHost(t))
	w := checkout(t, c)
	write(t, w.dir, map[string]string{"nested/f": "1\n", "kept": "1\n"})
	git(t, filepath.Join(w.dir, "nested"), "init", "-q")
	git(t, filepath.Join(w.dir, "nested"), "add", "-A")
	git(t, filepath.Join(w.dir, "nested"), "commit", "-q", "-m", "m")
	err := errors.Join(
		syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o644),
		os.WriteFile(filepath.Join(w.dir, "huge"), nil, 0o644), os.Truncate(filepath.Join(w.dir, "huge"), maxFile+1),
		os.Truncate(filepath.Join(w.dir, "README.md"), maxFile+1),
	)
	if err != nil {
		t.Fatal(err)
	}
	r := collect(t, w)
	want := []Skipped{{"README.md", "larger than 50 MB"}, {"huge", "larger than 50 MB"}, {"nested", "a repository of its own"}}
	got := slices.DeleteFunc(slices.Clone(r.Skipped), func(s Skipped) bool { return s.Path == "pipe" }) // git may or may not list it
	if d := cmp.Diff(want, got); d != "" || !slices.Equal(r.Paths, []string{"kept"}) {
		t.Errorf("%q\n%s", r.Paths, d)
	}
}

// TestHostileCheckouts plants everything that makes git run a program, read
// another place or wait, and holds that collecting does none of it and still
// gets the work.
func TestHostileCheckouts(t *testing.T) {
	plant := func(t *testing.T, w *Checkout, canary string, dot string) {
		t.Helper()
		evil := filepath.Join(filepath.Dir(w.dir), "evil.sh")
		if err := executable.Write(evil, []byte("#!/bin/sh\necho \"$0 $@\" >>"+canary+"\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, kv := range [][2]string{
			{"core.fsmonitor", evil}, {"core.sshCommand", evil}, {"core.pager", evil}, {"core.editor", evil}, {"core.gitProxy", evil},
			{"core.hooksPath", filepath.Dir(evil)}, {"core.alternateRefsCommand", evil}, {"core.askPass", evil}, {"diff.external", evil},
			{"alias.fetch", "!" + evil}, {"alias.status", "!" + evil}, {"filter.evil.clean", evil}, {"filter.evil.smudge", evil},
			{"filter.evil.process", evil}, {"filter.evil.required", "true"}, {"uploadpack.packObjectsHook", evil},
			{"credential.helper", "!" + evil},
			{"gpg.program", evil}, {"commit.gpgSign", "true"}, {"extensions.partialClone", "origin"}, {"core.repositoryFormatVersion", "1"},
			{"remote.origin.promisor", "true"}, {"remote.origin.url", "ext::" + evil}, {"remote.origin.uploadpack", evil},
		} {
			git(t, "/", "config", "--file", filepath.Join(dot, "config"), kv[0], kv[1])
		}
		for _, hook := range []string{"pre-commit", "post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc",
			"fsmonitor-watchman", "update", "pre-push"} {
			body, _ := os.ReadFile(evil)
			for _, dir := range []string{filepath.Join(dot, "hooks"), filepath.Dir(evil)} {
				if err := errors.Join(os.MkdirAll(dir, 0o755), executable.Write(filepath.Join(dir, hook), body, 0o755)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	commit := func(t *testing.T, dir string) string {
		t.Helper()
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", "agent")
		return git(t, dir, "rev-parse", "HEAD")
	}
	must := func(t *testing.T, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	type trick struct {
		do     func(t *testing.T, w *Checkout, canary, dot string)
		damage bool   // the agent's commit is lost, its files are not
		armed  string // a folder where plain "git status" runs what was planted
	}
	for name, x := range map[string]trick{
		"configuration and hooks": {armed: ".", do: func(t *testing.T, w *Checkout, canary, dot string) {
			commit(t, w.dir)
			plant(t, w, canary, dot)
			write(t, w.dir, map[string]string{".gitattributes": "* filter=evil diff=evil\n", "late": "1\n"})
		}},
		"a submodule with a configuration": {armed: "sub", do: func(t *testing.T, w *Checkout, canary, dot string) {
			sub := filepath.Join(w.dir, "sub")
			write(t, sub, map[string]string{"f": "1\n"})
			git(t, sub, "init", "-q")
			commit(t, sub)
			write(t, w.dir, map[string]string{".gitmodules": "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tupdate = checkout\n"})
			commit(t, w.dir)
			plant(t, w, canary, filepath.Join(sub, ".git"))
			write(t, sub, map[string]string{"f": "2\n", "g": "2\n"})
			write(t, w.dir, map[string]string{"late": "1\n"})
		}},
		"a .git file that points elsewhere": {damage: true, armed: ".", do: func(t *testing.T, w *Checkout, canary, dot string) {
			commit(t, w.dir)
			away := filepath.Join(filepath.Dir(w.dir), "away")
			must(t, os.Rename(dot, away), os.WriteFile(dot, []byte("gitdir: "+away+"\n"), 0o644))
			plant(t, w, canary, away)
		}},
		"a .git link": {damage: true, armed: ".", do: func(t *testing.T, w *Checkout, canary, dot string) {
			commit(t, w.dir)
			away := filepath.Join(filepath.Dir(w.dir), "away")
			must(t, os.Rename(dot, away), os.Symlink(away, dot))
			plant(t, w, canary, away)
		}},
		"no .git": {damage: true, do: func(t *testing.T, w *Checkout, canary, dot string) { must(t, os.RemoveAll(dot)) }},
		"a .git pipe": {damage: true, do: func(t *testing.T, w *Checkout, canary, dot string) {
			must(t, os.RemoveAll(dot), syscall.Mkfifo(dot, 0o644))
		}},
		"HEAD is a pipe": {damage: true, do: func(t *testing.T, w *Checkout, canary, dot string) {
			commit(t, w.dir)
			must(t, os.Remove(filepath.Join(dot, "HEAD")), syscall.Mkfifo(filepath.Join(dot, "HEAD"), 0o644))
		}},
		"HEAD is outside": {damage: true, do: func(t *testing.T, w *Checkout, canary, dot string) {
			must(t, os.WriteFile(filepath.Join(dot, "HEAD"), []byte("ref: refs/heads/../../../../../etc/passwd\n"), 0o644))
		}},
		"objects are a link": {damage: true, do: func(t *testing.T, w *Checkout, canary, dot string) {
			commit(t, w.dir)
			away := filepath.Join(filepath.Dir(w.dir), "objects")
			must(t, os.Rename(filepath.Join(dot, "objects"), away), os.Symlink(away, filepath.Join(dot, "objects")))
		}},
		"alternates to a foreign repository": {damage: true, do: func(t *testing.T, w *Checkout, canary, dot string) {
			foreign := filepath.Join(t.TempDir(), "foreign")
			git(t, "/", "init", "-q", foreign)
			write(t, foreign, map[string]string{"secret": "foreign content\n"})
			secret := commit(t, foreign)
			alternates := filepath.Join(dot, "objects/info/alternates")
			must(t, os.WriteFile(alternates, []byte(w.cache.Objects()+"\n"+filepath.Join(foreign, ".git/objects")+"\n"), 0o644))
			git(t, w.dir, "update-ref", "--no-deref", "HEAD", secret)
		}},
		"a corrupt object": {damage: true, do: func(t *testing.T, w *Checkout, canary, dot string) {
			sha := commit(t, w.dir)
			object := filepath.Join(dot, "objects", sha[:2], sha[2:])
			must(t, os.Chmod(object, 0o644), os.WriteFile(object, []byte("x"), 0o644))
		}},
		"a tree with .git in it": {damage: true, do: func(t *testing.T, w *Checkout, canary, dot string) {
			blob := git(t, w.dir, "hash-object", "-w", "mark")
			tree := git(t, w.dir, "hash-object", "-w", "-t", "tree", "--literally", rawTree(t, ".git", blob))
			git(t, w.dir, "update-ref", "--no-deref", "HEAD", git(t, w.dir, "commit-tree", tree, "-m", "evil"))
		}},
		"folders that are links outside": {do: func(t *testing.T, w *Checkout, canary, dot string) {
			outside := t.TempDir()
			write(t, outside, map[string]string{"a": "foreign content\n", "b": "foreign content\n"})
			must(t, os.RemoveAll(filepath.Join(w.dir, "dir")), os.Symlink(outside, filepath.Join(w.dir, "dir")))
		}},
		"replaced objects": {do: func(t *testing.T, w *Checkout, canary, dot string) {
			commit(t, w.dir)
			git(t, w.dir, "replace", "HEAD", "HEAD~1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := fetched(t, newHost(t))
			w := checkout(t, c)
			canary := filepath.Join(t.TempDir(), "canary")
			write(t, w.dir, map[string]string{"mark": "work\n"})
			x.do(t, w, canary, filepath.Join(w.dir, ".git"))
			if x.armed != "" {
				status := exec.CommandContext(t.Context(), "git", "status")
				status.Dir, status.Env = filepath.Join(w.dir, x.armed), userEnv
				out, err := status.CombinedOutput() // what the trick does to git itself is not of interest
				if _, statErr := os.Stat(canary); statErr != nil {
					t.Fatalf("the trick is none: %v: %s", err, out)
				}
			}
			os.Remove(canary)
			r := collect(t, w)
			if b, err := os.ReadFile(canary); err == nil {
				t.Errorf("something was run: %s", b)
			}
			if (r.Damage != "") != x.damage {
				t.Errorf("damage %q", r.Damage)
			}
			if got := at(t, c, r.Tip, "mark"); got != "work" {
				t.Errorf("the work is %q", got)
			}
			files := git(t, c.dir, "--git-dir="+c.dir, "archive", r.Tip)
			if strings.Contains(files, "foreign content") {
				t.Error("took a foreign file")
			}
		})
	}
}

// rawTree writes a tree of one file under a name that git would refuse.
func rawTree(t *testing.T, name, blob string) string {
	t.Helper()
	var sha []byte
	if _, err := fmt.Sscanf(blob, "%x", &sha); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tree")
	if err := os.WriteFile(path, append([]byte("100644 "+name+"\x00"), sha...), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFrugalCheckoutLeavesOutVeryManyNewFiles holds that after a full disk only
// committed or changed files are taken, unless there are few others.
func TestFrugalCheckoutLeavesOutVeryManyNewFiles(t *testing.T) {
	h := newHost(t)
	c := fetched(t, h)
	for n, taken := range map[int]bool{10: true, mostNew + 1: false} {
		w := checkout(t, c)
		w.Frugal = true
		files := map[string]string{"README.md": "changed\n"}
		for i := range n {
			files[fmt.Sprintf("new/%d", i)] = "x"
		}
		write(t, w.dir, files)
		r := collect(t, w)
		if at(t, c, r.Tip, "README.md") != "changed" {
			t.Errorf("%d new files: what was changed is not taken", n)
		}
		if got := len(r.Paths) == n+1; got != taken || len(r.Skipped) != map[bool]int{true: 0, false: 1}[taken] {
			t.Errorf("%d new files: took %d paths, skipped %v", n, len(r.Paths), r.Skipped)
		}
		if err := w.Remove(); err != nil {
			t.Fatal(err)
		}
	}
}
