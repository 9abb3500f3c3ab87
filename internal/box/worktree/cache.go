package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// heads is where the remote's branches are in a cache and in a checkout.
const heads = "refs/remotes/origin/"

// Cache is a trusted bare repository that only the box writes. Several runs and
// several processes may use it at the same time; nothing in it is ever pruned
// while checkouts borrow from it.
type Cache struct{ dir string }

// Identity is the author and committer of the box's and the agent's commits.
type Identity struct{ Name, Email string }

func (id Identity) env() []string {
	return []string{"GIT_AUTHOR_NAME=" + id.Name, "GIT_AUTHOR_EMAIL=" + id.Email, "GIT_COMMITTER_NAME=" + id.Name, "GIT_COMMITTER_EMAIL=" + id.Email}
}

// Open opens the cache in dir, an absolute path, and creates it if it is
// missing or was left half made.
func Open(ctx context.Context, dir string) (*Cache, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("worktree: %q is not an absolute path", dir)
	}
	if strings.Contains(dir, "\n") {
		return nil, errors.New("worktree: the cache's path has a line break") // a list of alternates cannot hold it
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("worktree: %w", err)
	}
	c := &Cache{dir: dir}
	release, err := lock(ctx, c.lockFile())
	if err != nil {
		return nil, err
	}
	defer release()
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return c, nil
	}
	// Git writes HEAD early: make it aside and move it, so that a cache is whole or absent.
	fresh := dir + ".new"
	if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(dir)); err != nil {
		return nil, fmt.Errorf("worktree: %w", err)
	}
	if _, err := (command{args: []string{"init", "-q", "--bare", "--template=", "--initial-branch=none", fresh}}).run(ctx); err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return nil, fmt.Errorf("worktree: %w", err)
	}
	return c, nil
}

func (c *Cache) lockFile() string { return c.dir + ".lock" }

// Objects is the folder from which checkouts borrow: a sandbox must show it,
// read-only, at its own path.
func (c *Cache) Objects() string { return filepath.Join(c.dir, "objects") }

// git is a command on the cache.
func (c *Cache) git(args ...string) command { return command{gitDir: c.dir, args: args} }

// Fetch brings all branches of the repository at url up to date, and forgets
// those that are gone there. The token, which may be empty, is the password of
// HTTP basic authentication.
func (c *Cache) Fetch(ctx context.Context, url, token string) error {
	cmd, err := remote(url, token)
	if err != nil {
		return err
	}
	release, err := lock(ctx, c.lockFile())
	if err != nil {
		return err
	}
	defer release()
	cmd.gitDir = c.dir
	cmd.args = []string{"fetch", "-q", "--no-tags", "--no-write-fetch-head", "--prune", "--end-of-options", url, "+refs/heads/*:" + heads + "*"}
	if _, err = cmd.run(ctx); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = errors.Join(err, c.tidy())
	}
	return err
}

// tidy deletes what git has left half written, which it does when the disk is
// full: it would stay so. The caller holds the cache's lock. While something is
// collected into the cache it is let be.
func (c *Cache) tidy() error {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	release, err := lock(done, c.writersFile())
	if err != nil {
		return nil // the next one does it
	}
	defer release()
	for _, pattern := range []string{"??/tmp_obj_*", "pack/tmp_*"} {
		left, globErr := filepath.Glob(filepath.Join(c.Objects(), pattern))
		err = errors.Join(err, globErr)
		for _, name := range left {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// writersFile is locked by all who write into the cache without its lock.
func (c *Cache) writersFile() string { return c.dir + ".writers" }

// FetchRef brings in one ref, by its full name, of the repository at url, and
// gives its commit, or ErrNoRev if the ref is not there.
func (c *Cache) FetchRef(ctx context.Context, url, token, ref string) (sha string, err error) {
	cmd, err := remote(url, token)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(ref, "refs/") {
		return "", fmt.Errorf("worktree: %q is not a full ref name", ref)
	}
	release, err := lock(ctx, c.lockFile())
	if err != nil {
		return "", err
	}
	defer release()
	cmd.gitDir, cmd.args = c.dir, []string{"ls-remote", "-q", "--end-of-options", url, ref}
	out, err := cmd.run(ctx)
	if err != nil {
		return "", err
	}
	sha, name, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
	if name != ref {
		return "", fmt.Errorf("%w: %s", ErrNoRev, ref)
	}
	cmd.args = []string{"fetch", "-q", "--no-tags", "--no-write-fetch-head", "--end-of-options", url, ref}
	if _, err := cmd.run(ctx); err != nil {
		return "", err
	}
	return c.Resolve(ctx, sha)
}

// Ancestor tells whether the commit a is b or comes before it.
func (c *Cache) Ancestor(ctx context.Context, a, b string) bool {
	_, err := c.git("merge-base", "--is-ancestor", "--end-of-options", a, b).run(ctx)
	return err == nil
}

var objectName = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

// Resolve gives the commit that rev, a branch of the remote or the name of a
// commit, stands for, or ErrNoRev. A branch comes first.
func (c *Cache) Resolve(ctx context.Context, rev string) (sha string, err error) {
	tries := []string{heads + rev}
	if objectName.MatchString(rev) {
		tries = append(tries, rev)
	}
	for _, r := range tries {
		sha, err = c.git("rev-parse", "-q", "--verify", "--end-of-options", r+"^{commit}").line(ctx)
		if err == nil {
			return sha, nil
		}
		if ctx.Err() != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNoRev, rev)
}

// Changed lists the paths that differ between two commits, sorted. A renamed
// file is two paths.
func (c *Cache) Changed(ctx context.Context, from, to string) ([]string, error) {
	for _, rev := range []string{from, to} {
		if _, err := c.Resolve(ctx, rev); err != nil {
			return nil, err
		}
	}
	out, err := c.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--end-of-options", from, to).run(ctx)
	if err != nil {
		return nil, err
	}
	return fields(out), nil
}

// fields splits what git ends with NUL.
func fields(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimSuffix(out, []byte{0})), "\x00")
}

// PushError is a push that failed.
type PushError struct {
	Rejected bool   // the remote was reached and refused the update: not a fast-forward, protected, not this credential's
	Output   string // what git and the remote said, without the token
	err      error
}

func (e *PushError) Error() string {
	what := "worktree: the push failed: "
	if e.Rejected {
		what = "worktree: the push was rejected: "
	}
	return what + e.Output
}

func (e *PushError) Unwrap() error { return e.err }

// Push makes ref, a full name, of the repository at url the commit sha. Without
// force only a fast-forward or a new ref is made. Errors of git are *PushError.
func (c *Cache) Push(ctx context.Context, url, token, sha, ref string, force bool) error {
	cmd, err := remote(url, token)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(ref, "refs/") {
		return fmt.Errorf("worktree: %q is not a full ref name", ref)
	}
	if sha, err = c.Resolve(ctx, sha); err != nil {
		return err
	}
	spec := sha + ":" + ref
	if force {
		spec = "+" + spec
	}
	cmd.gitDir = c.dir
	cmd.args = []string{"push", "--porcelain", "--no-verify", "--end-of-options", url, spec}
	out, err := cmd.run(ctx)
	if err == nil {
		return nil
	}
	pe := &PushError{Output: err.Error(), err: err}
	var ge *GitError
	if errors.As(err, &ge) {
		pe.Output = ge.Output
	}
	for line := range strings.Lines(string(out)) {
		if reason, ok := strings.CutPrefix(line, "!\t"); ok {
			pe.Rejected = true
			pe.Output = strings.TrimSpace(reason) + "\n" + pe.Output
		}
	}
	return pe
}
