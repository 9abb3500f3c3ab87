package builtin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/codehost"
)

const megabyte = 1 << 20

// noise is bytes that git cannot compress.
func noise(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return string(b)
}

func (s *site) size(t *testing.T) int64 {
	t.Helper()
	n, err := s.Size(shop)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The bytes of a deleted branch are given back once they are old enough and nobody pushes;
// those of every branch that is there stay, and so does what a client has just stored.
func TestDeletedBranchGivesItsBytesBack(t *testing.T) {
	t.Parallel()
	s, ctx, now := newSite(t, ""), t.Context(), time.Now()
	w := start(t, s, shop)
	w.branch("kept", "main", "kept", "kept", noise(megabyte))
	w.branch("topic", "main", "big", "big", noise(3*megabyte))
	w.git("push", "-q", "origin", "kept:refs/wip/r/1", ":topic", ":kept")
	full := s.size(t)
	if full < 4*megabyte {
		t.Fatalf("%d bytes before", full)
	}
	if err := s.Maintain(ctx, shop, now); err != nil {
		t.Fatal(err)
	}
	if n := s.size(t); n < 4*megabyte {
		t.Errorf("what was stored a moment ago is gone: %d bytes", n)
	}
	inFlight, err := s.openToWrite(ctx, shop)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.maintain(ctx, shop, now, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := s.size(t); n < 4*megabyte {
		t.Errorf("objects were removed while somebody pushes: %d bytes", n)
	}
	inFlight.done()
	if err := s.Maintain(ctx, shop, now.Add(pruneGrace+time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := s.size(t); n < megabyte || n > 2*megabyte {
		t.Errorf("%d bytes are left, not about one megabyte", n)
	}
	if _, _, err := s.ReadFile(ctx, shop, w.git("rev-parse", "kept"), "kept"); err != nil {
		t.Errorf("what refs/wip keeps: %v", err)
	}
	w.git("--git-dir="+s.path(shop), "fsck", "--full", "--strict")
}

// While objects are removed, whoever moves a ref waits.
func TestWritersWaitForTheRemoval(t *testing.T) {
	t.Parallel()
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	sha := w.git("rev-parse", "main")
	dir, err := s.open(shop)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := lockRefs(ctx, dir, syscall.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockRefs(ctx, dir, syscall.LOCK_SH|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("the lock is shared with who removes: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- s.PutBranch(ctx, shop, codehost.QueuePrefix+"main", sha) }()
	select {
	case err := <-done:
		t.Errorf("a branch moved while objects are removed: %v", err)
	default:
	}
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Pushes of what was just deleted, beside the removal of it, leave a whole repository.
func TestPushesBesideTheRemoval(t *testing.T) {
	t.Parallel()
	s, ctx, now := newSite(t, ""), t.Context(), time.Now()
	w := start(t, s, shop)
	s.allow("ann", shop, codehost.Access{Read: true, Push: []string{"refs/heads/*"}})
	const pushers, rounds = 3, 4
	var clones []work
	for i := range pushers {
		c := work{t, t.TempDir()}
		c.git("clone", "-q", s.remote("ann", shop), ".")
		c.git("checkout", "-q", "-b", fmt.Sprint("b", i))
		c.commit("one", "file", noise(1000))
		clones = append(clones, c)
	}
	var all sync.WaitGroup
	failed := make(chan string, pushers*rounds)
	for i, c := range clones {
		all.Go(func() {
			ref := fmt.Sprint("b", i)
			for range rounds {
				for _, what := range []string{ref, ":" + ref, ref} {
					if out, err := client(c.dir, "push", "-q", "origin", what).CombinedOutput(); err != nil {
						failed <- string(out)
						return
					}
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for over := false; !over; {
		if err := s.maintain(ctx, shop, now, now.Add(time.Hour)); err != nil {
			t.Error(err)
		}
		select {
		case <-ended:
			over = true
		default:
		}
	}
	close(failed)
	for out := range failed {
		t.Error(out)
	}
	w.git("--git-dir="+s.path(shop), "fsck", "--full", "--strict")
	for i := range clones {
		if _, err := s.Head(ctx, shop, fmt.Sprint("b", i)); err != nil {
			t.Error(err)
		}
	}
}
