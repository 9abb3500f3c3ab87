package box

import (
	"context"
	"errors"
	"fmt"
	"path"

	"yardmaster/internal/box/worktree"
	"yardmaster/internal/gitmodules"
	"yardmaster/internal/protocol"
)

// submodule is a checkout inside that of an attempt.
type submodule struct {
	path     string // in the checkout of the attempt
	at       protocol.Module
	commit   string
	checkout *worktree.Checkout
	cache    *worktree.Cache
}

// modules fetches the submodules of an attempt, one by one, each from the repository that
// the control plane has named for its key. An address in .gitmodules is never followed.
type modules struct {
	b      *box
	a      *attempt
	w      *workspace
	known  map[string]protocol.Module
	caches map[string]*worktree.Cache // fetched, by address
	failed map[string]string          // why a repository cannot be had, by address
}

// addModules puts the submodules of a fresh checkout into it, and notes those that cannot be
// had, whose folders stay empty.
func (b *box) addModules(ctx context.Context, a *attempt, w *workspace) error {
	m := &modules{
		b: b, a: a, w: w, known: map[string]protocol.Module{}, caches: map[string]*worktree.Cache{}, failed: map[string]string{},
	}
	for _, k := range a.start.Submodules.Known {
		m.known[k.Key] = k
	}
	root := protocol.Module{Key: a.start.Submodules.Key, CloneURL: a.start.CloneURL}
	return m.add(ctx, submodule{at: root, commit: w.Base, checkout: w.checkout, cache: w.cache}, 1)
}

// cacheError is what came of the cache of one repository, which may be that of a submodule.
type cacheError struct {
	cloneURL string
	error
}

func (e *cacheError) Unwrap() error { return e.error }

// inCacheOf notes of an error of git from which cache it came.
func inCacheOf(repo protocol.Module, err error) error {
	if err == nil {
		return nil
	}
	return &cacheError{repo.CloneURL, err}
}

// add puts the submodules of a checkout into it.
func (m *modules) add(ctx context.Context, super submodule, depth int) error {
	if !super.checkout.NamesModules() { // most runs, which need not ask git
		return nil
	}
	links, err := super.cache.Gitlinks(ctx, super.commit)
	if err != nil {
		return inCacheOf(super.at, err)
	}
	for _, l := range links {
		at := path.Join(super.path, l.Path)
		lacks := func(why string) {
			m.w.lack([]worktree.Skipped{{Path: at, Reason: why}}, fmt.Sprintf("a submodule of %.100q: ", l.URL))
		}
		repo, ok := m.known[gitmodules.Of(super.at.Key, l.URL)]
		switch {
		case m.a.start.Submodules.Why != "":
			lacks(m.a.start.Submodules.Why)
			continue
		case !ok:
			lacks("that is no repository of the account that .gitmodules of the default branch names")
			continue
		case depth > gitmodules.Deepest:
			lacks(fmt.Sprintf("submodules are nested %d times at most", gitmodules.Deepest))
			continue
		case len(m.w.modules) == gitmodules.Most:
			lacks(fmt.Sprintf("a checkout has %d submodules at most", gitmodules.Most))
			continue
		}
		s := submodule{path: at, at: repo, commit: l.Commit}
		why, err := m.check(ctx, super, l, &s)
		if err != nil {
			return inCacheOf(repo, err)
		}
		if why != "" {
			lacks(why)
			continue
		}
		m.w.modules = append(m.w.modules, s)
		if err := m.add(ctx, s, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// check makes the checkout of a submodule; why says why there is none.
func (m *modules) check(ctx context.Context, super submodule, l worktree.Gitlink, s *submodule) (why string, err error) {
	if s.cache, why, err = m.fetch(ctx, s.at); err != nil || why != "" {
		return why, err
	}
	if !s.cache.Has(ctx, l.Commit) {
		err := m.b.insist(ctx, m.a, func() error { return s.cache.FetchCommit(ctx, s.at.CloneURL, m.a.start.GitToken, l.Commit) })
		if ends(ctx, err) {
			return "", err
		}
		if err != nil || !s.cache.Has(ctx, l.Commit) {
			return fmt.Sprintf("its repository does not have the commit %.12s", l.Commit), nil
		}
	}
	dir, err := super.checkout.Folder(l.Path)
	if err != nil {
		return err.Error(), nil
	}
	if s.checkout, err = s.cache.Checkout(ctx, dir, "", l.Commit, m.a.identity()); err != nil {
		return "", err
	}
	if m.a.start.LFS {
		s.checkout.LFS = true
		err = m.b.insist(ctx, m.a, func() error {
			lacking, err := s.checkout.FillObjects(ctx, worktree.Remote{URL: s.at.CloneURL, Token: m.a.start.GitToken})
			for _, f := range lacking {
				f.Path = path.Join(s.path, f.Path)
				m.w.lack([]worktree.Skipped{f}, pointerOf)
			}
			return err
		})
	}
	return "", err
}

// fetch brings the cache of a repository up to date, once for an attempt.
func (m *modules) fetch(ctx context.Context, from protocol.Module) (c *worktree.Cache, why string, err error) {
	if c, ok := m.caches[from.CloneURL]; ok {
		return c, m.failed[from.CloneURL], nil
	}
	if c, err = worktree.Open(ctx, m.a.cacheOf(from.CloneURL)); err != nil {
		return nil, "", err
	}
	c.Authorities = m.b.setup.authorities
	err = m.b.insist(ctx, m.a, func() error { return c.Fetch(ctx, from.CloneURL, m.a.start.GitToken) })
	if ends(ctx, err) {
		return nil, "", err
	}
	m.caches[from.CloneURL] = c
	if err != nil {
		m.a.log.Warn("submodule not fetched", "repository", from.Key, "error", err)
		m.failed[from.CloneURL] = "its repository cannot be read now"
	}
	return c, m.failed[from.CloneURL], nil
}

// ends tells whether a failure of a submodule is one of the attempt: of the box, whose cache
// may be damaged, or because the attempt ends.
func ends(ctx context.Context, err error) bool {
	var git *worktree.GitError
	return err != nil && (ctx.Err() != nil || noSpace(err) || worktree.Broken(err) ||
		!errors.As(err, &git) && !errors.Is(err, worktree.ErrNoRev))
}

// strayed names the work in submodules that is not handed in, and commits that a clone of the
// work would not find.
func (w *workspace) strayed(ctx context.Context, tip string) (all []worktree.Skipped) {
	links, err := w.cache.Gitlinks(ctx, tip)
	if err != nil {
		return nil
	}
	linked := map[string]string{}
	for _, l := range links {
		linked[l.Path] = l.Commit
	}
	for _, s := range w.modules {
		r, err := s.checkout.Collect(ctx, "Work in a submodule")
		switch now := linked[s.path]; {
		case now != "" && now != s.commit && !s.cache.AtRemote(ctx, now):
			all = append(all, worktree.Skipped{Path: s.path,
				Reason: fmt.Sprintf("its commit %.12s is not in the repository of the submodule: a clone will not find it", now)})
		case err == nil && r.Commits > 0 && r.Tip != now:
			all = append(all, worktree.Skipped{Path: s.path, Reason: "work inside of a submodule is not handed in: it is another repository's"})
		}
	}
	return all
}
