// Package odd makes repositories of the kinds that people have and that demos lack: much
// history, many refs, old faults, names and line endings of other systems. They are made
// by code, the same on every machine, so that a test may put each on a server and compare
// what comes back byte for byte.
package odd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Kind is one kind of repository.
type Kind struct {
	Name    string
	Refused string // what `repo add` says of it; empty: it is taken
	make    func(ctx context.Context, r *repository) error
}

// Kinds are all kinds, those that are taken first.
func Kinds() []Kind {
	return []Kind{
		{Name: "plain", make: plain},
		{Name: "monorepo", make: monorepo},
		{Name: "windows line endings", make: windows},
		{Name: "latin-1 names", make: latin},
		{Name: "old faults", make: old},
		{Name: "5,000 refs", make: manyRefs},
		{Name: "another default branch", make: master},
		{Name: "two roots", make: roots},
		{Name: "bare", make: bare},
		{Name: "pointers without their files", make: pointers},

		{Name: "empty", Refused: "has no commit on its branch main yet", make: func(context.Context, *repository) error { return nil }},
		{Name: "only tags", Refused: "has tags, and no commit on its branch main", make: onlyTags},
		{Name: "shallow", Refused: "git fetch --unshallow", make: shallow},
		{Name: "detached", Refused: "is on no branch", make: detached},
		{Name: "sha256", Refused: "names its objects by sha256", make: sha256},
		{Name: "a branch svc", Refused: "has a branch svc", make: inTheWay},
		{Name: "a path into .git", Refused: "hasDotgit", make: dotGit},
		{Name: "a submodule's address that is an option", Refused: "gitmodulesUrl", make: option},
	}
}

// Make makes a repository of the kind in a folder that there is, and answers where it is.
func (k Kind) Make(ctx context.Context, dir string) (string, error) {
	r := &repository{ctx: ctx, dir: dir}
	r.git("", "init", "--quiet", "--initial-branch=main")
	if err := k.make(ctx, r); err != nil {
		return "", err
	}
	return r.dir, r.err
}

// repository is a repository that is being made. Its first error ends the work.
type repository struct {
	ctx context.Context
	dir string
	err error
}

