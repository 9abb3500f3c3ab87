package worktree

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// A cache is a copy of what its remote has: what a power cut has left of it can be thrown
// away. The exception is work that was kept, see Keep.

// refetchFile is a file in a cache that has lost objects, until all are fetched anew.
const refetchFile = "refetch"

// aliveFile is the lock file that every git on the cache holds, shared, for as long as it
// lives: also one whose box was killed. Lock files of git are dead once nobody holds it.
func (c *Cache) aliveFile() string { return c.dir + ".alive" }

// opened are the caches that this process has opened before, by folder.
var opened sync.Map

// lockedWords are what git says of a lock that nobody takes away, brokenWords of a
// repository that was damaged.
var (
	lockedWords = []string{".lock': File exists", "cannot lock ref"}
	brokenWords = []string{
		" is empty", "is corrupt", "bad object", "bad ref", "bad config", "bad tree", "unable to read", "not a git repository",
		"unable to resolve reference", "does not match index", "invalid sha1 pointer", "unexpected line in", "unterminated line in",
		"does not point to a valid object", "invalid object", "not a valid object", "inflate: ", "far too short to be a packfile",
		"not a GIT packfile", "index file", "missing blob", "missing tree", "missing commit", "unable to parse", "failed to read object",
		"did not send all necessary objects", "unable to load", "reference broken", "commit-graph", "needed object",
		"unresolved deltas", "reference is not a tree", "could not parse",
	}
)

// Broken tells whether an error may come of a cache that was damaged, so that Heal may help.
func Broken(err error) bool { return says(err, lockedWords) || says(err, brokenWords) }

// says tells whether git itself has said one of some words; what a remote says does not count.
func says(err error, words []string) bool {
	for _, other := range []error{ErrAuth, ErrMissing, ErrBusy, ErrNoRev, syscall.ENOSPC, syscall.EDQUOT, context.Canceled,
		context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	var failure *GitError
	if !errors.As(err, &failure) {
		return false
	}
	for line := range strings.Lines(failure.Output) {
		if strings.HasPrefix(line, "remote:") || strings.HasPrefix(line, "fatal: remote error") {
			continue
		}
		for _, w := range words {
			if strings.Contains(line, w) {
				return true
			}
		}
	}
	return false
}

// clear removes what a power cut leaves in the way of every command: the locks of dead
// processes, and empty files in the place of refs. It does nothing while a git works on the
// cache. The caller holds the cache's lock.
func (c *Cache) clear() error {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	release, err := lock(done, c.aliveFile())
	if err != nil {
		return nil
	}
	defer release()
	return c.clearLocks()
}

// clearLocks deletes git's lock files. Nobody holds one.
func (c *Cache) clearLocks() error {
	return filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && len(d.Name()) == 2 && filepath.Dir(path) == c.Objects():
			return fs.SkipDir // loose objects have none
		case !d.IsDir() && strings.HasSuffix(path, ".lock"):
			return os.Remove(path)
		}
		return nil
	})
}

// Heal repairs the cache after an error that is Broken. Where a lock was in the way, it
// removes the locks of dead processes, and that is all. Otherwise it puts aside the objects and packs that are damaged, forgets
// what it knew of the remote, and has the next Fetch fetch everything anew. What is kept
// stays if it is whole. Checkouts that borrow from the cache go on. It waits until no git
// works on the cache, and takes a second for each gigabyte or so.
func (c *Cache) Heal(ctx context.Context, cause error) error {
	release, err := lock(ctx, c.lockFile())
	if err != nil {
		return err
	}
	defer release()
	alone, err := lock(ctx, c.aliveFile())
	if err != nil {
		return err
	}
	heal := c.heal
	if says(cause, lockedWords) && !says(cause, brokenWords) {
		heal = func(context.Context) error { return c.clearLocks() }
	}
	if err := heal(ctx); err != nil {
		alone()
		return fmt.Errorf("worktree: the cache was not repaired: %w", err)
	}
	alone()
	return c.dropBrokenRefs(ctx)
}

