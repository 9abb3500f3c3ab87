package worktree

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/gitlfs"
	"yardmaster/internal/unixfile"
)

// attributesOf matches the files that say which paths are those of Git LFS.
const attributesOf = ":(glob)**/.gitattributes"

// UsesLFS tells whether a commit has files of Git LFS.
func (c *Cache) UsesLFS(ctx context.Context, sha string) (bool, error) {
	_, err := c.git("grep", "-q", "-I", "-F", "-e", "filter=lfs", sha, "--", attributesOf).run(ctx)
	var failed *GitError
	if errors.As(err, &failed) && failed.Output == "" && ctx.Err() == nil {
		return false, nil // git grep says nothing when it finds nothing
	}
	return err == nil, err
}

// scratchIndex is a command on the cache with an index of its own, in a scratch folder.
func (c *Cache) scratchIndex(scratch string, args ...string) command {
	cmd := c.git(args...)
	cmd.env = []string{"GIT_INDEX_FILE=" + filepath.Join(scratch, "lfs-index")}
	return cmd
}

// filtered are those of some paths whose attributes in the index say that they are files
// of Git LFS.
func filtered(ctx context.Context, attr command, names []string) (map[string]bool, error) {
	found := map[string]bool{}
	if len(names) == 0 {
		return found, nil
	}
	attr.stdin = strings.NewReader(strings.Join(names, "\x00") + "\x00")
	out, err := attr.run(ctx)
	for all := fields(out); len(all) >= 3; all = all[3:] {
		if all[2] == "lfs" {
			found[all[0]] = true
		}
	}
	return found, err
}

// blobs reads blobs that are small enough for pointers.
func (c *Cache) blobs(ctx context.Context, names []string) (map[string]gitlfs.Pointer, error) {
	found := map[string]gitlfs.Pointer{}
	if len(names) == 0 {
		return found, nil
	}
	cmd := c.git("cat-file", "--batch")
	cmd.stdin = strings.NewReader(strings.Join(names, "\n") + "\n")
	out, err := cmd.run(ctx)
	if err != nil {
		return nil, err
	}
	for len(out) > 0 {
		line, rest, _ := bytes.Cut(out, []byte{'\n'})
		f := strings.Fields(string(line))
		if len(f) != 3 {
			return nil, fmt.Errorf("worktree: git cat-file: %.100q", line)
		}
		n, err := strconv.Atoi(f[2])
		if err != nil || n+1 > len(rest) {
			return nil, fmt.Errorf("worktree: git cat-file: %.100q", line)
		}
		if p, ok := gitlfs.ParsePointer(rest[:n]); ok && f[1] == "blob" {
			found[f[0]] = p
		}
		out = rest[n+1:]
	}
	return found, nil
}

// pointersAt are the files of Git LFS of a commit, by path.
func (c *Cache) pointersAt(ctx context.Context, scratch, sha string) (map[string]gitlfs.Pointer, error) {
	if _, err := c.scratchIndex(scratch, "read-tree", sha).run(ctx); err != nil {
		return nil, err
	}
	out, err := c.git("ls-tree", "-r", "-z", "-l", sha).run(ctx)
	if err != nil {
		return nil, err
	}
	at := map[string]string{}
	for _, line := range fields(out) {
		meta, name, _ := strings.Cut(line, "\t")
		f := strings.Fields(meta)
		if len(f) != 4 || f[0] != "100644" && f[0] != "100755" {
			continue
		}
		if size, err := strconv.Atoi(f[3]); err == nil && size > 0 && size <= gitlfs.MaxPointer {
			at[name] = f[2]
		}
	}
	lfs, err := filtered(ctx, c.scratchIndex(scratch, "check-attr", "--cached", "--stdin", "-z", "filter"), slices.Sorted(maps.Keys(at)))
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range lfs {
		names = append(names, at[name])
	}
	texts, err := c.blobs(ctx, names)
	if err != nil {
		return nil, err
	}
	found := map[string]gitlfs.Pointer{}
	for name := range lfs {
		if p, ok := texts[at[name]]; ok {
			found[name] = p
		}
	}
	return found, nil
}

// spare is what must stay free of a disk when objects are fetched, in bytes.
const spare = 256 << 20

// room fails with syscall.ENOSPC if there is no room for objects twice: in the cache and in
// a checkout.
func (c *Cache) room(all map[string]gitlfs.Pointer) error {
	var need int64
	fetch := map[string]bool{}
	for _, p := range all {
		need += p.Size
		if !c.hasObject(p) && !fetch[p.OID] {
			fetch[p.OID] = true
			need += p.Size
		}
	}
	if s, err := unixfile.Room(c.dir); err == nil && need > 0 && need+spare > s.Free {
		return fmt.Errorf("the objects of Git LFS need %d MB: %w", need>>20, syscall.ENOSPC)
	}
	return nil
}

