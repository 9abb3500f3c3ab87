package box_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/protocol"
)

// upstream adds a commit to the served repository.
func (p *plane) upstream(text string) {
	p.t.Helper()
	work := p.t.TempDir()
	git(p.t, "", "clone", "-q", p.repo, work)
	if err := os.WriteFile(filepath.Join(work, "UP"), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	git(p.t, work, "add", "UP")
	git(p.t, work, "commit", "-q", "-m", text)
	git(p.t, work, "push", "-q", "origin", "main")
}

// TestDamagedCacheHeals holds that what a power cut does to the cache of a repository costs
// no run: not those that begin later, nor the work of one that goes on.
func TestDamagedCacheHeals(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	p.start(cfg)
	work := func(script string) string {
		return p.task(func(s *protocol.Start) { s.Agent, s.Command = "command", []string{"/bin/sh", "-ec", script} })
	}
	if _, f := p.finish(work("echo 1 >a")); f.State != protocol.Succeeded {
		t.Fatalf("finished %+v", f)
	}
	caches, err := filepath.Glob(filepath.Join(cfg.DataDir, "cache", "*", "HEAD"))
	if err != nil || len(caches) != 1 {
		t.Fatal(caches, err)
	}
	cache := filepath.Dir(caches[0])
	git(t, p.repo, "update-ref", "-d", "refs/heads/svc/t--12345678")
	p.upstream("one")
	lock := filepath.Join(cache, "refs/remotes/origin/main.lock")
	if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o755), os.WriteFile(lock, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, f := p.finish(work("cat UP; echo 2 >a")); f.State != protocol.Succeeded || f.Output != "one" || p.show(f.Tip, "a") != "2" {
		t.Errorf("after a lock: %+v", f)
	}
	git(t, p.repo, "update-ref", "-d", "refs/heads/svc/t--12345678")
	p.upstream("two")
	emptyObjects(t, cache)
	run := work("cat UP; echo 3 >a; echo worked; until [ -e .git/go ]; do sleep 0.05; done")
	p.saying(run, "worked")
	emptyObjects(t, cache)
	var checkouts []string
	for _, pattern := range []string{"*/task", "*/*/task", "*/*/*/task"} {
		found, err := filepath.Glob(filepath.Join(cfg.DataDir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		checkouts = append(checkouts, found...)
	}
	if len(checkouts) != 1 {
		t.Fatal(checkouts)
	}
	if err := os.WriteFile(filepath.Join(checkouts[0], ".git/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, f := p.finish(run); f.State != protocol.Succeeded || f.Output != "twoworked" || p.show(f.Tip, "a") != "3" {
		t.Errorf("after empty objects: %+v", f)
	}
}

// emptyObjects leaves of all objects of a cache what a power cut may leave: nothing.
func emptyObjects(t *testing.T, cache string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(cache, "objects"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			_ = os.Chmod(path, 0o644)
			err = os.WriteFile(path, nil, 0o644)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamagedCacheOfASubmoduleHeals holds that the cache that is damaged is the one that is
// repaired, and that a box which cannot says whose it is.
func TestDamagedCacheOfASubmoduleHeals(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	lib := filepath.Join(filepath.Dir(p.repo), "lib.git")
	git(t, "", "clone", "-q", "--bare", p.repo, lib)
	commit := git(t, lib, "rev-parse", "main")
	work := t.TempDir()
	git(t, "", "clone", "-q", p.repo, work)
	git(t, work, "config", "-f", ".gitmodules", "submodule.lib.path", "lib")
	git(t, work, "config", "-f", ".gitmodules", "submodule.lib.url", "../lib.git")
	git(t, work, "add", ".gitmodules")
	git(t, work, "update-index", "--add", "--cacheinfo", "160000,"+commit+",lib")
	git(t, work, "commit", "-q", "-m", "lib")
	git(t, work, "push", "-q", "origin", "main")
	cfg := p.config()
	p.start(cfg)
	var repo string
	check := func() protocol.Finished {
		_, f := p.finish(p.task(func(s *protocol.Start) {
			repo = s.Repo
			s.Kind, s.Agent, s.Branch, s.Command = "ci", "command", "", []string{"cat", "lib/README"}
			known := []protocol.Module{{Key: "host/o/lib", CloneURL: p.http.URL + "/git/lib.git"}}
			s.Submodules = &protocol.Submodules{Key: "host/o/demo", Known: known}
		}))
		return f
	}
	whole := func(what string) {
		t.Helper()
		if f := check(); f.State != protocol.Succeeded || f.Output != "demo" {
			t.Errorf("%s: finished %+v", what, f)
		}
	}
	whole("at first")
	caches, err := filepath.Glob(filepath.Join(cfg.DataDir, "cache", "*", "HEAD"))
	if err != nil || len(caches) != 2 {
		t.Fatal(caches, err)
	}
	cache := filepath.Dir(caches[0])
	if refs := git(t, cache, "for-each-ref", "--contains", commit); strings.Contains(refs, git(t, p.repo, "rev-parse", "main")) {
		cache = filepath.Dir(caches[1])
	}
	lock := filepath.Join(cache, "refs/remotes/origin/main.lock")
	locked := func(make func() error) {
		git(t, lib, "update-ref", "refs/heads/main", git(t, lib, "commit-tree", "-p", "main", "-m", "more", "main^{tree}"))
		if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o755), make()); err != nil {
			t.Fatal(err)
		}
	}
	locked(func() error { return os.WriteFile(lock, nil, 0o644) })
	whole("after a lock")
	emptyObjects(t, cache)
	whole("after empty objects")
	locked(func() error { return os.MkdirAll(filepath.Join(lock, "in the way"), 0o755) })
	if f := check(); f.State != protocol.Failed || f.Kind != "checkout_failed" {
		t.Fatalf("finished %+v", f)
	}
	p.until("the box says so", func() bool { return p.presence != nil && len(p.presence.UnfitFor) > 0 })
	p.change(func() {
		if why := p.presence.UnfitFor[repo]; !strings.Contains(why, "the cache of a submodule of the repository") {
			t.Errorf("unfit: %s", why)
		}
	})
}

// TestCacheThatStaysDamaged holds that a box whose cache cannot be repaired says so of the
// repository, and not of itself.
func TestCacheThatStaysDamaged(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	p.start(cfg)
	var repo string
	check := func() string {
		return p.task(func(s *protocol.Start) {
			repo = s.Repo
			s.Kind, s.Agent, s.Branch, s.Command = "ci", "command", "", []string{"true"}
		})
	}
	if _, f := p.finish(check()); f.State != protocol.Succeeded {
		t.Fatalf("finished %+v", f)
	}
	p.upstream("one")
	caches, err := filepath.Glob(filepath.Join(cfg.DataDir, "cache", "*", "HEAD"))
	if err != nil || len(caches) != 1 {
		t.Fatal(caches, err)
	}
	lock := filepath.Join(filepath.Dir(caches[0]), "refs/remotes/origin/main.lock")
	if err := os.MkdirAll(filepath.Join(lock, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, f := p.finish(check()); f.State != protocol.Failed || f.Kind != "checkout_failed" {
		t.Errorf("finished %+v", f)
	}
	p.until("the box says so", func() bool { return p.presence != nil && len(p.presence.UnfitFor) > 0 })
	p.change(func() {
		if why := p.presence.UnfitFor[repo]; !strings.Contains(why, "damaged") || p.presence.Unfit != "" || p.presence.State != "ready" {
			t.Errorf("presence %+v", p.presence)
		}
	})
	if err := os.RemoveAll(lock); err != nil {
		t.Fatal(err)
	}
	if _, f := p.finish(check()); f.State != protocol.Succeeded {
		t.Errorf("finished %+v", f)
	}
	p.until("the box takes work of it again", func() bool { return len(p.presence.UnfitFor) == 0 })
}
