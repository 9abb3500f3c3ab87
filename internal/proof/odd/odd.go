// Package odd makes repositories of the kinds that people have and that demos lack: much
// history, many refs, old faults, names and line endings of other systems. They are made
// by code, the same on every machine, so that a test may put each on a server and compare
// what comes back byte for byte.
package odd

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	Beside  []Kind // what its submodules are; they are added before it, as repositories of their names
	Holds   string // a condition of the shell that is true in a checkout of it
	make    func(ctx context.Context, r *repository) error
}

// Kinds are all kinds, those that are taken first.
func Kinds() []Kind {
	return []Kind{
		{Name: "plain", make: plain},
		Monorepo(),
		{Name: "windows line endings", make: windows},
		{Name: "latin-1 names", make: latin},
		{Name: "old faults", make: old},
		{Name: "5,000 refs", make: manyRefs},
		{Name: "another default branch", make: master},
		{Name: "two roots", make: roots},
		{Name: "bare", make: bare},
		{Name: "pointers without their files", make: pointers},
		{Name: "a library with pictures", make: lib, Holds: fmt.Sprintf(`test $(wc -c <icon.bin) = %d`, len(picture(2)))},
		{Name: "names of odd letters", make: letters},
		{Name: "merges of many branches", make: octopus},

		{Name: "empty", Refused: "has no commit on its branch main yet", make: func(context.Context, *repository) error { return nil }},
		{Name: "only tags", Refused: "has tags, and no commit on its branch main", make: onlyTags},
		{Name: "shallow", Refused: "git fetch --unshallow", make: shallow},
		{Name: "detached", Refused: "is on no branch", make: detached},
		{Name: "sha256", Refused: "names its objects by sha256", make: longNames},
		{Name: "a branch svc", Refused: "has a branch svc", make: inTheWay},
		{Name: "a path into .git", Refused: "hasDotgit", make: dotGit},
		{Name: "a submodule's address that is an option", Refused: "gitmodulesUrl", make: option},
	}
}

// Monorepo has what a repository may keep elsewhere.
func Monorepo() Kind {
	return Kind{Name: "monorepo", make: monorepo, Beside: []Kind{{Name: "lib", make: lib}},
		Holds: fmt.Sprintf(`test "$(cat vendor/lib/README.md)" = Lib && test -z "$(ls vendor/lost)" && test $(wc -c <art/large.bin) = %d && `+
			`test $(wc -c <vendor/lib/icon.bin) = %d`, len(picture(1)), len(picture(2)))}
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
	c.Dir, c.Stdin, c.Env = r.dir, strings.NewReader(stdin), r.env()
	out, err := c.CombinedOutput()
	if err != nil {
		r.err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// env is the environment of git, in which the same commits come out at each time.
func (r *repository) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=1700000000 +0000",
	}
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

// picture is some bytes that do not pack.
func picture(n byte) []byte { return bytesThatDoNotPack(70_000+int(n), n, 0) }

func bytesThatDoNotPack(size int, seed, more byte) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed, more}).Read(b)
	return b
}

// Pictures is a repository with n files of Git LFS of a size, which differ by the seed.
func Pictures(seed byte, n, size int) Kind {
	return Kind{Name: "pictures", make: func(_ context.Context, r *repository) error {
		r.file(".gitattributes", attributes)
		for i := range n {
			r.content(fmt.Sprintf("p%03d.bin", i), bytesThatDoNotPack(size, seed, byte(i)))
		}
		r.commit("Begin")
		return nil
	}}
}

// attributes give files of one ending to Git LFS.
const attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n"

// content stores a file of Git LFS: its pointer as a file, and what it stands for where git-lfs
// keeps that.
func (r *repository) content(name string, b []byte) {
	sum := sha256.Sum256(b)
	oid := hex.EncodeToString(sum[:])
	r.file(name, fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(b)))
	r.file(filepath.Join(".git/lfs/objects", oid[:2], oid[2:4], oid), string(b))
}

// lib has a file of Git LFS.
func lib(_ context.Context, r *repository) error {
	r.file("README.md", "Lib\n")
	r.file(".gitattributes", attributes)
	r.content("icon.bin", picture(2))
	r.commit("Begin")
	return nil
}

