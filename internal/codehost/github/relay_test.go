package github

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/relay"
	"yardmaster/internal/fault"
	peer "yardmaster/internal/proof/github"
)

// TestRelayToGitHub holds that git clients reach a repository at GitHub through the
// relay with tokens of the App, which end and are renewed, under each name of the
// repository, and that no client sees one.
func TestRelayToGitHub(t *testing.T) {
	t.Parallel()
	var seen watched
	w := newWorld(t, peer.Options{Watch: seen.add})
	const id = "0199a000-0000-7000-8000-000000000007"
	var mu sync.Mutex
	var pushed []codehost.PushEvent
	server := httptest.NewServer(relay.New(relay.Config{
		Find: func(_ context.Context, asked string) (codehost.Repo, error) {
			if asked != id {
				return codehost.Repo{}, fault.Missing("repository")
			}
			return w.shop, nil
		},
		Git: func(context.Context, codehost.Repo, codehost.Access) (codehost.GitAccess, error) { return w.host, nil },
		Authorize: func(context.Context, string, string, codehost.Repo) (codehost.Access, error) {
			return codehost.Access{Read: true, Push: []string{"refs/heads/svc/*"}, Who: "run"}, nil
		},
		Pushed: func(_ context.Context, e codehost.PushEvent) {
			mu.Lock()
			defer mu.Unlock()
			pushed = append(pushed, e)
		},
	}))
	t.Cleanup(server.Close)
	remote := strings.Replace(server.URL, "://", "://run:dev_run_x@", 1) + relay.Path(id)
	dir := t.TempDir()
	git := func(ok bool, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", args...)
		c.Dir = dir
		c.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_TERMINAL_PROMPT=0", "GIT_TRACE_CURL=1", "GIT_TRACE_REDACT=0",
			"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com",
		}
		out, err := c.CombinedOutput()
		if (err == nil) != ok {
			t.Fatalf("git %s: %v\n%.3000s", strings.Join(args, " "), err, out)
		}
		if strings.Contains(string(out), "ghs_") {
			t.Errorf("git %s sees a token of GitHub", strings.Join(args, " "))
		}
		return string(out)
	}
	git(true, "clone", "--quiet", remote, ".")
	git(true, "checkout", "--quiet", "-b", "svc/a")
	write := func(name string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		git(true, "add", "-A")
		git(true, "commit", "--quiet", "-m", name)
	}
	write("a.txt")
	git(true, "push", "--quiet", "origin", "svc/a")
	git(false, "push", "--quiet", "origin", "svc/a:main")
	w.inst.Suspend(w.ann, true) // its tokens are revoked
	w.inst.Suspend(w.ann, false)
	write("b.txt")
	git(true, "push", "--quiet", "origin", "svc/a")
	w.repo.Rename(w.ann, "store")
	write("c.txt")
	git(true, "push", "--quiet", "origin", "svc/a")
	w.peer.Advance(2 * time.Hour)
	write(".github/workflows/ci.yml")
	git(true, "push", "--quiet", "origin", "svc/a")
	if head := w.repo.Head("svc/a"); !strings.Contains(git(true, "rev-parse", "HEAD"), head) {
		t.Errorf("GitHub is at %s", head)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(pushed) != 4 || pushed[3].Repo != w.shop || pushed[3].Updates[0].Ref != "refs/heads/svc/a" {
		t.Errorf("announced %+v", pushed)
	}
	for _, e := range seen.take(mintOperation) {
		body := string(e.Body)
		if !strings.Contains(body, number(w.repo.ID)) || strings.Contains(body, "issues") || strings.Contains(body, "pull_requests") {
			t.Errorf("asked for the token %s", body)
		}
	}
}
