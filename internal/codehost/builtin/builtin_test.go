package builtin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

func TestCreateAndInfo(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	if _, err := s.Info(ctx, shop); !errors.Is(err, codehost.ErrNotFound) {
		t.Fatalf("Info of an unknown repository: %v", err)
	}
	if err := s.Create(ctx, shop, codehost.CreateOptions{DefaultBranch: "trunk"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(ctx, shop, codehost.CreateOptions{}); !errors.Is(err, codehost.ErrExists) {
		t.Errorf("second Create: %v, want ErrExists", err)
	}
	info, err := s.Info(ctx, shop)
	if want := (codehost.Info{Repo: shop, DefaultBranch: "trunk", Empty: true}); err != nil || info != want {
		t.Errorf("Info = %+v, %v, want %+v", info, err, want)
	}
	if err := s.Create(ctx, at("acme", "b"),
		codehost.CreateOptions{DefaultBranch: "a b"}); !fault.IsKind(err, fault.Invalid) {
		t.Errorf("Create with a bad branch: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(s.root, ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}

	r := at("acme", "two")
	w := start(t, s, r)
	info, err = s.Info(ctx, r)
	if want := (codehost.Info{Repo: r, DefaultBranch: "main", HeadSHA: w.git("rev-parse", "HEAD")}); err != nil || info != want {
		t.Errorf("Info = %+v, %v, want %+v", info, err, want)
	}
}

// TestOtherHostsAreUnknown holds that repositories of the same name at two hosts are
// different ones.
func TestOtherHostsAreUnknown(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	start(t, s, shop)
	for _, name := range []string{"", "elsewhere"} {
		r := shop
		r.Host = name
		if _, err := s.Info(ctx, r); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("Info at %q: %v, want ErrNotFound", name, err)
		}
		r.Name = "new"
		if err := s.Create(ctx, r, codehost.CreateOptions{}); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("Create at %q: %v, want ErrNotFound", name, err)
		}
	}
	other, err := New(Config{Name: "elsewhere", Root: t.TempDir(), BaseURL: "http://other"})
	if err != nil {
		t.Fatal(err)
	}
	there := codehost.Repo{Host: "elsewhere", Owner: shop.Owner, Name: shop.Name}
	if err := other.Create(ctx, there, codehost.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if info, err := other.Info(ctx, there); err != nil || !info.Empty {
		t.Errorf("Info of the other one = %+v, %v", info, err)
	}
	if _, err := other.Info(ctx, shop); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("the other host has %s: %v", shop, err)
	}
}

func TestHostileNamesStayInside(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	for _, r := range []codehost.Repo{at("", ""), at("..", "x"), at("acme", ".."), at("acme", "../acme/shop"), at("a/b", "c"),
		at(".", "x")} {
		if err := s.Create(ctx, r, codehost.CreateOptions{}); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("Create(%q): %v", r, err)
		}
		if _, err := s.Info(ctx, r); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("Info(%q): %v", r, err)
		}
	}
	w.git("tag", "v1")
	w.git("push", "-q", "origin", "v1")
	for _, rev := range []string{"--help", "-x", "main~0", "main:README.md", "@", "main^{tree}", "a b", "main\nmain", "",
		"../../HEAD", ":/first"} {
		if _, _, err := s.ReadFile(ctx, shop, rev, "README.md"); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("ReadFile at %q: %v", rev, err)
		}
		if _, err := s.Head(ctx, shop, rev); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("Head(%q): %v", rev, err)
		}
		if _, err := s.Compare(ctx, shop, rev, "main"); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("Compare(%q): %v", rev, err)
		}
	}
	for _, path := range []string{"", ".", "/README.md", "../README.md", "./README.md", "src", "src/", "README.md\nmain:README.md",
		"nope", "a\x00b", "/etc/passwd"} {
		if _, _, err := s.ReadFile(ctx, shop, "main", path); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("ReadFile %q: %v", path, err)
		}
	}
}

func TestReadFile(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	old := w.git("rev-parse", "HEAD")
	w.write("exact", make([]byte, codehost.MaxFileSize))
	w.write("large", make([]byte, codehost.MaxFileSize+1))
	if err := os.Symlink("README.md", filepath.Join(w.dir, "link")); err != nil {
		t.Fatal(err)
	}
	w.commit("second", "README.md", "two\n", "empty", "", "a b/ü\".txt", "odd name\n")
	w.git("tag", "-a", "-m", "one", "v1")
	w.git("push", "-q", "origin", "main", "v1")

	for _, c := range []struct{ rev, path, want string }{
		{"main", "README.md", "two\n"}, {"HEAD", "README.md", "two\n"}, {"refs/heads/main", "README.md", "two\n"},
		{"refs/tags/v1", "README.md", "two\n"},
		{old, "README.md", "# Shop\n"}, {"main", "empty", ""}, {"main", "a b/ü\".txt", "odd name\n"}, {"main", "link", "README.md"},
		{"main", "exact", string(make([]byte, codehost.MaxFileSize))},
	} {
		got, sha, err := s.ReadFile(ctx, shop, c.rev, c.path)
		if err != nil || string(got) != c.want {
			t.Errorf("ReadFile(%s, %s) = %.20q, %v", c.rev, c.path, got, err)
		}
		if want := w.git("rev-parse", c.rev+":"+c.path); sha != want {
			t.Errorf("ReadFile(%s, %s): blob %s, want %s", c.rev, c.path, sha, want)
		}
	}
	if _, _, err := s.ReadFile(ctx, shop, "main", "large"); !errors.Is(err, codehost.ErrTooLarge) {
		t.Errorf("ReadFile of a large file: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := s.ReadFile(ended, shop, "main", "README.md"); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadFile after cancel: %v", err)
	}
}

