package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"yardmaster/internal/proof/executable"
)

func TestFetchResolveChanged(t *testing.T) {
	h := newHost(t)
	c := fetched(t, h)
	ctx := t.Context()
	first, err := c.Resolve(ctx, "main")
	if err != nil || first != git(t, h.bare, "rev-parse", "main") {
		t.Fatalf("%s %v", first, err)
	}
	for _, rev := range []string{first, first[:10], "old"} {
		if sha, err := c.Resolve(ctx, rev); sha != first || err != nil {
			t.Errorf("%s: %s %v", rev, sha, err)
		}
	}
	for _, rev := range []string{"", "nope", strings.Repeat("0", 40), "--help", "main~5", "HEAD", "../main"} {
		if sha, err := c.Resolve(ctx, rev); !errors.Is(err, ErrNoRev) {
			t.Errorf("%q: %s %v", rev, sha, err)
		}
	}
	// The host moves on; a branch that is gone there goes here.
	other := filepath.Join(t.TempDir(), "other")
	git(t, "/", "clone", "-q", h.bare, other)
	write(t, other, map[string]string{"späť \"x\".txt": "new\n", "README.md": "changed\n"})
	git(t, other, "add", "-A")
	git(t, other, "commit", "-q", "-m", "second")
	git(t, other, "push", "-q", "origin", "main", ":old")
	if err := c.Fetch(ctx, h.url, token); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(ctx, "old"); !errors.Is(err, ErrNoRev) {
		t.Error(err)
	}
	paths, err := c.Changed(ctx, first, "main")
	if err == nil {
		t.Error("a branch name is not a commit for Changed, it answered", paths)
	}
	second, _ := c.Resolve(ctx, "main")
	paths, err = c.Changed(ctx, first, second)
	if err != nil || !slices.Equal(paths, []string{"README.md", "späť \"x\".txt"}) {
		t.Errorf("%q %v", paths, err)
	}
	if _, err := c.Changed(ctx, first, strings.Repeat("1", 40)); !errors.Is(err, ErrNoRev) {
		t.Error(err)
	}
}

