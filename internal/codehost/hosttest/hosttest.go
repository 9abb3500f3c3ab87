// Package hosttest holds what every code host does alike: one test of codehost.Host,
// which the hosts run with real repositories.
package hosttest

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// Site is a host with an empty repository.
type Site struct {
	Host codehost.Host
	Repo codehost.Repo
	// Remote is where the test pushes to: a folder, or an address with a credential.
	Remote string
	// Pull opens a pull request, and answers its number at the host; 0 at a host that
	// keeps none.
	Pull func(t *testing.T, head, base string) int64
}

// Squash and merge commits have this author unless the host says who merges.
var ann = codehost.Person{Name: "Ann", Email: "ann@example.com"}

// clone is the test's work tree.
type clone struct {
	t    *testing.T
	dir  string
	site Site
}

func (c clone) git(args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "git", args...)
	cmd.Dir = c.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// branch makes a branch from a start point with one commit of files, given by pairs of
// path and content, and pushes it.
func (c clone) branch(name, from string, files ...string) string {
	c.t.Helper()
	if from == "" {
		c.git("checkout", "-q", "--orphan", name)
	} else {
		c.git("checkout", "-q", "-B", name, from)
	}
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(c.dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	c.git("add", "-A")
	c.git("commit", "-q", "-m", "change "+name)
	c.git("push", "-q", "-f", "origin", name)
	return c.git("rev-parse", "HEAD")
}

// Run tests a host. site makes a new one for each part.
func Run(t *testing.T, site func(t *testing.T) Site) {
	for name, part := range map[string]func(*testing.T, clone){
		"empty": empty, "first": first, "read": read, "compare": compare, "merge": merge, "conflict": conflict,
		"write": write, "delete": deletes,
		"stack": stack, "above": above, "search": search,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t)
			c := clone{t, t.TempDir(), s}
			c.git("init", "-q", "-b", "main")
			c.git("remote", "add", "origin", s.Remote)
			part(t, c)
		})
	}
}

// wants fails the test unless err is the fault.
func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func empty(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	info := must(h.Info(ctx, r))(t)
	if !info.Empty || info.HeadSHA != "" || info.Repo.Key() != r.Key() {
		t.Errorf("an empty repository: %+v", info)
	}
	_, err := h.Head(ctx, r, "main")
	wants(t, "the head of nothing", err, codehost.ErrNotFound)
	_, _, err = h.ReadFile(ctx, r, "HEAD", "a")
	wants(t, "a file of nothing", err, codehost.ErrNotFound)
	head := c.branch("main", "", "a.txt", "one\n")
	info = must(h.Info(ctx, r))(t)
	if want := (codehost.Info{Repo: info.Repo, DefaultBranch: "main", HeadSHA: head}); info != want {
		t.Errorf("with a commit: %+v, want %+v", info, want)
	}
	for _, other := range []codehost.Repo{
		{Host: "nowhere", ID: r.ID, Owner: r.Owner, Name: r.Name}, {Host: r.Host, ID: r.ID, Owner: r.Owner, Name: "../" + r.Name},
	} {
		_, err := h.Info(ctx, other)
		wants(t, other.String(), err, codehost.ErrNotFound)
		_, _, err = h.ReadFile(ctx, other, "main", "a.txt")
		wants(t, "a file of "+other.String(), err, codehost.ErrNotFound)
	}
}