// FillObjects puts the contents of files of Git LFS in the place of their pointers, in a
// checkout that nobody has used yet. It names those that cannot be had, which stay
// pointers. Errors are those of ObjectError and GitError.
func (w *Checkout) FillObjects(ctx context.Context, r Remote) (lacking []Skipped, err error) {
	uses, err := w.cache.UsesLFS(ctx, w.base)
	if err != nil || !uses {
		return nil, err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(w.cache.dir), ".lfs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	all, err := w.cache.pointersAt(ctx, scratch, w.base)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	w.cache.tidyObjects(time.Now())
	if err := w.cache.room(all); err != nil {
		return nil, err
	}
	why, err := w.cache.download(ctx, r, distinct(maps.Values(all)))
	var refused *ObjectError
	if errors.As(err, &refused) && refused.Status != 0 && refused.Status != 401 && !errors.Is(err, ErrBusy) {
		for _, p := range all { // the host has no Git LFS, or gives nothing now
			if !w.cache.hasObject(p) {
				why[p.OID] = refused.Message
			}
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	filled := map[string]os.FileInfo{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if said, lacks := why[all[name].OID]; lacks {
			lacking = append(lacking, Skipped{Path: name, Reason: said})
			continue
		}
		if filled[name], err = w.fill(root, name, all[name]); err != nil {
			return nil, err
		}
	}
	if len(filled) == 0 {
		return lacking, nil
	}
	// The files are given to the agent's user, which changes more of them than their contents.
	dot := filepath.Join(w.dir, ".git")
	if _, err := (command{gitDir: dot, args: []string{"config", "core.checkStat", "minimal"}}).run(ctx); err != nil {
		return nil, err
	}
	return lacking, refreshIndex(filepath.Join(dot, "index"), filled)
}

// fill writes an object over its pointer. The cache's copy is not shared with the checkout:
// an agent may write into its own.
func (w *Checkout) fill(root *os.Root, name string, p gitlfs.Pointer) (os.FileInfo, error) {
	from, err := os.Open(w.cache.object(p.OID))
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), from)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != p.OID { // an agent, or a disk, has damaged it
		damaged := &ObjectError{Message: fmt.Sprintf("object %.12s: %v", p.OID, errOtherBytes), err: ErrBusy}
		err = errors.Join(damaged, os.Remove(from.Name()))
	}
	// Git looks into a file that is as young as its index.
	past := time.Now().Add(-10 * time.Second)
	if err := errors.Join(err, to.Close(), root.Chtimes(name, past, past)); err != nil {
		return nil, err
	}
	return root.Lstat(name)
}

func distinct(all func(func(gitlfs.Pointer) bool)) []gitlfs.Pointer {
	seen := map[string]bool{}
	var out []gitlfs.Pointer
	for p := range all {
		if !seen[p.OID] {
			seen[p.OID] = true
			out = append(out, p)
		}
	}
	return out
}

// usesLFSNow tells whether the attributes of the files in a checkout speak of Git LFS.
func usesLFSNow(root *os.Root, names []string) bool {
	for _, name := range names {
		if path.Base(name) != ".gitattributes" {
			continue
		}
		if text, err := readFile(root, name); err == nil && bytes.Contains(text, []byte("filter=lfs")) {
			return true
		}
	}
	return false
}

// pointFiles takes the contents of files of Git LFS into the cache, and leaves pointers in
// their places, as git-lfs would have committed them. So what was not touched is as it was,
// and what was is small. It names files that it cannot take.
func (w *Checkout) pointFiles(ctx context.Context, root *os.Root, scratch, head string) (skipped []Skipped, err error) {
	if !w.LFS {
		return nil, nil
	}
	git := func(args ...string) command {
		c := w.cache.scratchIndex(scratch, append([]string{"--work-tree=" + w.dir}, args...)...)
		c.dir = w.dir
		return c
	}
	if _, err := git("read-tree", head).run(ctx); err != nil {
		return nil, err
	}
	tracked, err := git("ls-files", "-z", "--stage").run(ctx)
	if err != nil {
		return nil, err
	}
	untracked, err := git("ls-files", "-z", "--others", "--exclude-standard").run(ctx)
	if err != nil {
		return nil, err
	}
	names, blob := fields(untracked), map[string]string{}
	for _, line := range fields(tracked) {
		meta, name, _ := strings.Cut(line, "\t")
		if f := strings.Fields(meta); len(f) == 3 && f[0] != "160000" {
			names, blob[name] = append(names, name), f[1]
		}
	}
	if uses, err := w.cache.UsesLFS(ctx, head); err != nil || !uses && !usesLFSNow(root, names) {
		return nil, err
	}
	lfs, err := filtered(ctx, git("check-attr", "--stdin", "-z", "filter"), names)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(lfs)) {
		st, err := root.Lstat(name)
		if err != nil || !st.Mode().IsRegular() || st.Size() == 0 || behindLink(root, name) {
			continue // git-lfs has no pointer for an empty file
		}
		p, isPointer, same, err := w.takeFile(root, name, st.Size(), blob[name])
		switch {
		case noRoom(err) || ctx.Err() != nil:
			return skipped, errors.Join(err, ctx.Err())
		case err != nil:
			skipped = append(skipped, Skipped{Path: name, Reason: "it cannot be read"})
		case isPointer:
			w.takeOwn(root, p)
		case same: // the commit has the content itself
		default:
			if err := replace(root, name, st.Mode().Perm(), p.String()); err != nil {
				return skipped, err
			}
		}
	}
	return skipped, nil
}

