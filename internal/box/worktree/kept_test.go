package worktree

import (
	"errors"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestKept holds that work is found again as long as its branch is where it was, and
// until it is forgotten.
func TestKept(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	c := fetched(t, h)
	ctx := t.Context()
	main, err := c.Resolve(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	w := checkout(t, c)
	write(t, w.dir, map[string]string{"new": "1\n"})
	one := collect(t, w).Tip
	kept := func(branch, at, want string) {
		t.Helper()
		got, err := c.Kept(ctx, branch, at)
		if got != want || (want == "") != errors.Is(err, ErrNoRev) {
			t.Errorf("kept of %s at %q: %q, %v, want %q", branch, at, got, err, want)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	kept("svc/x", "", "")
	do(c.Keep(ctx, "svc/x", one, ""))
	do(c.Keep(ctx, "svc/x/y", one, main)) // a name that is a folder of another
	kept("svc/x", "", one)
	kept("svc/x", main, "")
	kept("svc/x/y", main, one)
	do(c.Keep(ctx, "svc/x", one, main))
	kept("svc/x", "", "")
	kept("svc/x", main, one)
	do(w.Remove())
	do(c.Fetch(ctx, h.url, token)) // prunes what the remote does not have
	kept("svc/x", main, one)
	do(c.Unkeep(ctx, "svc/x"))
	do(c.Unkeep(ctx, "svc/x"))
	kept("svc/x", main, "")
	kept("svc/x/y", main, one)
}

// TestForgetKept holds that what was kept long ago is forgotten, and nothing else, however
// often it was kept.
func TestForgetKept(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	c := fetched(t, h)
	ctx := t.Context()
	main, err := c.Resolve(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	keep := func(branch, at string) {
		t.Helper()
		if err := c.Keep(ctx, branch, main, at); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	age := func(branch, at string) {
		t.Helper()
		if err := os.Chtimes(c.refFile(keptAt(branch, at)), time.Time{}, now.Add(-31*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	keep("svc/old", "")
	keep("svc/again", main)
	keep("svc/new", "")
	age("svc/old", "")
	age("svc/again", main)
	keep("svc/again", main) // the same work
	before := now.Add(-30 * 24 * time.Hour)
	for i, want := range []int{1, 0} {
		if n, err := c.ForgetKept(ctx, before); err != nil || n != want {
			t.Errorf("pass %d: %d forgotten, %v", i, n, err)
		}
	}
	for branch, at := range map[string]string{"svc/again": main, "svc/new": ""} {
		if _, err := c.Kept(ctx, branch, at); err != nil {
			t.Errorf("%s: %v", branch, err)
		}
	}
	if _, err := c.Kept(ctx, "svc/old", ""); !errors.Is(err, ErrNoRev) {
		t.Errorf("the old one is kept: %v", err)
	}
}

// TestHostThatDoesNotAnswer tells a remote that has no answer now from one that refuses.
func TestHostThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	c := fetched(t, h)
	main, err := c.Resolve(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	const ref = "refs/heads/svc/x--01234567"
	for status, busy := range map[int]bool{
		http.StatusServiceUnavailable: true, http.StatusBadGateway: true, http.StatusTooManyRequests: true,
		http.StatusNotFound: false, http.StatusForbidden: false, http.StatusBadRequest: false,
	} {
		h.fail.Store(int64(status))
		if err := c.Push(t.Context(), h.url, token, main, ref, false); errors.Is(err, ErrBusy) != busy {
			t.Errorf("a push that is answered with %d: %v", status, err)
		}
		if err := c.Fetch(t.Context(), h.url, token); errors.Is(err, ErrBusy) != busy {
			t.Errorf("a fetch that is answered with %d: %v", status, err)
		}
	}
	h.fail.Store(0)
	if err := c.Push(t.Context(), "http://127.0.0.1:1/repo.git", token, main, ref, false); !errors.Is(err, ErrBusy) {
		t.Errorf("a push to nobody: %v", err)
	}
	if err := c.Push(t.Context(), h.url, "wrong-token", main, ref, false); errors.Is(err, ErrBusy) {
		t.Errorf("a refused token: %v", err)
	}
}