func first(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	o := codehost.FirstOptions{
		Branch: "main", Files: map[string][]byte{"README.md": []byte("# Shop\n"), "scripts/check": []byte("#!/bin/sh\n")},
		Programs: []string{"scripts/check"}, Title: "Begin", Body: "From nothing.", Author: ann, Committer: ann,
		At: time.Unix(1_700_000_000, 5000),
	}
	wrong := o
	wrong.Files = map[string][]byte{"../README.md": nil}
	wrong.Programs = nil
	if _, err := h.FirstCommit(ctx, r, wrong); !fault.IsKind(err, fault.Invalid) {
		t.Errorf("a path outside: %v", err)
	}
	wrong.Branch = "--force"
	if _, err := h.FirstCommit(ctx, r, wrong); !fault.IsKind(err, fault.Invalid) {
		t.Errorf("an option for a branch: %v", err)
	}
	sha := must(h.FirstCommit(ctx, r, o))(t)
	info := must(h.Info(ctx, r))(t)
	if info.Empty || info.HeadSHA != sha || info.DefaultBranch != "main" {
		t.Errorf("with its first commit %s: %+v", sha, info)
	}
	if again, err := h.FirstCommit(ctx, r, o); err != nil || again != sha {
		t.Errorf("the same again: %s, %v", again, err)
	}
	c.git("fetch", "-q", "origin", "main")
	want := "100644 README.md,100755 scripts/check"
	var got []string
	for line := range strings.Lines(c.git("ls-tree", "-r", "FETCH_HEAD")) {
		about, path, _ := strings.Cut(strings.TrimSpace(line), "\t")
		mode, _, _ := strings.Cut(about, " ")
		got = append(got, mode+" "+path)
	}
	if strings.Join(got, ",") != want {
		t.Errorf("it has %v, want %s", got, want)
	}
	if log := c.git("log", "--format=%an %at %P %B", "FETCH_HEAD"); log != "Ann 1700000000  Begin\n\nFrom nothing." {
		t.Errorf("the log says %q", log)
	}
	o.Title = "Begin anew"
	_, err := h.FirstCommit(ctx, r, o)
	wants(t, "another first commit", err, codehost.ErrHeadMoved)
	if now := must(h.Head(ctx, r, "main"))(t); now != sha {
		t.Errorf("main has moved to %s", now)
	}
	r.Host = "nowhere"
	_, err = h.FirstCommit(ctx, r, o)
	wants(t, "a repository of another host", err, codehost.ErrNotFound)
}

func read(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	first := c.branch("main", "", "README.md", "# Shop\n", "src/a.go", "package a\n", "src/b.go", "package b\n", "src/deep/c.go", "x")
	second := c.branch("main", "main", "README.md", "# Store\n")
	other := c.branch("feature/x", first, "new.txt", "new\n")
	for rev, want := range map[string]string{
		"main": "# Store\n", "refs/heads/main": "# Store\n", "HEAD": "# Store\n", second: "# Store\n",
		first: "# Shop\n", "feature/x": "# Shop\n",
	} {
		content, sha, err := h.ReadFile(ctx, r, rev, "README.md")
		if err != nil || string(content) != want || len(sha) != 40 {
			t.Errorf("%s: %q %s, %v", rev, content, sha, err)
		}
	}
	for _, rev := range []string{"gone", strings.Repeat("1", 40), "--help", "main^", ""} {
		_, _, err := h.ReadFile(ctx, r, rev, "README.md")
		wants(t, "at "+rev, err, codehost.ErrNotFound)
	}
	for _, path := range []string{"gone", "src", "../README.md", "a\nb", ""} {
		_, _, err := h.ReadFile(ctx, r, "main", path)
		wants(t, "file "+path, err, codehost.ErrNotFound)
	}
	commit, files, err := h.ReadDir(ctx, r, "main", "src")
	if err != nil || commit != second || !slices.Equal(slices.Sorted(maps.Keys(files)), []string{"a.go", "b.go"}) {
		t.Errorf("the folder: %s %v, %v", commit, files, err)
	}
	_, _, err = h.ReadDir(ctx, r, "main", "nowhere")
	wants(t, "no folder", err, codehost.ErrNotFound)

	for branch, want := range map[string]string{"main": second, "feature/x": other} {
		if got, err := h.Head(ctx, r, branch); err != nil || got != want {
			t.Errorf("the head of %s is %s, %v", branch, got, err)
		}
	}
	_, err = h.Head(ctx, r, "feature")
	wants(t, "a part of a name", err, codehost.ErrNotFound)
	if got, err := h.Commit(ctx, r, other[:10]); err != nil || got != other {
		t.Errorf("the commit %s is %s, %v", other[:10], got, err)
	}
	for _, digits := range []string{"abc", "0000000", "main"} {
		_, err := h.Commit(ctx, r, digits)
		wants(t, "the commit "+digits, err, codehost.ErrNotFound)
	}
	third := c.branch("main", "main", "README.md", "# Market\n") // the head is not remembered
	if got, err := h.Head(ctx, r, "main"); err != nil || got != third {
		t.Errorf("the new head is %s, %v", got, err)
	}
}

