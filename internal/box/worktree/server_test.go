package worktree

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

const token = "tok/en+with=odd&characters"

var (
	agentID = Identity{Name: "Agent", Email: "agent@box.invalid"}
	userEnv = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}, agentID.env()...)
)

// git runs git as a developer or an agent would.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir, cmd.Env = dir, userEnv
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// host is a code host: one bare repository behind HTTP basic authentication.
type host struct {
	url      string
	bare     string
	requests atomic.Int64
	fail     atomic.Int64 // the status of all answers, unless it is 0
	// redirect, if set, is where requests are sent.
	redirect string
}

func newHost(t *testing.T) *host {
	t.Helper()
	root := t.TempDir()
	h := &host{bare: filepath.Join(root, "repo.git")}
	git(t, root, "init", "-q", "--bare", "--initial-branch=main", h.bare)
	git(t, h.bare, "config", "http.receivepack", "true")
	git(t, h.bare, "config", "receive.denyNonFastForwards", "false")
	seed := filepath.Join(root, "seed")
	git(t, root, "init", "-q", "--initial-branch=main", seed)
	write(t, seed, map[string]string{
		"README.md": "hello\n", "src/main.go": "package main\n", "dir/a": "a\n", "dir/b": "b\n",
		".gitignore": "*.log\nbuild/\n", ".gitattributes": "*.bat text eol=crlf\n*.bin filter=evil\n", "run.bat": "echo\n",
		"x.bin": "data\n",
	})
	git(t, seed, "add", "-A")
	git(t, seed, "commit", "-q", "-m", "first")
	git(t, seed, "push", "-q", h.bare, "main", "main:old")

	exe := git(t, root, "--exec-path")
	backend := &cgi.Handler{Path: filepath.Join(exe, "git-http-backend"), InheritEnv: []string{"PATH"},
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=box"}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests.Add(1)
		if h.redirect != "" {
			http.Redirect(w, r, h.redirect+r.URL.RequestURI(), http.StatusFound)
			return
		}
		if _, password, _ := r.BasicAuth(); password != token {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		if status := h.fail.Load(); status != 0 {
			http.Error(w, "not now", int(status))
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	h.url = srv.URL + "/repo.git"
	return h
}

// fetched opens a cache that has the host's branches.
func fetched(t *testing.T, h *host) *Cache {
	t.Helper()
	c, err := Open(t.Context(), filepath.Join(t.TempDir(), "cache.git"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fetch(t.Context(), h.url, token); err != nil {
		t.Fatal(err)
	}
	return c
}

func checkout(t *testing.T, c *Cache) *Checkout {
	t.Helper()
	w, err := c.Checkout(t.Context(), filepath.Join(t.TempDir(), "task"), "svc/x--01234567", "main", agentID)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
