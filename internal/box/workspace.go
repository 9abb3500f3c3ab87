package box

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/box/worktree"
	"yardmaster/internal/protocol"
)

// workspace is an attempt's checkout and the cache of its repository. The exported
// fields are kept on disk, for a later process that takes the checkout over.
type workspace struct {
	cache    *worktree.Cache
	checkout *worktree.Checkout
	Work     string `json:"work"`             // folder that contains the checkout and the cache
	Base     string `json:"base"`             // commit from which the work starts
	Resume   string `json:"resume,omitempty"` // the same commit, if it is saved work of an earlier attempt
	Branch   string `json:"branch,omitempty"` // commit of the attempt's branch at that time, if it existed
	lacks    []protocol.Lack
	modules  []submodule
}

// cachePath is the folder of the cache of the attempt's repository.
func (a *attempt) cachePath() string { return a.cacheOf(a.start.CloneURL) }

// cacheOf is the folder of the cache of a repository, by its address.
func (a *attempt) cacheOf(cloneURL string) string {
	name := sha256.Sum256([]byte(cloneURL))
	return filepath.Join(a.root, "cache", hex.EncodeToString(name[:12]))
}

func (a *attempt) workspacePath() string { return filepath.Join(a.dir, "checkout.json") }

func (a *attempt) identity() worktree.Identity {
	return worktree.Identity{Name: a.start.CommitName, Email: a.start.CommitEmail}
}

// mostHeals is how often a run has the cache of its repository repaired: the first time the
// locks of dead processes may have been in the way, and no more.
const mostHeals = 2

// prepare makes the checkout, see prepareOnce. A cache that a power cut has left damaged is
// repaired; if that does not help, the box does not take work of the repository for a while.
func (b *box) prepare(ctx context.Context, a *attempt) (w *workspace, err error) {
	for n := 0; ; n++ {
		w, err = b.prepareOnce(ctx, a)
		if err == nil {
			b.unfitFor.clear(a.start.Repo)
		}
		if !worktree.Broken(err) || ctx.Err() != nil {
			return w, err
		}
		if n == mostHeals {
			what := "the repository"
			if a.damaged(err) != a.cachePath() {
				what = "a submodule of the repository"
			}
			b.unfitFor.note(a.start.Repo, "the cache of "+what+" on this box is damaged, and was not repaired: "+firstLine(plain(err)))
			nudge(b.beat)
			return w, err
		}
		a.log.Warn("the cache is damaged and is repaired", "error", err)
		cache, opened := worktree.Open(ctx, a.damaged(err))
		if opened == nil {
			opened = cache.Heal(ctx, err)
		}
		if opened != nil {
			a.log.Warn("the cache was not repaired", "error", opened)
		}
		if err := worktree.RemoveTree(a.taskPath()); err != nil {
			return w, err
		}
	}
}

// damaged is the folder of the cache that an error is of: the repository's or a submodule's.
func (a *attempt) damaged(err error) string {
	var of *cacheError
	if errors.As(err, &of) {
		return a.cacheOf(of.cloneURL)
	}
	return a.cachePath()
}

// prepareOnce makes the checkout: of the commit that the start names, of the work that
// an earlier attempt has pushed or left in the cache, or of the base.
func (b *box) prepareOnce(ctx context.Context, a *attempt) (*workspace, error) {
	cache, err := worktree.Open(ctx, a.cachePath())
	if err != nil {
		return nil, err
	}
	cache.Authorities = b.setup.authorities
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
	if err := b.complete(ctx, a, w); err != nil {
		return nil, errors.Join(err, w.remove())
	}
	a.workspace = w
	return w, writeJSON(a.workspacePath(), w)
}

// fetchTries is how often a run's repository is fetched, with pauses that double:
// about 15 s in all.
const fetchTries = 5

// fetch brings the cache up to date.
func (b *box) fetch(ctx context.Context, a *attempt, cache *worktree.Cache) error {
	return b.insist(ctx, a, func() error { return cache.Fetch(ctx, a.start.CloneURL, a.start.GitToken) })
}

// insist repeats a fetch whose failure may pass: a restart of the control plane must not
// end the run.
func (b *box) insist(ctx context.Context, a *attempt, fetch func() error) error {
	for n := 1; ; n++ {
		err := fetch()
		final := errors.Is(err, worktree.ErrAuth) || errors.Is(err, worktree.ErrNoRev) || errors.Is(err, exec.ErrNotFound) ||
			noSpace(err) || worktree.Broken(err)
		if err == nil || n == fetchTries || final || ctx.Err() != nil {
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
		if w.Base, err = w.cache.Resolve(ctx, s.Checkout); s.CheckoutRef == "" || !errors.Is(err, worktree.ErrNoRev) {
			return err
		}
		// No branch has it. The ref may have moved on; what counts is the commit.
		if err := b.insist(ctx, a, func() error {
			_, err := w.cache.FetchRef(ctx, s.CloneURL, s.GitToken, s.CheckoutRef)
			return err
		}); err != nil {
			return err
		}
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
			if w.Resume, err = w.cache.Kept(ctx, s.Branch, w.Branch); err != nil && !errors.Is(err, worktree.ErrNoRev) {
				return err
			}
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

// saved returns the commit that the previous box has saved, and waits up to SavedMS
// for a box that is still saving. It returns "" if no saved commit continues the
// branch, or the default branch if there is no branch.
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
			a.log.Warn("saved work not found", "error", err) // the run can do without the saved work
			return "", ctx.Err()
		case ctx.Err() != nil || !time.Now().Before(late):
			return "", ctx.Err()
		}
		sleep(ctx, min(b.cfg.Timing.Retry, time.Until(late)))
	}
}