func compare(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	base := c.branch("main", "", "a.txt", "one\ntwo\nthree\n", "b.txt", "b\n")
	c.branch("work", "main", "a.txt", "one\n2\nthree\n")
	head := c.branch("work", "work", "new.txt", "n\n")
	got := must(h.Compare(ctx, r, "main", "work"))(t)
	if got.BaseSHA != base || got.HeadSHA != head || got.MergeBase != base || got.Ahead != 2 ||
		!slices.Equal(got.Paths, []string{"a.txt", "new.txt"}) || got.PatchID == "" || got.Added != 2 || got.Deleted != 1 {
		t.Errorf("compared: %+v", got)
	}
	moved := c.branch("main", "main", "b.txt", "bb\n")
	outcome := must(h.Outcome(ctx, r, codehost.OutcomeOptions{Base: "main", Head: "work"}))(t)
	if outcome.BaseSHA != moved || outcome.HeadSHA != head || len(outcome.Changes) != 2 {
		t.Errorf("the outcome: %+v", outcome)
	}
	for path, want := range map[string]string{"b.txt": "bb\n", "a.txt": "one\n2\nthree\n"} {
		if content, _, err := h.ReadFile(ctx, r, outcome.Tree, path); err != nil || string(content) != want {
			t.Errorf("%s after the merge: %q, %v", path, content, err)
		}
	}
	diff := must(h.Diff(ctx, r, codehost.DiffOptions{From: "main", To: "work", SinceFork: true, Path: "a.txt"}))(t)
	if diff.FromSHA != base || diff.ToSHA != head || len(diff.Files) != 2 || diff.File == nil || len(diff.File.Hunks) != 1 {
		t.Errorf("the difference: %+v", diff)
	}
	if one := must(h.Diff(ctx, r, codehost.DiffOptions{To: head}))(t); len(one.Files) != 1 || one.Files[0].Path != "new.txt" {
		t.Errorf("the difference of one commit: %+v", one)
	}
	ok, conflicts, err := h.Mergeable(ctx, r, "main", "work")
	if !ok || conflicts != nil || err != nil {
		t.Errorf("mergeable: %v %v, %v", ok, conflicts, err)
	}
	_, err = h.Compare(ctx, r, "main", "gone")
	wants(t, "compare with nothing", err, codehost.ErrNotFound)
}

func merge(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	base := c.branch("main", "", "a.txt", "a\n")
	for _, method := range []codehost.Method{codehost.MethodMerge, codehost.MethodSquash} {
		name := "svc/" + string(method)
		head := c.branch(name, "main", string(method)+".txt", "x\n")
		o := codehost.MergeOptions{
			Number: c.site.Pull(t, name, "main"), Base: "main", Head: name, HeadSHA: base, Method: method, Title: "Add " + string(method),
			Body: "Because.", Author: ann, Committer: ann,
		}
		at := must(h.Head(ctx, r, "main"))(t)
		if done, err := h.Landed(ctx, r, "main", head); err != nil || done != "" {
			t.Errorf("%s before: %s, %v", method, done, err)
		}
		o.HeadSHA = strings.Repeat("1", 40)
		_, err := h.Merge(ctx, r, o)
		wants(t, "another head", err, codehost.ErrHeadMoved)
		o.HeadSHA, o.BaseSHA = head, strings.Repeat("1", 40)
		_, err = h.Merge(ctx, r, o)
		wants(t, "another base", err, codehost.ErrBaseMoved)
		o.BaseSHA = at
		sha := must(h.Merge(ctx, r, o))(t)
		if now := must(h.Head(ctx, r, "main"))(t); now != sha {
			t.Errorf("%s: main is at %s, not %s", method, now, sha)
		}
		if again, err := h.Merge(ctx, r, o); err != nil || again != sha {
			t.Errorf("%s again: %s, %v, not %s", method, again, err, sha)
		}
		if done, err := h.Landed(ctx, r, "main", head); err != nil || done != sha {
			t.Errorf("%s landed by %s, %v, not %s", method, done, err, sha)
		}
		c.git("fetch", "-q", "origin", "main")
		parents := strings.Fields(c.git("log", "-1", "--format=%P", "FETCH_HEAD"))
		want := map[codehost.Method]int{codehost.MethodMerge: 2, codehost.MethodSquash: 1}[method]
		if len(parents) != want || parents[0] != at {
			t.Errorf("%s has the parents %v", method, parents)
		}
		text := c.git("log", "-1", "--format=%B", "FETCH_HEAD")
		if !strings.Contains(text, "Add "+string(method)) || !strings.Contains(text, "Because.") {
			t.Errorf("%s says %q", method, text)
		}
		c.git("checkout", "-q", "-B", "main", "FETCH_HEAD")
	}
	_, err := h.Merge(ctx, r, codehost.MergeOptions{Number: 1, Base: "main", Head: "main", HeadSHA: "x", Method: codehost.MethodMerge})
	if !fault.IsKind(err, fault.Invalid) {
		t.Errorf("no SHA: %v", err)
	}
}

