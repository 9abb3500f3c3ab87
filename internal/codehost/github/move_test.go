package github

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

// TestMoveBranch holds that a branch moves forward from the commit that it is said to be
// at, once, and in no other case.
func TestMoveBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	from := w.repo.Head("main")
	w.repo.Push(w.bob, "work", from)
	to := w.repo.Commit(w.bob, "work", "a", map[string]string{"a.txt": "a\n"})
	move := func(branch, from, to string) error { return w.host.MoveBranch(ctx, w.shop, branch, from, to) }

	wants(t, "a commit that the branch would lose", move("main", from, w.repo.Amend(w.bob, "aside", "work", "b", nil)), nil)
	w.repo.Push(w.ann, "main", from)
	apart := w.repo.Commit(w.bob, "apart", "apart", map[string]string{"b.txt": "b\n"})
	w.repo.Push(w.ann, "main", to)
	wants(t, "to a commit beside", move("main", to, apart), codehost.ErrHeadMoved)
	wants(t, "back", move("main", to, from), codehost.ErrHeadMoved)
	wants(t, "from where it was", move("main", from, apart), codehost.ErrHeadMoved)
	wants(t, "no branch", move("gone", from, to), codehost.ErrNotFound)
	wants(t, "no commit", move("main", to, strings.Repeat("1", 40)), codehost.ErrNotFound)
	if w.repo.Head("main") != to {
		t.Fatalf("main is at %s", w.repo.Head("main"))
	}
	if err := move("main", from, to); err != nil {
		t.Errorf("it is there: %v", err)
	}

	next := w.repo.Commit(w.bob, "work", "c", map[string]string{"c.txt": "c\n"})
	w.lose("git-receive-pack")
	err := move("main", to, next)
	for range 2 { // git may have asked once more by itself
		if err != nil {
			as[*codehost.BusyError](t, "a lost answer", err)
			err = move("main", to, next)
		}
	}
	if err != nil {
		t.Error(err)
	}
	if w.repo.Head("main") != next {
		t.Errorf("main is at %s", w.repo.Head("main"))
	}

	w.repo.Rules(w.ann, peer.Ruleset{Checks: []peer.Required{{Name: "build"}}})
	last := w.repo.Commit(w.bob, "work", "d", map[string]string{"d.txt": "d\n"})
	blocked := as[*codehost.BlockedError](t, "a rule", move("main", next, last))
	if len(blocked.Missing) == 0 || w.repo.Head("main") != next {
		t.Errorf("it lacks %q, main is at %s", blocked.Missing, w.repo.Head("main"))
	}
}

// TestMovesAreCompared holds that a commit which somebody pushes after the branch was
// read is not lost, whether GitHub has shown the refs to the push by then or not: GitHub
// compares the commit when it moves the ref.
func TestMovesAreCompared(t *testing.T) {
	t.Parallel()
	for name, service := range map[string]string{"before the refs are shown": "info/refs", "after that": "git-receive-pack"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, peer.Options{})
			from := w.repo.Head("main")
			w.repo.Push(w.bob, "work", from)
			to := w.repo.Commit(w.bob, "work", "a", map[string]string{"a.txt": "a\n"})
			var theirs atomic.Pointer[string]
			inner := httputil.NewSingleHostReverseProxy(must(url.Parse(w.peer.Web)))
			front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				push := strings.Contains(r.URL.String(), "git-receive-pack") && strings.Contains(r.URL.Path, service)
				if push && theirs.Load() == nil {
					sha := w.repo.Commit(w.ann, "main", "theirs", map[string]string{"t.txt": "t\n"})
					theirs.Store(&sha)
				}
				inner.ServeHTTP(rw, r)
			}))
			t.Cleanup(front.Close)
			h := w.connect(func(c *Config) { c.Addresses.Web = front.URL })
			for range 2 {
				wants(t, "somebody was faster", h.MoveBranch(t.Context(), w.shop, "main", from, to), codehost.ErrHeadMoved)
			}
			if theirs.Load() == nil || w.repo.Head("main") != *theirs.Load() {
				t.Errorf("main is at %s", w.repo.Head("main"))
			}
		})
	}
}
