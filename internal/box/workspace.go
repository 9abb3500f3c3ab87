package box

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/box/worktree"
)

// workspace is an attempt's checkout and the cache of its repository. Base and
// Resume are kept on disk, for a process that finds the checkout later.
type workspace struct {
	cache    *worktree.Cache
	checkout *worktree.Checkout
	Work     string `json:"work"`             // folder that it and the cache are in
	Base     string `json:"base"`             // commit the work starts from
	Resume   string `json:"resume,omitempty"` // the same, when it is saved work of an earlier attempt
	Branch   string `json:"branch,omitempty"` // commit of the attempt's branch then, if it was there
}

// cachePath is the cache of the attempt's repository.
func (a *attempt) cachePath() string {
	name := sha256.Sum256([]byte(a.start.CloneURL))
	return filepath.Join(a.root, "cache", hex.EncodeToString(name[:12]))
}

func (a *attempt) workspacePath() string { return filepath.Join(a.dir, "checkout.json") }

func (a *attempt) identity() worktree.Identity {
	return worktree.Identity{Name: a.start.CommitName, Email: a.start.CommitEmail}
}

// prepare makes the checkout: of the commit that the start names, of what an
// earlier attempt has pushed to the branch, or of where the work begins.
func (b *box) prepare(ctx context.Context, a *attempt) (*workspace, error) {
	cache, err := worktree.Open(ctx, a.cachePath())
	if err != nil {
		return nil, err
	}
	w := &workspace{cache: cache, Work: a.root}
	if err := b.fetch(ctx, a, cache); err != nil {
		return nil, err
	}
	if err := b.locate(ctx, a, w); err != nil {
		return nil, err
	}
	if w.checkout, err = cache.Checkout(ctx, a.taskPath(), a.start.Branch, w.Base, a.identity()); err != nil {
		return nil, err
	}
	a.workspace = w
	return w, writeJSON(a.workspacePath(), w)
}

// fetchTries is how often a run's repository is asked for, with pauses that
// double: about a quarter of a minute in all.
const fetchTries = 5

// fetch brings the cache up to date. What may be better a moment later is tried
// again: a control plane that restarts is no reason to give the run up.
func (b *box) fetch(ctx context.Context, a *attempt, cache *worktree.Cache) error {
	for n := 1; ; n++ {
		err := cache.Fetch(ctx, a.start.CloneURL, a.start.GitToken)
		if err == nil || n == fetchTries || errors.Is(err, worktree.ErrAuth) || errors.Is(err, exec.ErrNotFound) || noSpace(err) || ctx.Err() != nil {
			return err
		}
		a.log.Warn("fetch failed, trying again", "error", err)
		sleep(ctx, b.cfg.Timing.Retry<<(n-1))
	}
}

// locate finds the commit to check out.
func (b *box) locate(ctx context.Context, a *attempt, w *workspace) (err error) {
	s := a.start
	switch {
	case s.Checkout != "":
		w.Base, err = w.cache.Resolve(ctx, s.Checkout)
		return err
	case s.Branch != "":
		if w.Branch, err = w.cache.Resolve(ctx, s.Branch); err != nil && !errors.Is(err, worktree.ErrNoRev) {
			return err
		}
		if w.Resume, err = b.saved(ctx, a, w.cache, w.Branch); err != nil {
			return err
		}
		if w.Resume == "" {
			w.Resume = w.Branch
		}
		if w.Base = w.Resume; w.Base != "" {
			return nil
		}
	}
	from := s.Base
	if from == "" {
		from = s.DefaultRef
	}
	w.Base, err = w.cache.Resolve(ctx, from)
	return err
}

// saved is the work that the box before this one has saved, waiting a little
// for one that is still at it; empty if there is none that goes on from the
// branch, or from the default branch when there is none.
func (b *box) saved(ctx context.Context, a *attempt, cache *worktree.Cache, branch string) (string, error) {
	s := a.start
	if s.Saved == "" {
		return "", nil
	}
	late := time.Now().Add(time.Duration(s.SavedMS) * time.Millisecond)
	for {
		sha, err := cache.FetchRef(ctx, s.CloneURL, s.GitToken, s.Saved)
		switch {
		case err == nil:
			old, err := cache.Resolve(ctx, s.DefaultRef)
			if err != nil || cache.Ancestor(ctx, sha, old) || branch != "" && (sha == branch || !cache.Ancestor(ctx, branch, sha)) {
				return "", err
			}
			return sha, nil
		case !errors.Is(err, worktree.ErrNoRev):
			a.log.Warn("saved work not found", "error", err) // it is a gain, not a need
			return "", ctx.Err()
		case ctx.Err() != nil || !time.Now().Before(late):
			return "", ctx.Err()
		}
		sleep(ctx, min(b.cfg.Timing.Retry, time.Until(late)))
	}
}

