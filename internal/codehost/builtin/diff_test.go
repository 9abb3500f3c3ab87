package builtin

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/codehost"
)

func TestDiff(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	main := w.branch("main", "main", "files", "a.txt", "one\ntwo\nthree\n", "gone.txt", "x\n", "old name.txt", lines(30), "bin",
		"\x00\x01", "*.txt", "star\n")
	finish := w.side("feature", "main")
	w.write("a.txt", []byte("one\n2\nthree"))
	w.git("rm", "-q", "gone.txt")
	w.git("mv", "old name.txt", "new\nname.txt")
	w.write("bin", []byte("\x00\x02"))
	w.write("sub/new.txt", []byte("hello\n"))
	w.write("*.txt", []byte("stars\n"))
	head := finish()
	w.branch("main", "main", "meanwhile", "later.txt", "not of the branch\n")

	d, err := s.Diff(ctx, shop, codehost.DiffOptions{From: "main", To: "feature", SinceFork: true})
	if err != nil {
		t.Fatal(err)
	}
	want := codehost.Diff{FromSHA: main, ToSHA: head, Files: []codehost.FileChange{
		{Path: "*.txt", Kind: codehost.Modified, Type: codehost.Plain, Additions: 1, Deletions: 1},
		{Path: "a.txt", Kind: codehost.Modified, Type: codehost.Plain, Additions: 2, Deletions: 2},
		{Path: "bin", Kind: codehost.Modified, Type: codehost.Plain, Binary: true},
		{Path: "gone.txt", Kind: codehost.Deleted, Type: codehost.Plain, Deletions: 1},
		{Path: "new\nname.txt", Was: "old name.txt", Kind: codehost.Renamed, Type: codehost.Plain},
		{Path: "sub/new.txt", Kind: codehost.Added, Type: codehost.Plain, Additions: 1},
	}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]*codehost.File{
		"a.txt": {FileChange: want.Files[1], Hunks: []codehost.Hunk{{OldStart: 1, OldLines: 3, NewStart: 1, NewLines: 3,
			Lines: []string{" one", "-two", "-three", "+2", "+three", `\ No newline at end of file`}}}},
		"*.txt": {FileChange: want.Files[0],
			Hunks: []codehost.Hunk{{OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 1, Lines: []string{"-star", "+stars"}}}},
		"bin":           {FileChange: want.Files[2], Hunks: []codehost.Hunk{}},
		"new\nname.txt": {FileChange: want.Files[4], Hunks: []codehost.Hunk{}},
		"sub/new.txt": {FileChange: want.Files[5],
			Hunks: []codehost.Hunk{{OldStart: 0, OldLines: 0, NewStart: 1, NewLines: 1, Lines: []string{"+hello"}}}},
		"gone.txt": {FileChange: want.Files[3],
			Hunks: []codehost.Hunk{{OldStart: 1, OldLines: 1, NewStart: 0, NewLines: 0, Lines: []string{"-x"}}}},
		"sub":            nil, // a folder
		"../etc/passwd":  nil,
		":(top)a.txt":    nil,
		"later.txt":      nil,
		"--output=/etc/": nil,
	} {
		d, err := s.Diff(ctx, shop, codehost.DiffOptions{From: "main", To: "feature", SinceFork: true, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, d.File); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	direct, err := s.Diff(ctx, shop, codehost.DiffOptions{From: "main", To: head})
	if err != nil || len(direct.Files) != 7 {
		t.Errorf("the branch against main as it is by now: %v, %v", direct.Files, err)
	}
	for _, o := range []codehost.DiffOptions{{From: "main", To: strings.Repeat("1", 40)}, {From: "nope", To: "main"}} {
		if _, err := s.Diff(ctx, shop, o); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestDiffOfOtherTypes holds that the diff of a file that becomes a link shows its old
// content and its target, and that the diff of a file whose old path is a folder now
// shows only the lines of the file.
func TestDiffOfOtherTypes(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	w.branch("main", "main", "files", "plain", "text\n", "tool", "x\n", "name", lines(30))
	finish := w.side("feature", "main")
	w.git("rm", "-q", "plain")
	w.link("/etc/shadow", "plain")
	w.link("plain", "second")
	w.git("config", "core.fileMode", "false")
	w.git("update-index", "--chmod=+x", "tool")
	w.git("mv", "name", "moved")
	w.write("moved", []byte(lines(30, "another")))
	w.write("name/a", []byte("of the folder\n"))
	finish()
	all, err := s.Diff(ctx, shop, codehost.DiffOptions{From: "main", To: "feature"})
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for _, f := range all.Files {
		types[f.Path] = strings.TrimSpace(f.WasType + " " + f.Type)
	}
	if diff := cmp.Diff(map[string]string{"plain": "file link", "second": "link", "tool": "file executable", "moved": "file",
		"name/a": "file"}, types); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string][]string{"plain": {"-text", "+/etc/shadow"}, "moved": {"-line 0", "+another"},
		"name/a": {"+of the folder"}} {
		d, err := s.Diff(ctx, shop, codehost.DiffOptions{From: "main", To: "feature", Path: path})
		if err != nil || d.File == nil {
			t.Fatal(path, d, err)
		}
		var got []string
		for _, h := range d.File.Hunks {
			for _, l := range h.Lines {
				if l[0] == '+' || l[0] == '-' {
					got = append(got, l)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestDiffIsCut holds that a diff that is too large is cut and marked as cut, and that
// git is stopped.
func TestDiffIsCut(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	w.branch("main", "main", "files", "a.txt", "x\n")
	w.branch("feature", "main", "much", "a.txt", "x\n"+lines(200_000), "b.txt", strings.Repeat("y", 2*codehost.MaxDiffBytes))
	for path, least := range map[string]int{"a.txt": 70_000, "b.txt": 0} {
		d, err := s.Diff(ctx, shop, codehost.DiffOptions{From: "main", To: "feature", Path: path})
		if err != nil {
			t.Fatal(err)
		}
		size, n := 0, 0
		for _, h := range d.File.Hunks {
			for _, l := range h.Lines {
				size, n = size+len(l)+1, n+1
			}
		}
		if !d.File.Cut || size > codehost.MaxDiffBytes || n < least {
			t.Errorf("%s: cut %v, %d bytes, %d lines", path, d.File.Cut, size, n)
		}
	}
}

func TestLanded(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	head := w.branch("feature", "main", "work", "a.txt", "x\n")
	landed := func() string {
		t.Helper()
		sha, err := s.Landed(ctx, shop, "main", head)
		if err != nil {
			t.Fatal(err)
		}
		return sha
	}
	if sha := landed(); sha != "" {
		t.Errorf("work that is not merged landed with %s", sha)
	}
	w.git("checkout", "-q", "main")
	w.git("merge", "-q", "--no-ff", "--no-edit", "feature")
	merge := w.git("rev-parse", "HEAD")
	w.git("push", "-q", "origin", "main")
	if sha := landed(); sha != merge {
		t.Errorf("merged by hand with %s, landed with %q", merge, sha)
	}
	if _, err := s.Landed(ctx, shop, "nope", head); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("in no branch: %v", err)
	}
}
