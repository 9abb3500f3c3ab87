package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"yardmaster/internal/lazy"
)

// Result describes the work in a checkout, which is in the cache now.
type Result struct {
	Base    string    // the commit from which the checkout was made
	Tip     string    // the newest commit; equal to Base if there is no work
	Commits int       // number of commits of Tip that Base does not have
	Dirty   bool      // Tip is the box's own commit, of uncommitted files
	Paths   []string  // changed from Base to Tip
	Skipped []Skipped // files that were left out
	Apart   []Apart   // commits of the agent that Tip does not have
	Damage  string    // why the agent's own commits could not be taken, although its files were; empty: they were taken
}

// Skipped is a path whose file on disk is not in Tip.
type Skipped struct{ Path, Reason string }

// Repository is the reason of a Skipped that is a repository of its own.
const Repository = "a repository of its own"

// Apart is a branch with commits of the agent that Tip does not have.
type Apart struct {
	Branch  string // "stash" for changes that were put aside
	SHA     string
	Commits int
	Subject string // of the newest
	Damage  string // why they could not be taken; empty: the cache keeps them, see ForgetKept
}

// Collect takes the agent's commits into the cache and, as one more commit with the
// given message, its uncommitted files. It leaves out files that the repository's
// .gitignore excludes, large ones and special ones. The agent's processes must have
// ended, because a file that changes meanwhile may be taken in part.
//
// Collect takes the commit that is checked out, or the agent's branch if that is
// ahead and no file was changed; if neither has anything new, the branch of the agent
// that has all that is new. It keeps the commits of other branches in the cache, and
// names them. If the agent's repository is damaged or forged, Collect takes only the
// files, on top of the base. An error is a *CheckoutError.
func (w *Checkout) Collect(ctx context.Context, message string) (Result, error) {
	release, err := lockAs(ctx, w.cache.writersFile(), syscall.LOCK_SH)
	if err != nil {
		return Result{}, &CheckoutError{Dir: w.dir, Err: err}
	}
	defer release()
	r, err := w.collect(ctx, message)
	if err != nil {
		return Result{}, &CheckoutError{Dir: w.dir, Err: err}
	}
	return r, nil
}

func (w *Checkout) collect(ctx context.Context, message string) (Result, error) {
	r := Result{Base: w.base}
	if st, err := os.Lstat(w.dir); err != nil {
		return r, err
	} else if !st.IsDir() {
		return r, errors.New("the folder was replaced")
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return r, err
	}
	defer root.Close()
	scratch, err := os.MkdirTemp(filepath.Dir(w.cache.dir), ".collect-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(scratch)

	took, err := w.takeCommits(ctx, root, filepath.Join(scratch, "quarantine"))
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return r, err
		}
		took, r.Damage = commits{head: w.base}, err.Error()
	}
	var noPointers []Skipped
	if took.head, took.branch, noPointers, err = w.point(ctx, root, scratch, took.head, took.branch); err != nil {
		return r, err
	}
	head := took.head
	tree, skipped, err := w.snapshot(ctx, root, scratch, head)
	if err != nil {
		return r, err
	}
	r.Tip, r.Skipped = head, append(skipped, noPointers...)
	if tree != "" {
		c := w.cache.git("commit-tree", tree, "-p", head, "-F", "-")
		c.env, c.stdin = w.id.env(), strings.NewReader(message)
		if r.Tip, err = c.line(ctx); err != nil {
			return r, err
		}
		r.Dirty = true
	} else if r.Tip, err = w.tip(ctx, took); err != nil {
		return r, err
	}
	if err := w.keep(ctx, "tip", r.Tip); err != nil {
		return r, err
	}
	if r.Apart, err = w.apart(ctx, took, r.Tip); err != nil {
		return r, err
	}
	n, err := w.cache.git("rev-list", "--count", r.Tip, "--not", w.base).line(ctx)
	if err != nil {
		return r, err
	}
	if r.Commits, err = strconv.Atoi(n); err != nil {
		return r, fmt.Errorf("git rev-list --count: %w", err)
	}
	r.Paths, err = w.cache.Changed(ctx, w.base, r.Tip)
	return r, err
}

