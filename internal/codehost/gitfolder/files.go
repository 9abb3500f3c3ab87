package gitfolder

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// ReadDir answers as codehost.Host says.
func (dir Folder) ReadDir(ctx context.Context, rev, folder string) (string, map[string][]byte, error) {
	commit, err := dir.resolveOne(ctx, rev)
	if err != nil {
		return "", nil, err
	}
	if !plainPath(folder) {
		return "", nil, codehost.ErrNotFound
	}
	// With the slash git lists the content of the folder, and nothing for a file.
	out, err := dir.Output(ctx, "--literal-pathspecs", "ls-tree", "-z", commit, "--", folder+"/")
	if err != nil {
		return "", nil, err
	}
	entries := fields(out)
	if len(entries) == 0 {
		return "", nil, codehost.ErrNotFound
	}
	var names []string
	var ask strings.Builder
	for _, e := range entries {
		about, name, _ := strings.Cut(e, "\t") // "<mode> <type> <sha>"
		f := strings.Fields(about)
		if len(f) != 3 || f[0] != "100644" && f[0] != "100755" {
			continue
		}
		names = append(names, path.Base(name))
		ask.WriteString(f[2] + "\n")
	}
	if len(names) > codehost.MaxDirFiles {
		return "", nil, codehost.ErrTooLarge
	}
	files, err := dir.readObjects(ctx, names, ask.String())
	return commit, files, err
}

// readObjects reads blobs. ask has a SHA on each line, in the order of names, which
// become the keys of the result.
func (dir Folder) readObjects(ctx context.Context, names []string, ask string) (map[string][]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := dir.Command(ctx, "cat-file", "--batch")
	c.Stdin = strings.NewReader(ask)
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := Begin(c); err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	files := make(map[string][]byte, len(names))
	from := bufio.NewReader(stdout)
	for _, name := range names {
		if files[name], _, err = readObject(from); err == nil {
			_, err = from.Discard(1) // the newline after the content
		}
		if err != nil {
			cancel() // stops git before the rest of a file that is too large
			break
		}
	}
	if waited := c.Wait(); err == nil && waited != nil {
		err = fmt.Errorf("git cat-file: %w", waited)
	}
	if err != nil {
		return nil, err
	}
	return files, nil
}

// plainPath tells whether a path names a file or folder below the root of a tree.
func plainPath(p string) bool {
	return fs.ValidPath(p) && p != "." && !strings.ContainsAny(p, "\n\x00") &&
		!slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool {
			return strings.EqualFold(part, ".git")
		})
}

// WriteFiles answers as codehost.Host says.
func (dir Folder) WriteFiles(ctx context.Context, o codehost.WriteOptions) (string, error) {
	if err := checkWrite(o); err != nil {
		return "", err
	}
	head, err := dir.Head(ctx, o.Branch)
	if err != nil {
		return "", err
	}
	if head != o.Parent {
		return "", codehost.ErrHeadMoved
	}
	sha, err := dir.CommitFiles(ctx, o)
	if err != nil || sha == head {
		return sha, err
	}
	if _, failed := dir.Output(ctx, "update-ref", "refs/heads/"+o.Branch, sha, head); failed != nil {
		// The branch moved, or a push holds its lock and is about to move it.
		return "", codehost.ErrHeadMoved.Because(failed)
	}
	return sha, nil
}

// CommitFiles makes the commit of WriteFiles on o.Parent, which the repository must
// have, and moves no branch. The answer is o.Parent if the files have this content.
func (dir Folder) CommitFiles(ctx context.Context, o codehost.WriteOptions) (string, error) {
	if err := checkWrite(o); err != nil {
		return "", err
	}
	tree, err := dir.writeTree(ctx, o.Parent, o, nil)
	if err != nil {
		return "", fmt.Errorf("write files to %s of %s: %w", o.Branch, dir, err)
	}
	was, err := dir.Output(ctx, "rev-parse", o.Parent+"^{tree}")
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(was) == tree {
		return o.Parent, nil
	}
	return dir.commit(ctx, tree, o.Parent, codehost.MergeOptions{
		Title: o.Title, Body: o.Body, Author: o.Author, Committer: o.Committer,
	})
}