// findWorkFolder finds the work folder of an attempt of an earlier process, which may
// have used another one.
func (a *attempt) findWorkFolder(dataDir string) {
	var w workspace
	if err := readJSON(a.workspacePath(), &w); err != nil {
		return // the attempt has no checkout
	}
	for _, root := range []string{w.Work, a.root, dataDir} {
		work := attemptDir(root, a.start.Run, a.start.Attempt)
		if info, err := os.Lstat(filepath.Join(work, "task")); root != "" && err == nil && info.IsDir() {
			a.root, a.work = root, work
			return
		}
	}
}

// reopen takes over the checkout of an earlier process; nil if there is no usable
// one. It moves the checkout into the place of a fresh one of the same commit, which
// is all that collecting relies on.
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
		w.cache.Authorities = b.setup.authorities
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
		w.checkout.LFS = a.start.LFS
		return os.Rename(a.taskPath(), place)
	}()
	if err != nil {
		a.log.Warn("checkout not taken over", "error", err)
		return nil
	}
	a.workspace = w
	return w
}

// readOnly lists the folders that the checkout needs besides itself.
func (w *workspace) readOnly() []string {
	var all []string
	add := func(c *worktree.Cache) {
		for _, dir := range []string{c.Objects(), c.LFSObjects()} {
			if dir != "" && !slices.Contains(all, dir) {
				all = append(all, dir)
			}
		}
	}
	add(w.cache)
	for _, s := range w.modules {
		add(s.cache)
	}
	return all
}

// remove deletes the checkout, and lets the caches forget it.
func (w *workspace) remove() error {
	for _, s := range w.modules {
		if err := s.checkout.Remove(); err != nil {
			return err
		}
	}
	return w.checkout.Remove()
}

// collect takes the agent's work into the cache.
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
	r.Skipped = append(r.Skipped, w.strayed(ctx, r.Tip)...)
	done.left, done.leftMore = leftOut(r, a.start.Branch)
	if len(done.left) > 0 {
		a.log.Warn("work collected in part", "damage", r.Damage, "skipped", r.Skipped, "apart", r.Apart)
	}
	done.tip, done.paths = r.Tip, r.Paths[:min(len(r.Paths), pathsListed)]
	done.something = r.Commits > 0 || w.Resume != ""
	return nil
}

// leftOut lists what the agent has made and its work does not have, and how much more
// there is.
func leftOut(r worktree.Result, branch string) (list []protocol.LeftOut, more int) {
	add := func(kind, name, why string) {
		if len(list) == protocol.MaxLeft {
			more++
			return
		}
		list = append(list, protocol.LeftOut{
			Kind: protocol.LeftKind(kind), Name: keepStart(name, protocol.MaxLeftBytes), Why: keepStart(why, protocol.MaxLeftBytes),
		})
	}
	if r.Damage != "" {
		add(protocol.LeftBranch, branch, "the agent's commits could not be taken, its files were: "+r.Damage)
	}
	for _, apart := range r.Apart {
		add(protocol.LeftBranch, apart.Branch, apart.String())
	}
	for _, s := range r.Skipped {
		kind := protocol.LeftFile
		if s.Reason == worktree.Repository {
			kind = protocol.LeftRepository
		}
		add(kind, s.Path, s.Reason)
	}
	return list, more
}

// push makes ref point to the commit tip. It replaces a branch that the agent has
// rewritten only if the branch is still what the attempt began with.
func (w *workspace) push(ctx context.Context, a *attempt, tip, ref string) error {
	if err := w.pushObjects(ctx, a, tip); err != nil {
		return err
	}
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

// keep has the cache keep the work until it is pushed: for as long as the branch stays
// where this attempt found it.
func (w *workspace) keep(ctx context.Context, a *attempt, tip string) error {
	return w.cache.Keep(ctx, a.start.Branch, tip, w.Branch)
}

// unkeep forgets the work that was kept.
func (w *workspace) unkeep(ctx context.Context, a *attempt) error {
	return w.cache.Unkeep(ctx, a.start.Branch)
}

// refused tells whether a repeated push would fail as well.
func refused(err error) bool { return rejected(err) || errors.Is(err, worktree.ErrAuth) }

// rejected tells whether the repository does not take the commits themselves.
func rejected(err error) bool {
	var p *worktree.PushError
	return errors.As(err, &p) && p.Rejected
}