// openRepo opens the agent's repository. It never blocks, not even on a pipe.
func openRepo(root *os.Root) (*os.Root, error) {
	if st, err := root.Lstat(".git"); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, errors.New("the .git folder was replaced")
	}
	return root.OpenRoot(".git")
}

// take fetches one commit from the quarantine. Git checks each object and that none
// is missing, as for a push from an unknown user.
func (w *Checkout) take(ctx context.Context, quarantine, name, sha string) error {
	if _, err := (command{gitDir: quarantine, args: []string{"update-ref", "refs/heads/" + name, sha}}).run(ctx); err != nil {
		return err
	}
	c := w.cache.git("fetch", "-q", "--no-tags", "--no-write-fetch-head", quarantine, "+refs/heads/"+name+":"+w.refs+name)
	c.protocol, c.config = "file", []string{"fetch.fsckObjects=true"}
	if _, err := c.run(ctx); err != nil {
		return err
	}
	// A tree that contains itself many times has too many files to list.
	_, err := w.cache.git("ls-tree", "-r", "-z", "--name-only", w.refs+name).run(ctx)
	return err
}

// maxRefFile limits HEAD, a ref and packed-refs, in bytes.
const maxRefFile = 16 << 20

// readFile reads a regular file. It never blocks, not even on a pipe.
func readFile(root *os.Root, name string) ([]byte, error) {
	f, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRefFile+1))
	if err == nil && len(b) > maxRefFile {
		err = fmt.Errorf("%s is too large", name)
	}
	return b, err
}

func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", name), err)
	}
	return f, nil
}

var fullName = lazy.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

func readHead(repo *os.Root) (string, error) {
	b, err := readFile(repo, "HEAD")
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if ref, ok := strings.CutPrefix(text, "ref:"); ok {
		return readRef(repo, strings.TrimSpace(ref))
	}
	if !fullName.MatchString(text) {
		return "", errors.New("HEAD names no commit")
	}
	return text, nil
}

// readRef reads the commit of a branch, from its own file or from packed-refs.
func readRef(repo *os.Root, ref string) (string, error) {
	if !strings.HasPrefix(ref, "refs/heads/") || !filepath.IsLocal(ref) {
		return "", fmt.Errorf("%.100q is not a branch", ref)
	}
	if b, err := readFile(repo, ref); err == nil {
		if sha := strings.TrimSpace(string(b)); fullName.MatchString(sha) {
			return sha, nil
		}
		return "", fmt.Errorf("%s names no commit", ref)
	}
	packed, err := readFile(repo, "packed-refs")
	if err != nil {
		return "", fmt.Errorf("%s does not exist", ref)
	}
	for line := range bytes.Lines(packed) {
		sha, name, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if name == ref && fullName.MatchString(sha) {
			return sha, nil
		}
	}
	return "", fmt.Errorf("%s does not exist", ref)
}

var (
	fanout = lazy.New(`^[0-9a-f]{2}$`)
	loose  = lazy.New(`^[0-9a-f]{38}([0-9a-f]{24})?$`)
	pack   = lazy.New(`^pack-[0-9a-f]+\.pack$`)
)

// copyObjects copies objects as data: loose ones unchanged, packs through git,
// which makes their index itself. It copies no links, no alternates and nothing
// else.
func copyObjects(ctx context.Context, repo *os.Root, quarantine string) error {
	names, err := list(repo, "objects")
	if err != nil {
		return err
	}
	for _, dir := range names {
		if !fanout.MatchString(dir) {
			continue
		}
		files, err := list(repo, filepath.Join("objects", dir))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(quarantine, "objects", dir), 0o755); err != nil {
			return err
		}
		for _, file := range files {
			if !loose.MatchString(file) {
				continue
			}
			if err := copyFile(repo, filepath.Join("objects", dir, file), quarantine); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	packs, err := list(repo, "objects/pack")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, file := range packs {
		if !pack.MatchString(file) {
			continue
		}
		f, err := openRegular(repo, filepath.Join("objects/pack", file))
		if err != nil {
			return err
		}
		_, err = (command{gitDir: quarantine, stdin: f, args: []string{"index-pack", "--stdin", "--fix-thin"}}).run(ctx)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func list(root *os.Root, dir string) ([]string, error) {
	if st, err := root.Lstat(dir); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func copyFile(from *os.Root, name, to string) error {
	src, err := openRegular(from, name)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(filepath.Join(to, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