func checkWrite(o codehost.WriteOptions) error {
	if !codehost.ValidSHA(o.Parent) {
		return fault.Field("parent", "is not a full commit SHA")
	}
	for _, p := range slices.Concat(slices.Collect(maps.Keys(o.Files)), o.Remove) {
		if !plainPath(p) {
			return fault.Field("files", "must be paths inside the repository")
		}
	}
	return nil
}

// writeTree makes the tree of a commit with the changed files, of which some are
// programs. It uses a temporary index.
func (dir Folder) writeTree(ctx context.Context, commit string, o codehost.WriteOptions, programs []string) (string, error) {
	blobs, err := dir.writeBlobs(ctx, o.Files)
	if err != nil {
		return "", err
	}
	if err := dir.fits(ctx, commit, slices.Collect(maps.Keys(o.Files))); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(dir.git.folder, ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(tmp, "index")}
	if _, err := dir.Filter(ctx, "", env, "read-tree", commit); err != nil {
		return "", err
	}
	var change strings.Builder
	for _, p := range o.Remove {
		if _, kept := o.Files[p]; !kept {
			change.WriteString("0 " + codehost.ZeroSHA + "\t" + p + "\x00")
		}
	}
	for _, p := range slices.Sorted(maps.Keys(blobs)) {
		mode := "100644 "
		if slices.Contains(programs, p) {
			mode = "100755 "
		}
		change.WriteString(mode + blobs[p] + "\t" + p + "\x00")
	}
	if _, err := dir.Filter(ctx, change.String(), env, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	out, err := dir.Filter(ctx, "", env, "write-tree")
	return strings.TrimSpace(out), err
}

// fits fails with codehost.ErrConflict if a file would replace a folder, or a
// folder a file: git would do both.
func (dir Folder) fits(ctx context.Context, commit string, files []string) error {
	folder := map[string]bool{} // the paths to write and their folders; true: a folder
	for _, file := range files {
		folder[file] = false
	}
	for _, file := range files {
		for up := path.Dir(file); up != "."; up = path.Dir(up) {
			if isFolder, known := folder[up]; known && !isFolder {
				return codehost.ErrConflict
			}
			folder[up] = true
		}
	}
	args := []string{"--literal-pathspecs", "ls-tree", "-z", "-t", commit, "--"}
	out, err := dir.Output(ctx, append(args, slices.Sorted(maps.Keys(folder))...)...)
	if err != nil {
		return err
	}
	for _, e := range fields(out) {
		about, name, _ := strings.Cut(e, "\t")
		if isFolder, ours := folder[name]; ours && isFolder != (strings.Fields(about)[1] == "tree") {
			return codehost.ErrConflict
		}
	}
	return nil
}

// writeBlobs stores contents, and returns the SHA of each blob by its path.
func (dir Folder) writeBlobs(ctx context.Context, files map[string][]byte) (map[string]string, error) {
	paths := slices.Sorted(maps.Keys(files))
	var script strings.Builder
	for i, p := range paths {
		fmt.Fprintf(&script, "blob\nmark :%d\ndata %d\n%s\nget-mark :%d\n", i+1, len(files[p]), files[p], i+1)
	}
	out, err := dir.Filter(ctx, script.String(), nil, "fast-import", "--quiet")
	if err != nil {
		return nil, err
	}
	shas := strings.Fields(out)
	if len(shas) != len(paths) {
		return nil, fmt.Errorf("git fast-import named %d objects, not %d", len(shas), len(paths))
	}
	blobs := make(map[string]string, len(paths))
	for i, p := range paths {
		blobs[p] = shas[i]
	}
	return blobs, nil
}
