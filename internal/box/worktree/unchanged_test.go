package worktree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// commitRaw puts files on the host's main branch as they are, by no attributes, and
// answers the commit.
func (h *host) commitRaw(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	git(t, "/", "clone", "-q", "--no-checkout", h.bare, dir)
	git(t, dir, "read-tree", "HEAD")
	for name, text := range files {
		at := filepath.Join(t.TempDir(), "blob")
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "update-index", "--add", "--cacheinfo", "100644,"+git(t, dir, "hash-object", "-w", "--no-filters", at)+","+name)
	}
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "raw")
	git(t, dir, "push", "-q", "origin", "HEAD:main")
	return git(t, dir, "rev-parse", "HEAD")
}

func put(t *testing.T, w *Checkout, name, text string) {
	t.Helper()
	write(t, w.dir, map[string]string{name: text})
}

// TestNothingElseIsTaken holds that the work has what the agent has changed, and nothing
// else, whatever git would make of files that it reads anew.
func TestNothingElseIsTaken(t *testing.T) {
	t.Parallel()
	crlf := map[string]string{"notes.txt": "one\r\ntwo\r\n", "more/other.txt": "a\r\nb\r\n", ".gitattributes": "*.txt text\n"}
	again := func(t *testing.T, w *Checkout) { // all files are written anew by the agent's git
		git(t, w.dir, "rm", "-q", "-r", "--cached", ".")
		if err := exec.Command("sh", "-c", "cd '"+w.dir+"' && rm -rf * .gitattributes .gitignore").Run(); err != nil {
			t.Fatal(err)
		}
		git(t, w.dir, "reset", "-q", "--hard")
	}
	touch := func(t *testing.T, w *Checkout) {
		for name := range strings.SplitSeq(git(t, w.dir, "ls-files"), "\n") {
			if err := os.Chtimes(filepath.Join(w.dir, name), time.Now(), time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
		}
	}
	copies := func(t *testing.T, w *Checkout) { // as when a checkout is taken over
		script := `cp -r "$1" "$1.2" && rm -rf "$1" && mv "$1.2" "$1"`
		if err := exec.Command("sh", "-c", script, "-", w.dir).Run(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		do    func(t *testing.T, w *Checkout) // besides nothing, touch, copies and again
		want  string
	}{
		{"line endings that were never normalised", crlf, func(t *testing.T, w *Checkout) {
			put(t, w, "README.md", "hello\nx\n")
			git(t, w.dir, "add", "README.md")
			git(t, w.dir, "commit", "-q", "-m", "only the readme")
		}, "README.md"},
		{"one of them is changed", crlf, func(t *testing.T, w *Checkout) {
			put(t, w, "notes.txt", "one\r\ntwo\r\nthree\r\n")
		}, "notes.txt"},
		{"the rules come with the change", map[string]string{"notes.txt": "one\r\n", "b.txt": "b\r\n"}, func(t *testing.T, w *Checkout) {
			put(t, w, ".gitattributes", "*.txt text\n")
		}, ".gitattributes"},
		{"the rules come with a commit", map[string]string{"notes.txt": "one\r\n", "b.txt": "b\r\n"}, func(t *testing.T, w *Checkout) {
			put(t, w, ".gitattributes", "*.txt text eol=crlf\n")
			git(t, w.dir, "add", ".gitattributes")
			git(t, w.dir, "commit", "-q", "-m", "rules")
		}, ".gitattributes"},
		{"the rules go with a commit", map[string]string{"mixed.txt": "a\r\nb\n", ".gitattributes": "*.txt text eol=crlf\n"},
			func(t *testing.T, w *Checkout) {
				git(t, w.dir, "rm", "-q", ".gitattributes")
				git(t, w.dir, "commit", "-q", "-m", "no rules")
			}, ".gitattributes"},
		{"mixed endings", map[string]string{"mixed.txt": "a\r\nb\nc\n", ".gitattributes": "*.txt text eol=crlf\n"}, nil, ""},
		{"attributes that are mixed themselves", map[string]string{"a.txt": "a\r\n", ".gitattributes": "* text\r\n"}, nil, ""},
		{"a keyword that was stored as it was written",
			map[string]string{"a.txt": "$Id: 0123 $\n", ".gitattributes": "*.txt ident\n"}, nil, ""},
		{"an encoding", map[string]string{"a.txt": "grüße\n", ".gitattributes": "*.txt working-tree-encoding=UTF-16LE-BOM\n"}, nil, ""},
		{"an encoding that the file never had",
			map[string]string{"a.txt": "\xff\xfea\x00\n\x00", ".gitattributes": "*.txt text working-tree-encoding=UTF-16\n"},
			func(t *testing.T, w *Checkout) { put(t, w, "README.md", "changed\n") }, "README.md"},
		{"a filter that only the agent has", map[string]string{"a.nb": "code\n", ".gitattributes": "*.nb filter=strip\n"},
			func(t *testing.T, w *Checkout) {
				git(t, w.dir, "config", "filter.strip.clean", "grep -v output")
				git(t, w.dir, "config", "filter.strip.smudge", "sed p")
				put(t, w, "a.nb", "code\noutput\n")
				git(t, w.dir, "add", "a.nb")
			}, ""},
		{"files that are kept away", map[string]string{"far/a": "1\n", "near/b": "1\n"}, func(t *testing.T, w *Checkout) {
			git(t, w.dir, "sparse-checkout", "set", "near")
			put(t, w, "near/b", "2\n")
		}, "near/b"},
		{"files that the agent hides from its own git", nil, func(t *testing.T, w *Checkout) {
			put(t, w, ".git/info/exclude", ".agent/\n")
			put(t, w, ".agent/notes", "mine\n")
			put(t, w, "made", "work\n")
		}, "made"},
		{"a file that was added against the rules", nil, func(t *testing.T, w *Checkout) {
			put(t, w, "build/kept", "yes\n")
			put(t, w, "build/not", "no\n")
			git(t, w.dir, "add", "-f", "build/kept")
		}, "build/kept"},
		{"a mode", crlf, func(t *testing.T, w *Checkout) {
			if err := os.Chmod(filepath.Join(w.dir, "notes.txt"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "notes.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.commitRaw(t, c.files)
			cache := fetched(t, h)
			for name, before := range map[string]func(*testing.T, *Checkout){
				"as it is": func(*testing.T, *Checkout) {}, "touched": touch, "copied": copies, "written anew": again} {
				w := checkout(t, cache)
				before(t, w)
				if r := collect(t, w); r.Tip != r.Base || len(r.Skipped) > 0 || r.Damage != "" {
					t.Errorf("%s, untouched: %+v", name, r)
				}
				if c.do == nil {
					continue
				}
				c.do(t, w)
				r := collect(t, w)
				if got := strings.Join(r.Paths, " "); got != c.want || len(r.Skipped) > 0 || r.Damage != "" {
					t.Errorf("%s: %q, not %q: %+v", name, got, c.want, r)
				}
				if r.Tip != r.Base {
					if out := git(t, cache.dir, "--git-dir="+cache.dir, "diff", "--raw", r.Base, r.Tip); c.name == "a mode" &&
						!strings.HasPrefix(out, ":100644 100755 ") {
						t.Errorf("%s: %s", name, out)
					}
				}
			}
		})
	}
}

// TestOldTreesAreNotRewritten holds that a tree which git would write otherwise today is no
// change.
func TestOldTreesAreNotRewritten(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	blob := git(t, h.bare, "rev-parse", "main:README.md")
	var raw []byte
	for _, name := range []string{"100664 a", "100644 b"} {
		sha, err := os.ReadFile(rawTree(t, "x", blob))
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, append([]byte(name+"\x00"), sha[len("100644 x\x00"):]...)...)
	}
	at := filepath.Join(t.TempDir(), "tree")
	if err := os.WriteFile(at, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	tree := git(t, h.bare, "hash-object", "-w", "-t", "tree", "--literally", at)
	git(t, h.bare, "update-ref", "refs/heads/main", git(t, h.bare, "commit-tree", tree, "-m", "old"))
	w := checkout(t, fetched(t, h))
	if r := collect(t, w); r.Tip != r.Base {
		t.Errorf("nothing was changed: %+v", r)
	}
	put(t, w, "b", "changed\n")
	if r := collect(t, w); !slices.Equal(r.Paths, []string{"b"}) {
		t.Errorf("%+v", r)
	}
}

// TestLargeFilesThatWereThere holds that a file that is too large to be taken is not said
// to be left out if it is in the commit as it is.
func TestLargeFilesThatWereThere(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commitRaw(t, map[string]string{"model.bin": strings.Repeat("\x00", maxFile+1)})
	w := checkout(t, fetched(t, h))
	if r := collect(t, w); r.Tip != r.Base || len(r.Skipped) > 0 {
		t.Errorf("%+v", r)
	}
	if err := os.Truncate(filepath.Join(w.dir, "model.bin"), maxFile+2); err != nil {
		t.Fatal(err)
	}
	if r := collect(t, w); r.Tip != r.Base || !slices.Equal(r.Skipped, []Skipped{{"model.bin", "larger than 50 MB"}}) {
		t.Errorf("%+v", r)
	}
}

// TestOneFileDoesNotCostTheRest holds that files which git cannot take are named, and all
// others are taken.
func TestOneFileDoesNotCostTheRest(t *testing.T) {
	t.Parallel()
	c := fetched(t, newHost(t))
	w := checkout(t, c)
	write(t, w.dir, map[string]string{".gitattributes": "*.wide working-tree-encoding=UTF-16\n*.none working-tree-encoding=no-such\n",
		"a.wide": "not so wide", "b.none": "x", "c/.GIT/f": "x", "c/git~1": "x", "README.md": "changed\n", "z": "new\n", "closed/f": "x"})
	if err := os.Chmod(filepath.Join(w.dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.dir, "closed"), 0o700) })
	r := collect(t, w)
	if got := strings.Join(r.Paths, " "); got != ".gitattributes README.md z" && got != ".gitattributes README.md closed/f z" {
		t.Errorf("took %q", got)
	}
	var names []string
	for _, s := range r.Skipped {
		names = append(names, s.Path)
		if s.Reason == "" {
			t.Errorf("no reason: %+v", s)
		}
	}
	want := []string{"a.wide", "b.none", "c/.GIT/f", "c/git~1", "closed"}
	if os.Getuid() == 0 { // root reads every folder
		want = want[:4]
	}
	if !slices.Equal(names, want) {
		t.Errorf("left out %q", r.Skipped)
	}
	// Where the cache takes nothing, no file is to blame.
	if err := errors.Join(os.RemoveAll(c.Objects()+".away"), os.Rename(c.Objects(), c.Objects()+".away")); err != nil {
		t.Fatal(err)
	}
	if r, err := w.Collect(t.Context(), "m"); err == nil {
		t.Errorf("without objects: %+v", r)
	}
}
