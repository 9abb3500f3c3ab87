package gitfolder

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
)

// What a change should not have is found, each for its reason, and nothing else is.
func TestUnwanted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		as := []string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.autocrlf=false"}
		c := exec.Command("git", append(as, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const (
		pointer = lfsPointer + "v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
		marks   = "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"
	)
	git("init", "-q", "-b", "main")
	write("a.go", "package a\n")
	write("about merges.md", marks)
	write("app/package.json", "{}\n")
	write("app/package-lock.json", "{}\n")
	write("go.mod", "module a\n")
	write("go.sum", "a\n")
	write("pic.png", pointer)
	write("windows.txt", "a\nb\n")
	write("both.txt", "a\nb\n")
	write("node_modules/kept.js", "1\n")
	git("add", "-A")
	git("commit", "-q", "-m", "Begin")
	from := git("rev-parse", "HEAD")

	write("a.go", "package a\n\n// Heading\n// =======\n")
	write("about merges.md", marks+"More.\n")
	write("app/package-lock.json", "{\"a\": 1}\n")
	write("go.mod", "module b\n")
	write("go.sum", "b\n")
	write("pic.png", "\x00\x01"+strings.Repeat("x", 400))
	write("windows.txt", "a\r\nb\r\n")
	write("both.txt", "a\r\nc\r\n")
	write("node_modules/kept.js", "2\n")
	write("src/__pycache__/a.pyc", "1")
	write("src/__pycache__/b.pyc", "2")
	write("logo.gif", "GIF89a\x00\x00")
	write("data.csv", strings.Repeat("0123456789abcdef\n", 1<<16))
	write("half.go", marks)
	write("ünd \"so\".pyc", "1")
	git("add", "-A", "-f")
	git("update-index", "--add", "--cacheinfo", "160000,"+from+",vendor/lib")
	git("update-index", "--add", "--cacheinfo", "160000,"+from+",vendor/named")
	write(".gitmodules", "[submodule \"n\"]\n\tpath = vendor/named\n\turl = ../n\n")
	git("add", ".gitmodules")
	git("commit", "-q", "-m", "Go on")

	g, err := New("", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := g.At(filepath.Join(dir, ".git"), "a").Unwanted(t.Context(), from, git("rev-parse", "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	want := []codehost.Unwanted{
		{Kind: codehost.UnwantedLock, Path: "app/package-lock.json", Files: 1},
		{Kind: codehost.UnwantedLarge, Path: "data.csv", Files: 1},
		{Kind: codehost.UnwantedMarks, Path: "half.go", Files: 1},
		{Kind: codehost.UnwantedBinary, Path: "logo.gif", Files: 1},
		{Kind: codehost.UnwantedLFS, Path: "pic.png", Files: 1},
		{Kind: codehost.UnwantedMade, Path: "src/__pycache__/", Files: 2},
		{Kind: codehost.UnwantedSubmodule, Path: "vendor/lib", Files: 1},
		{Kind: codehost.UnwantedEndings, Path: "windows.txt", Files: 1},
		{Kind: codehost.UnwantedMade, Path: "ünd \"so\".pyc", Files: 1},
	}
	if !slices.Equal(c, want) {
		t.Errorf("found %+v,\nwant %+v", c, want)
	}
}

// A path that a tool makes is named by the outermost folder of that tool.
func TestMadeByTool(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a/node_modules/b/node_modules/c.js": "a/node_modules/", "coverage/x": "coverage/", "x.egg-info/PKG-INFO": "x.egg-info/",
		"a/.DS_Store": "a/.DS_Store", "coverage": "", "src/coverage.go": "", "a/node_modules.md": "",
	} {
		made, at := madeByTool(path)
		if made != (want != "") || made && at != want {
			t.Errorf("%s: %v, %s", path, made, at)
		}
	}
}
