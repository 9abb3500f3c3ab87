package github

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/relay"
	peer "yardmaster/internal/proof/github"
)

// TestTokenEndsDuringAPush holds that the token of a fetch that has ended is not used for
// the push, whether it ends before GitHub shows the refs or between that and the pack,
// and whether the server sees that by its clock or only by GitHub's 401: another token is
// made, and the push goes through once.
func TestTokenEndsDuringAPush(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refs    time.Duration // that pass before the refs are shown
		pack    time.Duration // that pass between the refs and the pack
		refuses string        // operation that GitHub answers with 401, once
		minted  int           // tokens that may push
	}{
		"before the refs":         {refs: 61 * time.Minute, minted: 1},
		"before the pack":         {pack: 61 * time.Minute, minted: 2}, // the push begins with one of its own
		"unseen, before the refs": {refuses: "info/refs", minted: 2},
		"unseen, before the pack": {refuses: "git-receive-pack", minted: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen watched
			w := newWorld(t, peer.Options{Watch: seen.add})
			var pushed, refused atomic.Int32
			door := relay.New(relay.Config{
				Find: func(context.Context, string) (codehost.Repo, error) { return w.shop, nil },
				Git:  func(context.Context, codehost.Repo, codehost.Access) (codehost.GitAccess, error) { return w.host, nil },
				Authorize: func(context.Context, string, string, codehost.Repo) (codehost.Access, error) {
					return codehost.Access{Read: true, Push: []string{"refs/heads/svc/*"}, Who: "run"}, nil
				},
				Pushed: func(context.Context, codehost.PushEvent) { pushed.Add(1) },
				Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					resp, err := http.DefaultTransport.RoundTrip(r)
					if err == nil && resp.StatusCode == http.StatusUnauthorized {
						refused.Add(1)
					}
					return resp, err
				}),
			})
			var pushes atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case !pushes.Load():
				case r.Method == http.MethodGet:
					w.peer.Advance(c.refs)
				default:
					w.peer.Advance(c.pack)
				}
				door.ServeHTTP(rw, r)
			}))
			t.Cleanup(server.Close)
			dir := t.TempDir()
			git := func(args ...string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "git", args...)
				cmd.Dir = dir
				cmd.Env = []string{
					"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
					"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com",
					"GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com",
				}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %s: %v\n%.3000s", strings.Join(args, " "), err, out)
				}
			}
			git("clone", "--quiet", strings.Replace(server.URL, "://", "://run:x@", 1)+relay.Path("7"), ".")
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a"), 0o600); err != nil {
				t.Fatal(err)
			}
			git("checkout", "--quiet", "-b", "svc/a")
			git("add", "-A")
			git("commit", "--quiet", "-m", "a")
			want := int32(0)
			if c.refuses != "" {
				want = 1
				w.peer.Break(peer.Fault{Operation: c.refuses, Effect: peer.Fail, Status: http.StatusUnauthorized, Times: 1})
			}
			pushes.Store(true)
			git("push", "--quiet", "origin", "svc/a")
			if w.repo.Head("svc/a") == "" || pushed.Load() != 1 || refused.Load() != want {
				t.Errorf("GitHub is at %q, %d pushes were told, %d requests refused", w.repo.Head("svc/a"), pushed.Load(), refused.Load())
			}
			minted := 0
			for _, e := range seen.take(mintOperation) {
				if strings.Contains(string(e.Body), `"contents":"write"`) {
					minted++
				}
			}
			if minted != c.minted {
				t.Errorf("%d tokens that may push were made", minted)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