func (c *Cache) heal(ctx context.Context) error {
	if err := c.clearLocks(); err != nil {
		return err
	}
	aside := c.dir + ".broken" // of the last time only
	if err := errors.Join(os.RemoveAll(aside), os.MkdirAll(filepath.Join(c.Objects(), "pack"), 0o755),
		os.WriteFile(filepath.Join(c.dir, refetchFile), nil, 0o600)); err != nil {
		return err
	}
	// All this git makes anew, from what there is.
	for _, name := range []string{"HEAD", "config", "info", "commondir", "shallow", "refs/remotes", "refs/tags", "refs/heads", "logs",
		"objects/info/commit-graph", "objects/info/commit-graphs", "objects/pack/multi-pack-index"} {
		if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	if err := c.healRefs(); err != nil {
		return err
	}
	if err := c.healObjects(ctx, aside); err != nil {
		return err
	}
	_, err := (command{args: []string{"init", "-q", "--bare", "--template=", "--initial-branch=none", c.dir}}).run(ctx)
	return err
}

// healRefs keeps the refs of the box that name a commit, and none of the remote.
func (c *Cache) healRefs() error {
	packed := bytes.NewBufferString("# pack-refs with: sorted \n")
	old, err := os.ReadFile(filepath.Join(c.dir, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range bytes.Lines(old) {
		sha, ref, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if fullName.MatchString(sha) && (strings.HasPrefix(ref, keptRefs) || strings.HasPrefix(ref, "refs/box/")) {
			packed.WriteString(sha + " " + ref + "\n")
		}
	}
	fresh := filepath.Join(c.dir, "packed-refs.new")
	if err := errors.Join(os.WriteFile(fresh, packed.Bytes(), 0o644), os.Rename(fresh, filepath.Join(c.dir, "packed-refs"))); err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(c.dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if text, err := os.ReadFile(path); err != nil || !fullName.MatchString(string(bytes.TrimSpace(text))) {
			return os.Remove(path)
		}
		return nil
	})
}

// healObjects puts damaged objects and packs aside.
func (c *Cache) healObjects(ctx context.Context, aside string) error {
	return filepath.WalkDir(c.Objects(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		dir, name := filepath.Base(filepath.Dir(path)), d.Name()
		bad := []string{path}
		switch {
		case fanout.MatchString(dir) && loose.MatchString(name):
			if wholeObject(path, dir+name) {
				return nil
			}
		case dir == "pack" && strings.HasSuffix(name, ".pack"):
			base := strings.TrimSuffix(path, ".pack")
			index, whole := wholeFile(base + ".idx")
			if pack, also := wholeFile(path); whole && also && index == pack {
				return nil
			}
			for _, suffix := range []string{".idx", ".rev", ".keep", ".bitmap", ".mtimes", ".promisor"} {
				bad = append(bad, base+suffix)
			}
		case dir == "pack" && strings.HasSuffix(name, ".idx"):
			if _, err := os.Stat(strings.TrimSuffix(path, ".idx") + ".pack"); err == nil {
				return nil // it is looked at with its pack
			}
		case dir == "pack" && strings.HasSuffix(name, ".rev"):
			if _, whole := wholeFile(path); whole {
				return nil
			}
		case strings.HasPrefix(name, "tmp_"):
		default:
			return nil
		}
		if err := os.MkdirAll(aside, 0o700); err != nil {
			return err
		}
		for _, path := range bad {
			to := filepath.Join(aside, filepath.Base(filepath.Dir(path))+"-"+filepath.Base(path))
			if err := os.Rename(path, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
}

// wholeObject tells whether a loose object is what its name says.
func wholeObject(path, name string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := zlib.NewReader(f)
	if err != nil {
		return false
	}
	h := hashOf(len(name))
	_, err = io.Copy(h, text)
	return err == nil && hex.EncodeToString(h.Sum(nil)) == name
}

// hashOf is the hash whose names have a length.
func hashOf(length int) hash.Hash {
	if length == hex.EncodedLen(sha256.Size) {
		return sha256.New()
	}
	return sha1.New()
}

// wholeFile tells whether a pack or an index of one has the checksum that it ends with. It
// returns the checksum of the pack.
func wholeFile(path string) (pack string, whole bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", false
	}
	for _, size := range []int64{sha1.Size, sha256.Size} {
		if st.Size() < 2*size {
			return "", false
		}
		h := hashOf(hex.EncodedLen(int(size)))
		end := make([]byte, size)
		if _, err := io.Copy(h, io.NewSectionReader(f, 0, st.Size()-size)); err != nil {
			return "", false
		}
		if _, err := f.ReadAt(end, st.Size()-size); err != nil {
			return "", false
		}
		if !bytes.Equal(h.Sum(nil), end) {
			continue
		}
		if strings.HasSuffix(path, ".idx") { // the checksum of its pack is before its own
			if _, err := f.ReadAt(end, st.Size()-2*size); err != nil {
				return "", false
			}
		}
		return string(end), true
	}
	return "", false
}

// dropBrokenRefs deletes the refs whose commits are gone.
func (c *Cache) dropBrokenRefs(ctx context.Context) error {
	out, err := c.git("for-each-ref", "--format=%(objectname) %(refname)").run(ctx)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		sha, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := c.git("cat-file", "-e", sha+"^{commit}").run(ctx); err == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := c.git("update-ref", "--no-deref", "-d", ref).run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dropBrokenKept deletes what is kept and not whole, once all was fetched anew.
func (c *Cache) dropBrokenKept(ctx context.Context) error {
	out, err := c.git("for-each-ref", "--format=%(refname)", keptRefs).run(ctx)
	if err != nil {
		return err
	}
	for ref := range strings.Lines(string(out)) {
		ref = strings.TrimSpace(ref)
		_, err := c.git("rev-list", "--objects", "--quiet", ref, "--not", "--glob="+heads+"*").run(ctx)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := c.git("update-ref", "-d", ref).run(ctx); err != nil {
			return err
		}
	}
	return nil
}
