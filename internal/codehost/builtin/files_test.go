package builtin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"yardmaster/internal/codehost"
)

func writing(parent string, files map[string][]byte, remove ...string) codehost.WriteOptions {
	return codehost.WriteOptions{Branch: "main", Parent: parent, Files: files, Remove: remove, Title: "File a plan",
		Author: codehost.Person{Name: "Ann", Email: "ann@example.com"}, Committer: codehost.Person{Name: "Yard", Email: "yard@example.com"}}
}

func TestReadDir(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	head := w.branch("main", "main", "a plan", "plans/x/overview.md", "# X\n", "plans/x/01-a.md", "", "plans/x/deep/b.md", "no",
		"plans/*/star.md", "other")
	sha, files, err := s.ReadDir(ctx, shop, "main", "plans/x")
	if err != nil || sha != head {
		t.Fatalf("%s, %v", sha, err)
	}
	if diff := cmp.Diff(map[string][]byte{"overview.md": []byte("# X\n"), "01-a.md": {}}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, files, err := s.ReadDir(ctx, shop, head, "plans/*"); err != nil || string(files["star.md"]) != "other" || len(files) != 1 {
		t.Errorf("a star is a star: %q, %v", files, err)
	}
	for _, dir := range []string{"", ".", "/plans/x", "plans/x/", "plans/../plans/x", "README.md", "nothing", "plans/x\n", ".git"} {
		if _, _, err := s.ReadDir(ctx, shop, "main", dir); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if _, _, err := s.ReadDir(ctx, shop, "nothing", "plans/x"); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("no such branch: %v", err)
	}
	w.branch("main", "main", "large", "plans/x/02-large.md", strings.Repeat("x", codehost.MaxFileSize+1))
	if _, _, err := s.ReadDir(ctx, shop, "main", "plans/x"); !errors.Is(err, codehost.ErrTooLarge) {
		t.Errorf("a large file: %v", err)
	}
	many := []string{}
	for i := range codehost.MaxDirFiles + 1 {
		many = append(many, fmt.Sprintf("many/%d", i), "")
	}
	w.branch("main", "main", "many", many...)
	if _, _, err := s.ReadDir(ctx, shop, "main", "many"); !errors.Is(err, codehost.ErrTooLarge) {
		t.Errorf("many files: %v", err)
	}
}

func TestWriteFiles(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	parent := w.git("rev-parse", "main")
	o := writing(parent, map[string][]byte{"plans/x/a.md": []byte("a\n"), "plans/x/b": []byte("\x00\ndata 5\n"),
		"README.md": []byte("new")}, "src/a.txt", "nothing")
	sha, err := s.WriteFiles(ctx, shop, o)
	if err != nil {
		t.Fatal(err)
	}
	w.git("fetch", "-q", "origin")
	got := w.git("log", "-1", "--format=%P|%an|%ae|%cn|%ce|%s", "--name-status", "origin/main")
	want := parent + "|Ann|ann@example.com|Yard|yard@example.com|File a plan\n\nM\tREADME.md\nA\tplans/x/a.md\nA\tplans/x/b\nD\tsrc/a.txt"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commit (-want +got):\n%s", diff)
	}
	if b, _, err := s.ReadFile(ctx, shop, "main", "plans/x/b"); string(b) != "\x00\ndata 5\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	o.Parent = sha
	if again, err := s.WriteFiles(ctx, shop, o); again != sha || err != nil {
		t.Errorf("what is there already makes a commit: %s, %v", again, err)
	}
	if _, err := s.WriteFiles(ctx, shop, writing(parent, map[string][]byte{"x": nil})); !errors.Is(err, codehost.ErrHeadMoved) {
		t.Errorf("onto an old commit: %v", err)
	}
	for _, path := range []string{"README.md/x", "plans/x"} {
		if _, err := s.WriteFiles(ctx, shop, writing(sha, map[string][]byte{path: nil})); !errors.Is(err, codehost.ErrConflict) {
			t.Errorf("%s, where a file and a folder would be one: %v", path, err)
		}
	}
	for _, path := range []string{"../x", "/x", "", "a//b", ".git/config", "a/.GIT/x", "a\nb"} {
		if _, err := s.WriteFiles(ctx, shop, writing(sha, map[string][]byte{path: nil})); err == nil {
			t.Errorf("%q was written", path)
		}
	}
	if w.git("ls-remote", "origin", "main")[:40] != sha {
		t.Error("a refusal moved the branch")
	}
}

// TestWriteFilesAtOnce holds that of several concurrent writers one succeeds; the
// others get ErrHeadMoved.
func TestWriteFilesAtOnce(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	parent := start(t, s, shop).git("rev-parse", "main")
	var g errgroup.Group
	won := make(chan string, 4)
	for i := range 4 {
		g.Go(func() error {
			sha, err := s.WriteFiles(ctx, shop, writing(parent, map[string][]byte{"file": {byte('0' + i)}}))
			if errors.Is(err, codehost.ErrHeadMoved) {
				return nil
			}
			won <- sha
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if sha, err := s.Head(ctx, shop, "main"); err != nil || len(won) != 1 || <-won != sha {
		t.Errorf("%d won, the head is %s (%v)", len(won), sha, err)
	}
}