// monorepo has many packages, a submodule with files of Git LFS and such files of its own, a
// submodule of which nobody has the commit, links and programs.
func monorepo(ctx context.Context, r *repository) error {
	for i := range 40 {
		for j := range 10 {
			r.file(fmt.Sprintf("services/s%02d/pkg%d/main.go", i, j), fmt.Sprintf("package main // %d.%d\n", i, j))
		}
	}
	r.file(".gitmodules", "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../lib.git\n"+
		"[submodule \"lost\"]\n\tpath = vendor/lost\n\turl = ../lib.git\n")
	r.file("art/.gitattributes", attributes)
	r.content("art/large.bin", picture(1))
	r.file("build.sh", "#!/bin/sh\n")
	if r.err == nil {
		r.err = os.Chmod(filepath.Join(r.dir, "build.sh"), 0o755)
	}
	if r.err == nil {
		r.err = os.Symlink("services/s00", filepath.Join(r.dir, "first"))
	}
	linked, err := head(ctx, lib)
	if err != nil {
		return err
	}
	r.git("", "add", "--all")
	r.git("", "update-index", "--add", "--cacheinfo", "160000,"+linked+",vendor/lib")
	r.git("", "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("12", 20)+",vendor/lost")
	r.git("", "commit", "--quiet", "--message", "Begin")
	for i := range 30 {
		r.file(fmt.Sprintf("services/s%02d/CHANGES", i), "more\n")
		r.git("", "add", "services")
		r.git("", "commit", "--quiet", "--message", fmt.Sprint("Change ", i))
	}
	return nil
}

// head is the commit that a repository begins with, wherever it is made.
func head(ctx context.Context, make func(context.Context, *repository) error) (sha string, err error) {
	dir, err := os.MkdirTemp("", "odd-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	at, err := (Kind{make: make}).Make(ctx, dir)
	if err != nil {
		return "", err
	}
	r := &repository{ctx: ctx, dir: at}
	return r.git("", "rev-parse", "HEAD"), r.err
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
	r.file(".gitattributes", attributes)
	r.git("", "add", ".gitattributes")
	r.git("", "commit", "--quiet", "--message", "Attributes")
	return nil
}

// letters has names that the shell, git or a page may take for something else.
func letters(_ context.Context, r *repository) error {
	for i, name := range []string{
		"-n", "--help", ":(top)x", "a b", "a\nb", "'quoted'", "\"q\"", "$(touch x)", "*", "[a]", "~", "aux", "con.txt", "x.",
		"gr\u00f6\u00dfe", "gro\u0308\u00dfe", "\U0001f600", "\u202eabc", strings.Repeat("n", 255),
		"deep/" + strings.Repeat("d/", 60) + "f",
	} {
		r.file(name, fmt.Sprint(i, "\n"))
	}
	r.commit("Begin: \u202e$(x) `y` <b>z</b>")
	r.git("", "branch", "a'b")
	r.git("", "tag", "\U0001f600")
	return nil
}

// octopus has a merge of six branches, a commit that changes nothing, and one without a message.
func octopus(_ context.Context, r *repository) error {
	r.file("a.txt", "a\n")
	r.commit("Begin")
	args := []string{"merge", "--quiet", "--message", "All"}
	for i := range 6 {
		name := fmt.Sprint("b", i)
		r.git("", "switch", "--quiet", "--create", name, "main")
		r.file(name, "b\n")
		r.commit(name)
		args = append(args, name)
	}
	r.git("", "switch", "--quiet", "main")
	r.git("", args...)
	r.git("", "commit", "--quiet", "--allow-empty", "--message", "Nothing")
	r.git("", "commit", "--quiet", "--allow-empty", "--allow-empty-message", "--message", "")
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

func longNames(_ context.Context, r *repository) error {
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

// PolicyFile is where a repository says how its work is done, and Policy one that has a pull
// request merged by itself.
const (
	PolicyFile = ".svc/policy.yml"
	Policy     = "version: 1\nreview: {mode: \"off\"}\nmerge: {mode: auto}\n"
)

// largeFile is the size of the files of Large: small enough for a box, and for the files to be so
// many that git keeps what is pushed in one pack, and looks for no deltas among them later.
const largeFile = 4 << 20

// Large is a repository with so many bytes of files that do not pack, and the file Policy.
func Large(size int64) Kind {
	return Kind{Name: "large", make: func(_ context.Context, r *repository) error {
		c := exec.CommandContext(r.ctx, "git", "-c", "core.compression=0", "-c", "pack.compression=0", "-c", "fastimport.unpackLimit=1",
			"fast-import", "--quiet", "--depth=0")
		c.Dir, c.Env = r.dir, r.env()
		to, err := c.StdinPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			return err
		}
		err = large(to, size)
		return errors.Join(err, to.Close(), c.Wait())
	}}
}

// large writes the commit of Large as git fast-import reads it.
func large(to io.Writer, size int64) error {
	w := bufio.NewWriterSize(to, 1<<20)
	fmt.Fprint(w, "commit refs/heads/main\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata 6\nBegin\n\n")
	fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", PolicyFile, len(Policy), Policy)
	random := rand.NewChaCha8([32]byte{3})
	for i := 0; size > 0; i++ {
		n := min(size, largeFile)
		fmt.Fprintf(w, "M 100644 inline data/%03d\ndata %d\n", i, n)
		if _, err := io.CopyN(w, random, n); err != nil {
			return err
		}
		fmt.Fprintln(w)
		size -= n
	}
	return w.Flush()
}