// point holds the work in a checkout to pointers: the commits of the agent, which it returns,
// and the files.
func (w *Checkout) point(ctx context.Context, root *os.Root, scratch, head, branch string) (string, string, []Skipped, error) {
	anew, err := w.pointCommits(ctx, scratch, head, branch)
	var left []Skipped
	switch {
	case noRoom(err) || ctx.Err() != nil:
		return "", "", nil, errors.Join(err, ctx.Err())
	case err != nil: // the work is worth more than its form
		anew, left = nil, []Skipped{{Path: ".", Reason: "pointers of Git LFS in commits: " + err.Error()}}
	}
	head, branch = cmp.Or(anew[head], head), cmp.Or(anew[branch], branch)
	for name, sha := range map[string]string{"agent": head, "branch": branch} { // nothing else keeps them in the cache
		if sha != "" && len(anew) > 0 {
			if err := w.keep(ctx, name, sha); err != nil {
				return "", "", nil, err
			}
		}
	}
	skipped, err := w.pointFiles(ctx, root, scratch, head)
	return head, branch, append(left, skipped...), err
}

func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

func behindLink(root *os.Root, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := root.Lstat(dir); err != nil || !st.IsDir() {
			return true
		}
	}
	return false
}

// takeFile takes the content of a file into the cache, unless it is a pointer. same tells
// whether it is that of a blob of git.
func (w *Checkout) takeFile(root *os.Root, name string, size int64, blob string) (p gitlfs.Pointer, isPointer, same bool, err error) {
	f, err := openRegular(root, name)
	if err != nil {
		return p, false, false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, gitlfs.MaxPointer+1))
	if err != nil {
		return p, false, false, err
	}
	if p, isPointer = gitlfs.ParsePointer(head); isPointer {
		return p, true, false, nil
	}
	sum := sha1.New()
	if len(blob) == hex.EncodedLen(sha256.Size) {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "blob %d\x00", size)
	p, err = w.cache.putObject(io.TeeReader(io.MultiReader(bytes.NewReader(head), f), sum), nil)
	return p, false, hex.EncodeToString(sum.Sum(nil)) == blob, err
}

// takeOwn takes an object that the agent's own git-lfs has stored. That it cannot is no
// error: the remote may have the object.
func (w *Checkout) takeOwn(root *os.Root, p gitlfs.Pointer) {
	if w.cache.hasObject(p) {
		return
	}
	f, err := openRegular(root, path.Join(".git/lfs/objects", p.OID[:2], p.OID[2:4], p.OID))
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = w.cache.putObject(f, &p) // bytes that are not its own are not taken
}

// replace puts a new file in the place of one.
func replace(root *os.Root, name string, mode os.FileMode, text string) error {
	if err := root.Remove(name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}

// PushObjects sends the objects of Git LFS that the commits up to tip have and the remote's
// branches do not. It returns pointers whose objects nobody has. Errors are those of
// ObjectError and GitError.
func (c *Cache) PushObjects(ctx context.Context, r Remote, tip string) (nowhere []gitlfs.Pointer, err error) {
	all, err := c.newPointers(ctx, tip, "--glob="+heads+"*")
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return c.upload(ctx, r, all)
}

// newPointers are the pointers in commits up to tip and in none of others.
func (c *Cache) newPointers(ctx context.Context, tip string, others ...string) ([]gitlfs.Pointer, error) {
	out, err := c.git(append([]string{"rev-list", "--objects", "--no-object-names", tip, "--not"}, others...)...).run(ctx)
	if err != nil {
		return nil, err
	}
	cmd := c.git("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
	cmd.stdin = bytes.NewReader(out)
	if out, err = cmd.run(ctx); err != nil {
		return nil, err
	}
	var small []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "blob" {
			continue
		}
		if n, err := strconv.Atoi(f[2]); err == nil && n > 0 && n <= gitlfs.MaxPointer {
			small = append(small, f[0])
		}
	}
	texts, err := c.blobs(ctx, small)
	return distinct(maps.Values(texts)), err
}
