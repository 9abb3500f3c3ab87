package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/proof/executable"
)

// Pages are written, read, searched, compared, put back and deleted by the name of their
// repository; a folder of them goes there and back, and what two have changed is named.
func TestKnowledgeByHand(t *testing.T) {
	t.Parallel()
	y := yard(t)
	for _, name := range []string{"acme/web", "acme/other"} {
		if err := y.Push(name, map[string]string{"Makefile": "all:\n"}); err != nil {
			t.Fatal(err)
		}
	}
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner, "NO_COLOR=1")
	other := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner, "NO_COLOR=1")
	file := func(of *person, name, text string) {
		t.Helper()
		at := filepath.Join(of.home, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if err == nil {
			err = os.WriteFile(at, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(of *person, name, text string) {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(of.home, name)); err != nil || string(b) != text {
			t.Errorf("%s has %q, not %q: %v", name, b, text, err)
		}
	}
	file(p, "build.md", "# How it is built\n\nRun make. \x1b[31m\n")
	p.holds("kb edit guides/build --repo acme/web --file build.md", 0, "guides/build has version 1.", "Undo: yardmaster kb delete guides/build --repo acme/web")
	p.holds("kb show guides/build --repo acme/web", 0, "Run make.", "!\x1b[31m")
	p.holds("kb list --repo acme/web", 0, "guides/build", "How it is built")
	p.holds("kb list --repo acme/web --json slug", 0, `"slug": "guides/build"`)
	p.holds("kb search built --repo acme/web", 0, "guides/build", "Run make.")
	p.holds("kb search nothing --repo acme/web", 0, "No page has anything like it.")
	p.holds("kb list --repo acme/other", 0, "!guides/build")
	p.holds("kb show nothing --repo acme/web", exit.CodeNotFound, "There is no such page.")
	p.holds("kb show guides/build --repo acme/nothing", exit.CodeNotFound)
	file(p, "build.md", "# How it is built\n\nRun make twice.\n")
	p.holds("kb edit guides/build --repo acme/web --file build.md", 0, "has version 2", "Undo: yardmaster kb restore guides/build 1")
	p.holds("kb history guides/build --repo acme/web", 0, "VERSION", "How it is built")
	p.holds("kb diff guides/build --repo acme/web", 0, "version 1 to version 2", "+Run make twice.", "-Run make.")
	p.holds("kb restore guides/build 1 --repo acme/web", 0, "Version 1 of guides/build is back, as version 3.")

	p.holds("kb pull kb --repo acme/web", 0, "written guides/build")
	other.holds("kb pull kb --repo acme/web", 0, "written guides/build")
	p.holds("kb pull kb", 0, "The folder has all of it.")
	p.holds("kb push kb", 0, "Nothing was changed here.")
	p.holds("kb pull kb --repo acme/other", exit.CodeMisused, "the folder is of another repository: acme/web")
	file(p, "kb/guides/build.md", "# Mine\n")
	file(p, "kb/notes/a.md", "# A\n\n[[notes/b]]\n")
	file(p, "kb/notes/b.md", "# B\n\n[[notes/a]]\n")
	p.holds("kb push kb", 0, "pushed guides/build", "pushed notes/a", "pushed notes/b")
	file(other, "kb/guides/build.md", "# Theirs\n")
	other.holds("kb push kb", exit.CodeFailed, "guides/build: changed here and there", "!notes/")
	has(other, "kb/guides/build.md", "# Theirs\n")
	p.holds("kb show guides/build", exit.CodeMisused, "give --repo")
	p.holds("kb show guides/build --repo acme/web", 0, "# Mine")
	other.holds("kb pull kb", exit.CodeFailed, "written notes/a", "written notes/b", "guides/build: changed here and there")
	has(other, "kb/guides/build.md", "# Theirs\n")
	if out := other.holds("kb pull kb --json refused", exit.CodeFailed, `"slug": "guides/build"`); strings.Contains(out, "written") {
		t.Errorf("for programs it says\n%s", out)
	}
	p.holds("kb delete notes/b --repo acme/web", 0, "The page notes/b is deleted.")
	p.holds("kb delete notes/b --repo acme/web", exit.CodeNotFound)
	p.holds("kb pull kb", 0, "removed notes/b")
}

// Who edits a page that another replaces meanwhile replaces nothing, and keeps the text.
func TestKnowledgeEditedByTwo(t *testing.T) {
	t.Parallel()
	y := yard(t)
	if err := y.Push("acme/web", map[string]string{"Makefile": "all:\n"}); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner, "NO_COLOR=1", "TMPDIR="+folder)
	for name, text := range map[string]string{
		"page.md": "# Page\n", "theirs.md": "# Theirs\n",
		"editor": "#!/bin/sh\nenv -u VISUAL \"$SELF\" kb edit page --repo acme/web --file theirs.md >/dev/null\n" +
			"printf '# Mine\\n' >\"$1\"\n",
		"mine": "#!/bin/sh\nprintf '# Mine\\n' >\"$1\"\n",
	} {
		if err := executable.Write(filepath.Join(p.home, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "SELF="+self, "VISUAL="+filepath.Join(p.home, "editor"))
	p.holds("kb edit page --repo acme/web --file page.md", 0, "page has version 1.")
	out := p.holds("kb edit page --repo acme/web", exit.CodeRefused, "page-changed", "TEXT.md")
	p.holds("kb show page --repo acme/web", 0, "# Theirs", "!# Mine")
	found, err := filepath.Glob(filepath.Join(folder, "yardmaster-edit-*", "TEXT.md"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the text is in %q: %v\n%s", found, err, out)
	}
	if b, err := os.ReadFile(found[0]); err != nil || string(b) != "# Mine\n" {
		t.Errorf("it is %q: %v", b, err)
	}
	p.env[len(p.env)-1] = "VISUAL=" + filepath.Join(p.home, "mine")
	p.holds("kb edit page --repo acme/web", 0, "page has version 3.")
	p.holds("kb edit page --repo acme/web", 0, "Nothing was changed.")
}
