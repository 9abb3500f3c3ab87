package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"yardmaster/internal/lazy"
)

// heads is the prefix of the remote's branches in a cache and in a checkout, tags that
// of its tags.
const (
	heads = "refs/remotes/origin/"
	tags  = "refs/tags/"
)

// Cache is a trusted bare repository that only the box writes. Several runs and
// processes may use it at the same time. Nothing in it is pruned while checkouts
// borrow from it.
type Cache struct {
	dir string
	// Authorities is a file with the certificate authorities that git trusts; empty:
	// those that its library knows.
	Authorities string
}

// Identity is the author and committer of the box's and the agent's commits.
type Identity struct{ Name, Email string }

func (id Identity) env() []string {
	return []string{
		"GIT_AUTHOR_NAME=" + id.Name, "GIT_AUTHOR_EMAIL=" + id.Email,
		"GIT_COMMITTER_NAME=" + id.Name, "GIT_COMMITTER_EMAIL=" + id.Email,
	}
}

// Save writes the identity to a configuration file of git, unless there is one. Git finds
// it there in each repository that an agent makes.
func (id Identity) Save(file string) error {
	quote := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, s)
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("worktree: %w", err)
	}
	_, err = fmt.Fprintf(f, "[user]\n\tname = %s\n\temail = %s\n", quote(id.Name), quote(id.Email))
	return errors.Join(err, f.Close())
}

// Open opens the cache in dir, an absolute path. It creates the cache if it is
// missing or incomplete. The first time in a process it removes the locks that were left
// by others.
func Open(ctx context.Context, dir string) (*Cache, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("worktree: %q is not an absolute path", dir)
	}
	if strings.Contains(dir, "\n") {
		return nil, errors.New("worktree: the cache's path has a line break") // the list of alternates has a path on each line
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
		if _, before := opened.LoadOrStore(dir, true); before {
			return c, nil
		}
		if err := c.clear(); err != nil {
			opened.Delete(dir)
			return nil, fmt.Errorf("worktree: %w", err)
		}
		return c, nil
	}
	// Git writes HEAD early, so the cache is made beside dir and moved: it is
	// complete or absent.
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

// Objects returns the folder from which checkouts borrow objects. A sandbox must
// show it, read-only, at its own path.
func (c *Cache) Objects() string { return filepath.Join(c.dir, "objects") }

// git returns a command on the cache.
func (c *Cache) git(args ...string) command {
	return command{gitDir: c.dir, alive: c.aliveFile(), args: args}
}

// Fetch updates all branches and tags from the repository at url, and removes those
// that were deleted there. The token, which may be empty, is the password of HTTP basic
// authentication. Errors are those of GitError.
func (c *Cache) Fetch(ctx context.Context, url, token string) error {
	cmd, err := remote(url, token, c.Authorities)
	if err != nil {
		return err
	}
	release, err := lock(ctx, c.lockFile())
	if err != nil {
		return err
	}
	defer release()
	cmd.gitDir, cmd.alive = c.dir, c.aliveFile()
	cmd.args = []string{
		"fetch", "-q", "--no-tags", "--no-write-fetch-head", "--prune", "--end-of-options",
		url, "+refs/heads/*:" + heads + "*", "+" + tags + "*:" + tags + "*",
	}
	var named map[string]string
	if !c.knowsRemote() {
		if named, err = cmd.namedRefs(ctx, url); err != nil {
			return err
		}
	}
	refetch := filepath.Join(c.dir, refetchFile)
	_, lost := os.Lstat(refetch)
	if lost == nil {
		cmd.args = append([]string{"fetch", "--refetch"}, cmd.args[1:]...)
	}
	if _, err = cmd.run(ctx); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errors.Join(err, c.tidy())
	}
	if err != nil {
		return err
	}
	if len(named) > 0 {
		if err := c.adopt(named); err != nil {
			return err
		}
	}
	if lost == nil {
		if err := errors.Join(c.dropBrokenKept(ctx), os.Remove(refetch)); err != nil {
			return err
		}
	}
	return c.packRefs(ctx)
}

// tidy deletes the incomplete files that git leaves on a full disk, which would
// fill it further. It does nothing while a checkout is collected into the cache.
// The caller holds the cache's lock.
func (c *Cache) tidy() error {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	release, err := lock(done, c.writersFile())
	if err != nil {
		return nil // the next fetch tidies up
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

// writersFile is the lock file of all who write into the cache without its lock.
func (c *Cache) writersFile() string { return c.dir + ".writers" }

// FetchRef fetches one ref, given by its full name, from the repository at url and
// returns its commit. It returns ErrNoRev if there is no such ref.
func (c *Cache) FetchRef(ctx context.Context, url, token, ref string) (sha string, err error) {
	cmd, err := remote(url, token, c.Authorities)
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
	cmd.gitDir, cmd.alive, cmd.args = c.dir, c.aliveFile(), []string{"ls-remote", "-q", "--end-of-options", url, ref}
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

// Ancestor tells whether the commit a is b or an ancestor of b.
func (c *Cache) Ancestor(ctx context.Context, a, b string) bool {
	_, err := c.git("merge-base", "--is-ancestor", "--end-of-options", a, b).run(ctx)
	return err == nil
}

var objectName = lazy.New(`^[0-9a-f]{4,64}$`)

// Resolve returns the commit of rev, a branch of the remote or the name of a
// commit; a branch takes precedence. It returns ErrNoRev if there is neither.
func (c *Cache) Resolve(ctx context.Context, rev string) (sha string, err error) {
	tries := []string{heads + rev}
	if objectName.MatchString(rev) {
		tries = append(tries, rev)
	}
	for _, r := range tries {
		sha, err = c.git("rev-parse", "-q", "--verify", "--end-of-options", r+"^{commit}").line(ctx)
		if err == nil && (r != rev || strings.HasPrefix(sha, rev)) { // a tag may be called like a commit
			return sha, nil
		}
		if ctx.Err() != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNoRev, rev)
}

// Object returns the name of what a commit has at a path, a file or a folder, or of all of it
// if the path is empty; "" if there is nothing.
func (c *Cache) Object(ctx context.Context, sha, path string) (string, error) {
	name, err := c.git("rev-parse", "-q", "--verify", "--end-of-options", sha+":"+path).line(ctx)
	if err != nil && ctx.Err() == nil {
		if _, known := c.Resolve(ctx, sha); known == nil {
			return "", nil
		}
	}
	return name, err
}

// Changed lists the paths that differ between two commits, sorted. A renamed file
// counts as two paths.
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

// fields splits git's output that is terminated by NUL bytes.
func fields(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimSuffix(out, []byte{0})), "\x00")
}

// PushError is a push that failed.
type PushError struct {
	Rejected bool   // the remote refused the update: not a fast-forward, a protected ref, or a credential without the right
	Output   string // output of git and the remote, without the token
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

// Push sets ref, a full name, of the repository at url to the commit sha. Without
// force it only makes a new ref or a fast-forward. A failure of git is a
// *PushError.
func (c *Cache) Push(ctx context.Context, url, token, sha, ref string, force bool) error {
	cmd, err := remote(url, token, c.Authorities)
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
	cmd.gitDir, cmd.alive = c.dir, c.aliveFile()
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