// whereabouts finds the work folder of an attempt that an earlier process has
// left: that process may have kept what agents use elsewhere.
func (a *attempt) whereabouts(dataDir string) {
	var w workspace
	if err := readJSON(a.workspacePath(), &w); err != nil {
		return // it has no checkout
	}
	for _, root := range []string{w.Work, a.root, dataDir} {
		work := attemptDir(root, a.start.Run, a.start.Attempt)
		if info, err := os.Lstat(filepath.Join(work, "task")); root != "" && err == nil && info.IsDir() {
			a.root, a.work = root, work
			return
		}
	}
}

// reopen takes over the checkout that an earlier process has left; nil if there
// is none worth it. The checkout is moved to the place of a fresh one of the
// same commit, which is all that collecting relies on.
func (b *box) reopen(a *attempt) *workspace {
	w := &workspace{}
	if err := readJSON(a.workspacePath(), w); err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			a.log.Warn("checkout not found again", "error", err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(a.killed, b.cfg.Timing.Wrap)
	defer cancel()
	err := func() (err error) {
		if w.cache, err = worktree.Open(ctx, a.cachePath()); err != nil {
			return err
		}
		place := a.taskPath() + ".found"
		if err := worktree.RemoveTree(place); err != nil {
			return err
		}
		if w.checkout, err = w.cache.Checkout(ctx, place, a.start.Branch, w.Base, a.identity()); err != nil {
			return err
		}
		if err := worktree.RemoveTree(place); err != nil {
			return err
		}
		return os.Rename(a.taskPath(), place)
	}()
	if err != nil {
		a.log.Warn("checkout not taken over", "error", err)
		return nil
	}
	a.workspace = w
	return w
}

// readOnly is what the checkout needs to see besides itself.
func (w *workspace) readOnly() []string { return []string{w.cache.Objects()} }

// collect takes what the agent did into the cache.
func (w *workspace) collect(ctx context.Context, a *attempt, unfinished bool, done *work) error {
	subject := strings.Join(strings.Fields(a.start.Title), " ")
	if subject == "" {
		subject = "Changes that the agent did not commit"
	}
	if unfinished {
		subject = "Work in progress"
	}
	r, err := w.checkout.Collect(ctx, subject+"\n\nTask: "+a.start.Task+"\nRun: "+a.start.Run+"\n")
	if err != nil {
		return err
	}
	if r.Damage != "" || len(r.Skipped) > 0 {
		a.log.Warn("work collected in part", "damage", r.Damage, "skipped", r.Skipped)
	}
	done.tip, done.paths = r.Tip, r.Paths[:min(len(r.Paths), pathsListed)]
	done.something = r.Commits > 0 || w.Resume != ""
	return nil
}

// push makes ref the commit tip. A branch that the agent has rewritten is
// replaced if it still is what the attempt began with, and nothing else.
func (w *workspace) push(ctx context.Context, a *attempt, tip, ref string) error {
	err := w.cache.Push(ctx, a.start.CloneURL, a.start.GitToken, tip, ref, false)
	if !refused(err) || w.Branch == "" || ref != a.branchRef() {
		return err
	}
	if err := w.cache.Fetch(ctx, a.start.CloneURL, a.start.GitToken); err != nil {
		return err
	}
	if now, found := w.cache.Resolve(ctx, a.start.Branch); found != nil || now != w.Branch {
		return err
	}
	return w.cache.Push(ctx, a.start.CloneURL, a.start.GitToken, tip, ref, true)
}

func (a *attempt) branchRef() string { return "refs/heads/" + a.start.Branch }

// refused tells whether trying a push again would be of no use.
func refused(err error) bool {
	var p *worktree.PushError
	return errors.As(err, &p) && p.Rejected || errors.Is(err, worktree.ErrAuth)
}