func conflict(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	first := c.branch("main", "", "a.txt", "one\n")
	head := c.branch("work", first, "a.txt", "two\n")
	number := c.site.Pull(t, "work", "main")
	at := c.branch("main", first, "a.txt", "three\n")
	ok, conflicts, err := h.Mergeable(ctx, r, "main", "work")
	if ok || !slices.Equal(conflicts, []string{"a.txt"}) || err != nil {
		t.Errorf("mergeable: %v %v, %v", ok, conflicts, err)
	}
	o := codehost.MergeOptions{
		Number: number, Base: "main", Head: "work", HeadSHA: head, Method: codehost.MethodMerge, Title: "x", Author: ann, Committer: ann,
	}
	_, err = h.Merge(ctx, r, o)
	wants(t, "the merge", err, codehost.ErrConflict)
	if now := must(h.Head(ctx, r, "main"))(t); now != at {
		t.Errorf("main has moved to %s", now)
	}
}

func write(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	first := c.branch("main", "", "a.txt", "one\n", "gone.txt", "x\n", "dir/b.txt", "b\n")
	o := codehost.WriteOptions{
		Branch: "main", Parent: first, Remove: []string{"gone.txt", "never"},
		Files: map[string][]byte{"a.txt": []byte("two\n"), "new/c.txt": []byte("c\n")},
		Title: "Write", Body: "Why.", Author: ann, Committer: ann,
	}
	sha := must(h.WriteFiles(ctx, r, o))(t)
	if now := must(h.Head(ctx, r, "main"))(t); now != sha || sha == first {
		t.Errorf("main is at %s, not %s", now, sha)
	}
	for path, want := range map[string]string{"a.txt": "two\n", "new/c.txt": "c\n", "dir/b.txt": "b\n"} {
		if content, _, err := h.ReadFile(ctx, r, "main", path); err != nil || string(content) != want {
			t.Errorf("%s: %q, %v", path, content, err)
		}
	}
	_, _, err := h.ReadFile(ctx, r, "main", "gone.txt")
	wants(t, "a removed file", err, codehost.ErrNotFound)
	_, err = h.WriteFiles(ctx, r, o)
	wants(t, "a parent that is not the head", err, codehost.ErrHeadMoved)
	o.Parent = sha
	if again, err := h.WriteFiles(ctx, r, o); err != nil || again != sha {
		t.Errorf("the same content: %s, %v", again, err)
	}
	o.Files = map[string][]byte{"dir": []byte("x")}
	_, err = h.WriteFiles(ctx, r, o)
	wants(t, "a file in the place of a folder", err, codehost.ErrConflict)
	o.Files = map[string][]byte{".git/config": nil}
	if _, err := h.WriteFiles(ctx, r, o); !fault.IsKind(err, fault.Invalid) {
		t.Errorf("a path of git's own: %v", err)
	}
	o.Branch = "gone"
	o.Files = map[string][]byte{"a.txt": nil}
	_, err = h.WriteFiles(ctx, r, o)
	wants(t, "no branch", err, codehost.ErrNotFound)
}

func deletes(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	first := c.branch("main", "", "a.txt", "one\n")
	head := c.branch("svc/a", "main", "b.txt", "b\n")
	wants(t, "at another commit", h.DeleteBranch(ctx, r, "svc/a", first), codehost.ErrHeadMoved)
	if err := h.DeleteBranch(ctx, r, "svc/a", head); err != nil {
		t.Fatal(err)
	}
	wants(t, "again", h.DeleteBranch(ctx, r, "svc/a", head), codehost.ErrNotFound)
	_, err := h.Head(ctx, r, "svc/a")
	wants(t, "its head", err, codehost.ErrNotFound)
	if err := h.DeleteBranch(ctx, r, "main", first); !fault.IsKind(err, fault.Conflict) {
		t.Errorf("the default branch: %v", err)
	}
	if _, err := h.Head(context.WithoutCancel(ctx), r, "main"); err != nil {
		t.Error(err)
	}
}
