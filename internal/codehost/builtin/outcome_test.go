package builtin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/codehost"
)

const (
	lax    = "version: 1\n"
	strict = "version: 1\nagent: {isolation: bubblewrap}\n"
)

// link makes a symbolic link in the clone.
func (w work) link(target, path string) {
	w.t.Helper()
	if err := os.Symlink(target, filepath.Join(w.dir, path)); err != nil {
		w.t.Fatal(err)
	}
}

// side begins a branch at a start point. finish commits the changes that were made
// since, and pushes the branch.
func (w work) side(name, from string) (finish func() string) {
	w.t.Helper()
	w.git("checkout", "-q", "-B", name, from)
	return func() string {
		sha := w.commit("change it")
		w.git("push", "-q", "-f", "origin", name)
		return sha
	}
}

// paths are changes without how they change.
func paths(all []codehost.Change) (out []codehost.Change) {
	for _, c := range all {
		out = append(out, codehost.Change{Path: c.Path, Link: c.Link})
	}
	return out
}

func TestOutcome(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	tried := func(head string) (codehost.Outcome, error) {
		return s.Outcome(ctx, shop, codehost.OutcomeOptions{Base: "main", Head: head})
	}
	w := start(t, s, shop)
	main := w.branch("main", "main", "rules", ".svc/policy.yml", strict, "conf/a.yml", "a\n", "conf/b.yml", "b\n", "conf/c.yml", "c\n")
	for name, c := range map[string]struct {
		change func() // of a clone of main
		want   []codehost.Change
	}{
		"nothing":         {func() {}, nil},
		"a file":          {func() { w.write("src/a.txt", []byte("x\n")) }, []codehost.Change{{Path: "src/a.txt"}}},
		"a file removed":  {func() { w.git("rm", "-q", ".svc/policy.yml") }, []codehost.Change{{Path: ".svc/policy.yml"}}},
		"a folder moved":  {func() { w.git("mv", ".svc", "svc") }, []codehost.Change{{Path: ".svc/policy.yml"}, {Path: "svc/policy.yml"}}},
		"bytes in a path": {func() { w.write("\xff\n\"", []byte("x\n")) }, []codehost.Change{{Path: "\xff\n\""}}},
		"a link instead": {func() { w.git("mv", ".svc", "svc"); w.link("svc", ".svc") },
			[]codehost.Change{{Path: ".svc", Link: true}, {Path: ".svc/policy.yml"}, {Path: "svc/policy.yml"}}},
		"a link for the file": {func() {
			w.git("mv", ".svc/policy.yml", "p.yml")
			w.write(".svc/x", nil)
			w.link("../p.yml", ".svc/policy.yml")
		},
			[]codehost.Change{{Path: ".svc/policy.yml", Link: true}, {Path: ".svc/x"}, {Path: "p.yml"}}},
	} {
		t.Run(name, func(t *testing.T) {
			branch := "svc/" + strings.ReplaceAll(name, " ", "-")
			finish := w.side(branch, "main")
			c.change()
			head := finish()
			o, err := tried(branch)
			if diff := cmp.Diff(c.want, paths(o.Changes)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if o.BaseSHA != main || o.HeadSHA != head {
				t.Errorf("%+v, want %s and %s", o, main, head)
			}
		})
	}

	// A submodule in the place of the folder.
	w.git("checkout", "-q", "-B", "svc/submodule", "main")
	w.git("rm", "-r", "-q", ".svc")
	w.git("update-index", "--add", "--cacheinfo", "160000"+","+main+",.svc")
	w.git("commit", "-q", "-m", "submodule")
	w.git("push", "-q", "origin", "svc/submodule")
	o, err := tried("svc/submodule")
	want := []codehost.Change{{Path: ".svc", Link: true}, {Path: ".svc/policy.yml"}}
	if diff := cmp.Diff(want, paths(o.Changes)); err != nil || diff != "" {
		t.Errorf("a submodule: %v (-want +got):\n%s", err, diff)
	}
}

// TestOutcomeIsTheMerge holds that the outcome is the effect on the base, regardless
// of what a branch changed since one of several merge bases, and of renamed files.
func TestOutcomeIsTheMerge(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	tried := func(head string) (codehost.Outcome, error) {
		return s.Outcome(ctx, shop, codehost.OutcomeOptions{Base: "main", Head: head})
	}
	w := start(t, s, shop)
	old := w.branch("main", "main", "rules", ".svc/policy.yml", lax)
	read := func(rev string) string {
		text, _, err := s.ReadFile(ctx, shop, rev, ".svc/policy.yml")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	// The base made its rules strict, and moved on in parallel. The branch merged
	// both and resolved them to the lax rules: compared with one of its two merge
	// bases, it has changed nothing.
	tight := w.branch("tight", old, "strict", ".svc/policy.yml", strict)
	aside := w.branch("aside", old, "other", "other", "1\n")
	w.git("checkout", "-q", "-B", "main", aside)
	w.git("merge", "-q", "--no-ff", "-m", "both", tight)
	w.git("push", "-q", "origin", "main")
	w.git("checkout", "-q", "-B", "svc/knot", aside)
	w.git("merge", "-q", "--no-ff", "--no-commit", tight)
	w.write(".svc/policy.yml", []byte(lax))
	w.commit("knot", "work", "x\n")
	w.git("push", "-q", "origin", "svc/knot")
	o, err := tried("svc/knot")
	if diff := cmp.Diff([]codehost.Change{{Path: ".svc/policy.yml"}, {Path: "work"}}, paths(o.Changes)); err != nil || diff != "" {
		t.Errorf("two merge bases: %v (-want +got):\n%s", err, diff)
	}
	if got := read(o.Tree); got != lax {
		t.Errorf("after the merge the file is %q", got)
	}

	// The base renamed the file; the branch changes it under its old name.
	file := lax + lines(30)
	w.git("rm", "-r", "-q", ".svc")
	from := w.branch("main", "HEAD", "draft", "draft.yml", strict+lines(30))
	w.git("checkout", "-q", "-B", "main", from)
	w.write(".svc/x", nil)
	w.git("mv", "draft.yml", ".svc/policy.yml")
	w.commit("move")
	w.git("push", "-q", "origin", "main")
	w.branch("svc/stray", from, "change", "draft.yml", file)
	o, err = tried("svc/stray")
	if diff := cmp.Diff([]codehost.Change{{Path: ".svc/policy.yml"}}, paths(o.Changes)); err != nil || diff != "" {
		t.Errorf("a file that was moved: %v (-want +got):\n%s", err, diff)
	}
	if got := read(o.Tree); got != file {
		t.Errorf("after the merge the file is %q", got)
	}
	merged, err := s.Merge(ctx, shop, mergeOf("svc/stray", o.HeadSHA, codehost.MethodMerge))
	if err != nil {
		t.Fatal(err)
	}
	w.git("fetch", "-q", "origin")
	if got := w.git("diff-tree", "-r", "--no-commit-id", "--name-only", o.BaseSHA, merged); got != o.Changes[0].Path {
		t.Errorf("the merge changed %q, the outcome said %+v", got, o.Changes)
	}

	// A branch that the base contains changes nothing more.
	if o, err = tried("svc/stray"); err != nil || o.Changes != nil || o.Tree != merged {
		t.Errorf("after the merge: %+v, %v", o, err)
	}

	// In a conflict the changes are the branch's, and the conflicting paths.
	w.branch("svc/quarrel", "main", "mine", "README.md", "mine\n", "mine", "1\n")
	w.branch("main", "main", "yours", "README.md", "yours\n", "yours", "1\n")
	o, err = tried("svc/quarrel")
	if diff := cmp.Diff([]codehost.Change{{Path: "README.md"}, {Path: "mine"}}, paths(o.Changes)); err != nil || diff != "" {
		t.Errorf("a conflict: %v (-want +got):\n%s", err, diff)
	}

	if _, err := tried("svc/none"); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("no such branch: %v", err)
	}
}

// TestMergeIntoTheBaseThatWasLookedAt holds that a merge is refused if the base has
// moved from BaseSHA.
func TestMergeIntoTheBaseThatWasLookedAt(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	head := w.branch("topic", "main", "work", "new", "x\n")
	o := mergeOf("topic", head, codehost.MethodMerge)
	o.BaseSHA = w.git("rev-parse", "main")
	w.branch("main", "main", "meanwhile", "other", "z\n")
	if sha, err := s.Merge(ctx, shop, o); !errors.Is(err, codehost.ErrBaseMoved) {
		t.Errorf("%s, %v; want that the base moved", sha, err)
	}
	o.BaseSHA = w.git("rev-parse", "main")
	if _, err := s.Merge(ctx, shop, o); err != nil {
		t.Error(err)
	}
	o.BaseSHA = "main"
	if _, err := s.Merge(ctx, shop, o); err == nil {
		t.Error("a name was taken for a commit")
	}
}
