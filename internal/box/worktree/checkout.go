package worktree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
)

// CheckoutError reports a checkout that could not be made or collected.
type CheckoutError struct {
	Dir string
	Err error
}

func (e *CheckoutError) Error() string { return "worktree: checkout " + e.Dir + ": " + e.Err.Error() }
func (e *CheckoutError) Unwrap() error { return e.Err }

// Checkout is a task's working copy. Nothing in it is trusted once an agent has
// used it.
type Checkout struct {
	// Frugal makes Collect leave out all new files that are not committed if they
	// are very many, because they may have filled the disk.
	Frugal bool
	// LFS makes Collect hold files of Git LFS to pointers.
	LFS bool

	cache  *Cache
	dir    string
	branch string // empty when detached
	base   string
	id     Identity
	refs   string // prefix of the refs that keep this checkout's commits in the cache
}

// Dir returns the folder of the checkout.
func (w *Checkout) Dir() string { return w.dir }

// Checkout makes a working copy of the commit sha in dir, which must be absent or
// empty, on a new branch, or detached if branch is empty. The copy borrows the
// cache's objects, see Objects, and has the remote's tags and, under origin, its
// branches, but no remote. It returns ErrNoRev for an unknown commit, and a *CheckoutError for other
// failures.
func (c *Cache) Checkout(ctx context.Context, dir, branch, sha string, id Identity) (*Checkout, error) {
	base, err := c.Resolve(ctx, sha)
	if err != nil {
		return nil, err
	}
	w := &Checkout{cache: c, dir: dir, branch: branch, base: base, id: id, refs: "refs/box/" + rand.Text() + "/"}
	if err := w.create(ctx); err != nil {
		return nil, &CheckoutError{Dir: dir, Err: err}
	}
	return w, nil
}

func (w *Checkout) create(ctx context.Context) error {
	if !filepath.IsAbs(w.dir) {
		return errors.New("not an absolute path")
	}
	if entries, err := os.ReadDir(w.dir); err == nil && len(entries) > 0 {
		return errors.New("the folder is not empty")
	}
	if _, err := (command{args: []string{"init", "-q", "--template=", "--initial-branch=none", "--", w.dir}}).run(ctx); err != nil {
		return err
	}
	dot := filepath.Join(w.dir, ".git")
	git := func(args ...string) command {
		return command{gitDir: dot, dir: w.dir, args: args}
	}
	alternates := filepath.Join(dot, "objects", "info", "alternates")
	err := errors.Join(os.MkdirAll(filepath.Dir(alternates), 0o755), os.WriteFile(alternates, []byte(w.cache.Objects()+"\n"), 0o644))
	if err != nil {
		return err
	}
	refs, err := w.cache.packedRefs(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dot, "packed-refs"), refs, 0o644); err != nil {
		return err
	}
	steps := []command{
		git("config", "user.name", w.id.Name),
		git("config", "user.email", w.id.Email),
		git("config", "core.autocrlf", "false"), // as the box has it, whatever the machine's own configuration says
		git("checkout", "-q", "--detach", w.base),
	}
	if w.branch != "" {
		steps[len(steps)-1] = git("checkout", "-q", "--no-track", "-b", w.branch, w.base)
	}
	for _, s := range steps {
		if _, err := s.run(ctx); err != nil {
			return err
		}
	}
	return w.keep(ctx, "base", w.base)
}

// keep makes a ref to a commit in the cache, so that the commit stays as long as
// the checkout.
func (w *Checkout) keep(ctx context.Context, name, sha string) error {
	_, err := w.cache.git("update-ref", w.refs+name, sha).run(ctx)
	return err
}

// Remove deletes the checkout. The collected commits stay in the cache until it is
// pruned.
func (w *Checkout) Remove() error {
	ctx := context.Background()
	out, err := w.cache.git("for-each-ref", "--format=delete %(refname)", w.refs).run(ctx)
	if err == nil {
		c := w.cache.git("update-ref", "--stdin")
		c.stdin = bytes.NewReader(out)
		_, err = c.run(ctx)
	}
	if err != nil {
		return &CheckoutError{Dir: w.dir, Err: err}
	}
	if err := RemoveTree(w.dir); err != nil {
		return &CheckoutError{Dir: w.dir, Err: err}
	}
	return nil
}