func TestTokenStaysSecret(t *testing.T) {
	h := newHost(t)
	c := fetched(t, h)
	// Everything that git was given, but for the token, is on disk or in arguments.
	err := filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if b, _ := os.ReadFile(path); strings.Contains(string(b), token) {
				t.Errorf("%s holds the token", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// A git that tells what it was given.
	bin, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	script := "#!/bin/sh\n{ printf '%s\\n' \"$@\"; env; cat /proc/$$/cmdline /proc/$$/environ; } >>" + seen +
		"\necho \"fatal: Authentication failed, said $(cat <&3)\" >&2\nexit 128\n"
	if err := executable.Write(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("BOX_SECRET", "of-the-box")
	err = c.Fetch(t.Context(), h.url, token)
	if !errors.Is(err, ErrAuth) || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "password=[redacted]") {
		t.Errorf("%v", err)
	}
	b, err := os.ReadFile(seen)
	if err != nil || len(b) == 0 {
		t.Fatal(err)
	}
	for _, secret := range []string{token, "of-the-box"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("git's arguments or environment hold %q", secret)
		}
	}
}

func TestRefusedCredentials(t *testing.T) {
	h := newHost(t)
	c := fetched(t, h)
	for _, tok := range []string{"wrong-token", ""} {
		h.requests.Store(0)
		err := c.Fetch(t.Context(), h.url, tok)
		var ge *GitError
		if !errors.Is(err, ErrAuth) || !errors.As(err, &ge) || ge.Command != "fetch" || h.requests.Load() > 3 {
			t.Errorf("%q: %v after %d requests", tok, err, h.requests.Load())
		}
	}
	for _, url := range []string{"ext::sh -c true", "file:///etc", "/etc", "--upload-pack=true", "ssh://h/x", "http://u:p@127.0.0.1/x"} {
		if err := c.Fetch(t.Context(), url, token); err == nil || strings.Contains(err.Error(), "p@") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := c.Fetch(t.Context(), h.url+"/none", token); !errors.Is(err, ErrMissing) || errors.Is(err, ErrAuth) {
		t.Errorf("of a repository that there is not: %v", err)
	}
	// A redirect to another host gets no credential, though it would take this one.
	bait := newHost(t)
	h.redirect = strings.TrimSuffix(bait.url, "/repo.git")
	if err := c.Fetch(t.Context(), h.url, token); !errors.Is(err, ErrAuth) || bait.requests.Load() == 0 {
		t.Errorf("%v after %d requests", err, bait.requests.Load())
	}
}

func TestPush(t *testing.T) {
	h := newHost(t)
	c := fetched(t, h)
	ctx := t.Context()
	w := checkout(t, c)
	write(t, w.dir, map[string]string{"new": "1\n"})
	one, err := w.Collect(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	const ref = "refs/heads/svc/x--01234567"
	if err := c.Push(ctx, h.url, token, one.Tip, ref, false); err != nil {
		t.Fatal(err)
	}
	if got := git(t, h.bare, "rev-parse", ref); got != one.Tip {
		t.Errorf("the host has %s", got)
	}
	write(t, w.dir, map[string]string{"new": "2\n"})
	two, err := w.Collect(ctx, "two")
	if err != nil {
		t.Fatal(err)
	}
	var pe *PushError
	err = c.Push(ctx, h.url, token, two.Tip, ref, false) // beside one, not after it
	if !errors.As(err, &pe) || !pe.Rejected || !strings.Contains(pe.Output, "non-fast-forward") &&
		!strings.Contains(pe.Output, "fetch first") {
		t.Errorf("%v", err)
	}
	if err := c.Push(ctx, h.url, token, two.Tip, ref, true); err != nil {
		t.Error(err)
	}
	err = c.Push(ctx, h.url, "wrong-token", two.Tip, ref, true)
	if !errors.As(err, &pe) || pe.Rejected || !errors.Is(err, ErrAuth) {
		t.Errorf("%v", err)
	}
	hook := filepath.Join(h.bare, "hooks", "pre-receive")
	if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o755), executable.Write(hook,
		[]byte("#!/bin/sh\necho not on fridays >&2\nexit 1\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	err = c.Push(ctx, h.url, token, one.Tip, ref, true)
	if !errors.As(err, &pe) || !pe.Rejected || !strings.Contains(pe.Output, "not on fridays") {
		t.Errorf("%v", err)
	}
	if err := c.Push(ctx, h.url, token, strings.Repeat("0", 40), ref, false); !errors.Is(err, ErrNoRev) {
		t.Error(err)
	}
	if err := c.Push(ctx, h.url, token, one.Tip, "main", false); err == nil {
		t.Error("pushed to a short name")
	}
}

func TestRunsShareACache(t *testing.T) {
	h := newHost(t)
	dir := filepath.Join(t.TempDir(), "deep", "cache.git")
	if err := os.MkdirAll(filepath.Join(dir, "refs"), 0o755); err != nil { // a box died while it made the cache
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	tips := make([]string, 6)
	for i := range tips {
		wg.Go(func() {
			c, err := Open(t.Context(), dir)
			if err == nil {
				err = c.Fetch(t.Context(), h.url, token)
			}
			var w *Checkout
			if err == nil {
				w, err = c.Checkout(t.Context(), filepath.Join(filepath.Dir(dir), "w", string(rune('a'+i))), "b", "main", agentID)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(w.dir, "f"), []byte{byte('a' + i)}, 0o644)
			}
			var r Result
			if err == nil {
				r, err = w.Collect(t.Context(), "m")
			}
			if err != nil {
				t.Error(err)
			}
			tips[i] = r.Tip
		})
	}
	wg.Wait()
	slices.Sort(tips)
	if n := len(slices.Compact(tips)); n != 6 {
		t.Errorf("%d different results", n)
	}
}

func TestLockWaitsAndGivesUp(t *testing.T) {
	h := newHost(t)
	c := fetched(t, h)
	release, err := lock(t.Context(), c.lockFile())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Fetch(ctx, h.url, token) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release()
	if err := c.Fetch(t.Context(), h.url, token); err != nil {
		t.Error(err)
	}
}

func TestFullDiskIsSaid(t *testing.T) {
	c := fetched(t, newHost(t))
	w := checkout(t, c)
	write(t, w.dir, map[string]string{"new": "1\n"})
	path := os.Getenv("PATH")
	for _, said := range []string{"error: unable to write file: No space left on device",
		"fatal: sha1 file 'index.lock' write error. Out of diskspace"} {
		bin := t.TempDir()
		script := "#!/bin/sh\ncat >&2 <<'X'\n" + said + "\nX\nexit 128\n"
		if err := executable.Write(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+path)
		var ce *CheckoutError
		if _, err := w.Collect(t.Context(), "m"); !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &ce) || ce.Dir != w.dir {
			t.Errorf("%s: %v", said, err)
		}
	}
}