func TestCompare(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	fork := w.git("rev-parse", "main")
	w.git("checkout", "-q", "-b", "topic")
	w.git("mv", "README.md", "readme.txt")
	w.commit("one", "src/a.txt", lines(20, "", "", "changed"))
	head := w.commit("two", "new file", "x\n")
	w.git("push", "-q", "origin", "topic")
	base := w.branch("main", "main", "elsewhere", "src/a.txt", lines(20)+"tail\n")

	got, err := s.Compare(ctx, shop, "main", "topic")
	if err != nil {
		t.Fatal(err)
	}
	id := got.PatchID
	if len(got.Change) != 64 {
		t.Errorf("the change is %q", got.Change)
	}
	got.PatchID, got.Change = "", ""
	want := codehost.Comparison{BaseSHA: base, HeadSHA: head, MergeBase: fork, MergeBases: 1, Ahead: 2,
		Paths: []string{"README.md", "new file", "readme.txt", "src/a.txt"}, Added: 3, Deleted: 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Compare (-want +got):\n%s", diff)
	}

	w.git("checkout", "-q", "topic")
	w.git("rebase", "-q", "main")
	w.git("push", "-q", "-f", "origin", "topic")
	rebased, err := s.Compare(ctx, shop, "main", "topic")
	if err != nil || rebased.HeadSHA == head || rebased.PatchID != id || id == "" {
		t.Errorf("after a rebase: %+v, %v, want patch id %s", rebased, err, id)
	}
	same, err := s.Compare(ctx, shop, "topic", "main")
	if err != nil || same.PatchID != "" || same.Change != "" || same.Ahead != 0 || same.Paths != nil {
		t.Errorf("nothing new: %+v, %v", same, err)
	}

	w.git("checkout", "-q", "--orphan", "other")
	w.commit("unrelated", "x", "y\n")
	w.git("push", "-q", "origin", "other")
	unrelated, err := s.Compare(ctx, shop, "main", "other")
	if err != nil || unrelated.MergeBase != "" || unrelated.MergeBases != 0 || unrelated.Change != "" ||
		unrelated.Ahead != 1 || len(unrelated.Paths) == 0 {
		t.Errorf("unrelated: %+v, %v", unrelated, err)
	}
	ok, conflicts, err := s.Mergeable(ctx, shop, "main", "other")
	if ok || conflicts != nil || err != nil {
		t.Errorf("unrelated: Mergeable = %v, %v, %v", ok, conflicts, err)
	}
}

// TestPatchIDTellsChangesApart holds that every change that must invalidate an
// approval changes the patch id.
func TestPatchIDTellsChangesApart(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	seen := make(map[string]string)
	for name, files := range map[string][]string{
		"plain":    {"src/a.txt", lines(20, "x")},
		"spaces":   {"src/a.txt", lines(20, " x")},
		"other":    {"src/a.txt", lines(20, "y")},
		"binary":   {"bin", "\x00\x01\x02"},
		"binary 2": {"bin", "\x00\x01\x03"},
		"empty":    {"bin", ""},
		"renamed":  {"bin2", ""},
	} {
		branch := "b/" + strings.ReplaceAll(name, " ", "-")
		w.branch(branch, "main", name, files...)
		c, err := s.Compare(ctx, shop, "main", branch)
		if err != nil {
			t.Fatal(err)
		}
		if twin, ok := seen[c.PatchID]; ok || c.PatchID == "" {
			t.Errorf("%s has the patch id of %s: %q", name, twin, c.PatchID)
		}
		seen[c.PatchID] = name
	}
	w.git("checkout", "-q", "-b", "mode", "main")
	w.git("update-index", "--chmod=+x", "README.md")
	w.git("commit", "-q", "-m", "mode")
	w.git("push", "-q", "origin", "mode")
	if c, err := s.Compare(ctx, shop, "main", "mode"); err != nil || c.PatchID == "" || seen[c.PatchID] != "" {
		t.Errorf("change of mode: %+v, %v", c, err)
	}
}

func BenchmarkReadFile(b *testing.B) {
	s := newSite(b, "")
	start(b, s, shop)
	for b.Loop() {
		if _, _, err := s.ReadFile(b.Context(), shop, "main", "src/a.txt"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	s := newSite(b, "")
	start(b, s, shop).branch("topic", "main", "x", "new", "x\n")
	for b.Loop() {
		if _, err := s.Compare(b.Context(), shop, "main", "topic"); err != nil {
			b.Fatal(err)
		}
	}
}