// git runs git with a standard input, and answers what it prints.
func (r *repository) git(stdin string, args ...string) string {
	if r.err != nil {
		return ""
	}
	c := exec.CommandContext(r.ctx, "git", args...)
	c.Dir, c.Stdin = r.dir, strings.NewReader(stdin)
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=1700000000 +0000",
	}
	out, err := c.CombinedOutput()
	if err != nil {
		r.err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// file writes a file; its name may be of any bytes.
func (r *repository) file(name, text string) {
	at := filepath.Join(r.dir, name)
	if r.err == nil {
		r.err = os.MkdirAll(filepath.Dir(at), 0o755)
	}
	if r.err == nil {
		r.err = os.WriteFile(at, []byte(text), 0o644)
	}
}

// commit commits all files as they are on the disk.
func (r *repository) commit(message string) string {
	r.git("", "add", "--all")
	r.git("", "commit", "--quiet", "--message", message)
	return r.git("", "rev-parse", "HEAD")
}

// object stores an object as it is given, with its faults.
func (r *repository) object(kind, text string) string {
	return r.git(text, "hash-object", "-t", kind, "-w", "--stdin", "--literally")
}

func plain(_ context.Context, r *repository) error {
	r.file("README.md", "# Calc\n")
	r.commit("Begin")
	r.git("", "tag", "light")
	r.git("", "tag", "--annotate", "--message", "The first", "v1.0.0")
	r.git("", "branch", "feature/größe")
	return nil
}

// monorepo has many packages, a submodule of which nobody has the commit, links and programs.
func monorepo(_ context.Context, r *repository) error {
	for i := range 40 {
		for j := range 10 {
			r.file(fmt.Sprintf("services/s%02d/pkg%d/main.go", i, j), fmt.Sprintf("package main // %d.%d\n", i, j))
		}
	}
	r.file(".gitmodules", "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../lib.git\n")
	r.file("build.sh", "#!/bin/sh\n")
	if r.err == nil {
		r.err = os.Chmod(filepath.Join(r.dir, "build.sh"), 0o755)
	}
	if r.err == nil {
		r.err = os.Symlink("services/s00", filepath.Join(r.dir, "first"))
	}
	r.git("", "add", "--all")
	r.git("", "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("12", 20)+",vendor/lib")
	r.git("", "commit", "--quiet", "--message", "Begin")
	for i := range 30 {
		r.file(fmt.Sprintf("services/s%02d/CHANGES", i), "more\n")
		r.git("", "add", "services")
		r.git("", "commit", "--quiet", "--message", fmt.Sprint("Change ", i))
	}
	return nil
}

func windows(_ context.Context, r *repository) error {
	r.file("README.md", "# Calc\r\n\r\nText\r\n")
	r.file("mixed.txt", "one\r\ntwo\nthree\r\n")
	r.file("utf16.txt", "\xff\xfeh\x00i\x00\r\x00\n\x00")
	r.commit("Begin")
	r.file(".gitattributes", "*.txt text\n*.md text eol=crlf\nutf16.txt -text\n")
	r.git("", "add", ".gitattributes")
	r.git("", "commit", "--quiet", "--message", "Attributes that the stored files do not follow")
	return nil
}

// latin has names and messages that are no UTF-8.
func latin(_ context.Context, r *repository) error {
	r.file("Gr\xf6\xdfe.txt", "L\xe4nge\n")
	r.file("sub \xe9/a\tb.txt", "tab\n")
	r.git("", "config", "i18n.commitEncoding", "ISO-8859-1")
	r.commit("Gr\xf6\xdfe")
	r.git("", "branch", "branch-\xfc")
	return nil
}

// old is ten years of commits, with faults of programs of their time.
func old(_ context.Context, r *repository) error {
	r.file("a.txt", "a\n")
	r.commit("Begin")
	tree, blob := r.git("", "rev-parse", "HEAD^{tree}"), r.git("", "rev-parse", "HEAD:a.txt")
	if r.err != nil {
		return r.err
	}
	const ann, zone = "Ann <ann@example.com>", " 1287367363 -0700"
	raw, err := bytesOf(blob)
	if err != nil {
		return err
	}
	inner, err := bytesOf(r.object("tree", "100644 a.txt\x00"+raw))
	if err != nil {
		return err
	}
	padded := r.object("tree", "040000 sub\x00"+inner)
	head := r.git("", "rev-parse", "HEAD")
	for i, c := range [][3]string{
		{tree, ann + zone, ann + " 1287367363 -700"},
		{tree, ann + zone, "Ann <ann@example.com>1287367363 -0700"},
		{tree, "Ann> <ann@example.com>" + zone, ann + zone},
		{tree, "<ann@example.com>" + zone, ann + zone},
		{tree, "Ann" + zone, ann + zone},
		{padded, ann + " 0 +0000", ann + " 01287367363 +0000"},
	} {
		head = r.object("commit", fmt.Sprintf("tree %s\nparent %s\nauthor %s\ncommitter %s\n\nimported %d\n", c[0], head, c[1], c[2], i))
	}
	for i := range 120 { // months
		head = r.object("commit", fmt.Sprintf("tree %s\nparent %s\nauthor %s %d +0100\ncommitter %s %d +0100\n\nmonth %d\n",
			tree, head, ann, 1300000000+i*2_600_000, ann, 1300000000+i*2_600_000, i))
	}
	r.git("", "update-ref", "refs/heads/main", head)
	return nil
}

// bytesOf are the bytes of an object's name.
func bytesOf(sha string) (string, error) {
	b := make([]byte, 20)
	_, err := fmt.Sscanf(sha, "%x", &b)
	return string(b), err
}

func manyRefs(_ context.Context, r *repository) error {
	r.file("a.txt", "a\n")
	head := r.commit("Begin")
	refs := make([]string, 0, 5000)
	for i := range 2500 {
		refs = append(refs, fmt.Sprintf("refs/tags/v0.%d", i), fmt.Sprintf("refs/heads/team/%d/work", i))
	}
	slices.Sort(refs)
	// A file of all takes git no time; a file for each takes seconds.
	text := "# pack-refs with: peeled fully-peeled sorted \n"
	for _, ref := range refs {
		text += head + " " + ref + "\n"
	}
	r.file(".git/packed-refs", text)
	return nil
}

func master(_ context.Context, r *repository) error {
	r.file("a.txt", "a\n")
	r.commit("Begin")
	r.git("", "switch", "--quiet", "--create", "trunk")
	r.file("b.txt", "b\n")
	r.commit("More")
	return nil
}

// roots has histories that have nothing in common, one of them merged.
func roots(_ context.Context, r *repository) error {
	r.file("a.txt", "a\n")
	r.commit("Begin")
	r.git("", "switch", "--quiet", "--orphan", "pages")
	r.file("index.html", "<p>\n")
	r.commit("Pages")
	r.git("", "switch", "--quiet", "main")
	r.git("", "merge", "--quiet", "--allow-unrelated-histories", "--message", "Both", "pages")
	return nil
}

func bare(ctx context.Context, r *repository) error {
	err := plain(ctx, r)
	to := filepath.Join(r.dir, "bare.git")
	r.git("", "clone", "--quiet", "--mirror", ".", to)
	r.dir = to
	return err
}

// pointers has files of Git LFS whose contents nobody has, and attributes that name them.
func pointers(_ context.Context, r *repository) error {
	r.file("data.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:"+strings.Repeat("ab", 32)+"\nsize 12345\n")
	r.commit("Begin")
	r.file(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	r.git("", "add", ".gitattributes")
	r.git("", "commit", "--quiet", "--message", "Attributes")
	return nil
}

func onlyTags(_ context.Context, r *repository) error {
	r.file("a.txt", "a\n")
	r.git("", "add", "--all")
	r.git("", "tag", "v1", r.git("", "commit-tree", "-m", "Begin", r.git("", "write-tree")))
	return nil
}

func shallow(_ context.Context, r *repository) error {
	r.file("a.txt", "a\n")
	r.commit("Begin")
	r.file("a.txt", "b\n")
	r.commit("More")
	to := filepath.Join(r.dir, "shallow")
	r.git("", "clone", "--quiet", "--depth=1", "file://"+r.dir, to)
	r.dir = to
	return nil
}

func detached(_ context.Context, r *repository) error {
	r.file("a.txt", "a\n")
	r.commit("Begin")
	r.git("", "switch", "--quiet", "--detach")
	return nil
}

func sha256(_ context.Context, r *repository) error {
	r.dir = filepath.Join(r.dir, "long")
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		return err
	}
	r.git("", "init", "--quiet", "--initial-branch=main", "--object-format=sha256")
	r.file("a.txt", "a\n")
	r.commit("Begin")
	return nil
}

func inTheWay(_ context.Context, r *repository) error {
	r.file("a.txt", "a\n")
	r.commit("Begin")
	r.git("", "branch", "svc")
	return nil
}

func dotGit(_ context.Context, r *repository) error {
	raw, err := bytesOf(r.git("x", "hash-object", "-w", "--stdin"))
	if err != nil {
		return err
	}
	tree := r.object("tree", "100644 .git\x00"+raw)
	r.git("", "update-ref", "refs/heads/main", r.git("", "commit-tree", "-m", "Begin", tree))
	return nil
}

func option(_ context.Context, r *repository) error {
	r.file(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=touch\n")
	r.commit("Begin")
	return nil
}
