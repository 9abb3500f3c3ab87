package relay

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
	"yardmaster/internal/seal"
)

var shop = codehost.Repo{Host: "other", ID: "7", Owner: "acme", Name: "shop"}

const shopID = "github:ghe.corp:8443=17"

// backend is another host: git's own CGI program behind HTTP, with a credential of its
// own.
type backend struct {
	t    testing.TB
	root string
	srv  *httptest.Server

	mu     sync.Mutex
	token  string // the good one
	minted int
	asked  []*http.Request // without bodies
	before func(w http.ResponseWriter, r *http.Request) bool
}

func newBackend(t testing.TB) *backend {
	b := &backend{t: t, root: t.TempDir(), token: "token-0"}
	b.srv = httptest.NewServer(b)
	t.Cleanup(b.srv.Close)
	run(t, b.root, "init", "-q", "--bare", "-b", "main", "acme/shop.git")
	run(t, b.repo(), "config", "http.receivepack", "true")
	run(t, b.repo(), "config", "uploadpack.allowFilter", "true")
	return b
}

func (b *backend) repo() string { return filepath.Join(b.root, "acme/shop.git") }

func (b *backend) authorization() string { return "Basic " + b.token }

// ServeHTTP implements http.Handler. Bodies reach git as they come, chunked or not.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.asked = append(b.asked, r)
	good, before := r.Header.Get("Authorization") == b.authorization(), b.before
	b.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	if !good {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	_ = http.NewResponseController(w).EnableFullDuplex()
	c := exec.CommandContext(r.Context(), "git", "http-backend")
	c.Env = append(environment(),
		"GIT_PROJECT_ROOT="+b.root, "GIT_HTTP_EXPORT_ALL=1", "PATH_INFO="+r.URL.Path, "QUERY_STRING="+r.URL.RawQuery,
		"REQUEST_METHOD="+r.Method, "CONTENT_TYPE="+r.Header.Get("Content-Type"), "REMOTE_USER=ann", "REMOTE_ADDR=127.0.0.1",
		"HTTP_CONTENT_ENCODING="+r.Header.Get("Content-Encoding"), "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"),
	)
	if r.ContentLength >= 0 {
		c.Env = append(c.Env, "CONTENT_LENGTH="+strconv.FormatInt(r.ContentLength, 10))
	}
	c.Stdin = r.Body
	c.WaitDelay = 5 * time.Second
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.t.Error(err)
		return
	}
	defer func() { _ = c.Wait() }()
	from := bufio.NewReader(out)
	header, err := textproto.NewReader(from).ReadMIMEHeader()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	status := http.StatusOK
	if s := header.Get("Status"); s != "" {
		status, _ = strconv.Atoi(s[:3])
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = io.Copy(w, from)
}

// Upstream implements codehost.GitAccess.
func (b *backend) Upstream(context.Context, codehost.Repo, bool) (*url.URL, string, time.Time, error) {
	u, err := url.Parse(b.srv.URL + "/acme/shop.git")
	b.mu.Lock()
	defer b.mu.Unlock()
	return u, fmt.Sprintf("Basic token-%d", b.minted), time.Time{}, err
}

// Renew implements codehost.GitAccess.
func (b *backend) Renew(codehost.Repo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.minted++
}

// heard returns the requests so far, and forgets them.
func (b *backend) heard() []*http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.asked
	b.asked = nil
	return out
}

// set changes the backend while it serves.
func (b *backend) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// site is a relay before a backend. Its tokens are "reader" and "writer".
type site struct {
	*backend
	url string
	git codehost.GitAccess // instead of the backend

	mu     sync.Mutex
	events []codehost.PushEvent
	late   time.Duration // of the relay's clock
}

func newSite(t testing.TB) *site {
	s := &site{backend: newBackend(t)}
	access := map[string]codehost.Access{
		"reader": {Read: true, Who: "reader"},
		"writer": {Read: true, Push: []string{"refs/heads/svc/*", "refs/heads/main"}, Who: "writer"},
		"nobody": {},
	}
	objects := &Objects{Seal: seal.New(), Signed: func(context.Context, string, string) error { return nil }, Now: func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return time.Now().Add(s.late)
	}}
	srv := httptest.NewServer(New(Config{
		Objects: objects,
		Find: func(_ context.Context, id string) (codehost.Repo, error) {
			if id != shopID {
				return codehost.Repo{}, fault.Missing("repository")
			}
			return shop, nil
		},
		Git: func(context.Context, codehost.Repo, codehost.Access) (codehost.GitAccess, error) {
			if s.git != nil {
				return s.git, nil
			}
			return s.backend, nil
		},
		Authorize: func(_ context.Context, _, token string, r codehost.Repo) (codehost.Access, error) {
			a, ok := access[token]
			if !ok {
				return a, fault.New(fault.Unauthenticated, "", "no")
			}
			return a, nil
		},
		Pushed: func(_ context.Context, e codehost.PushEvent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
		},
	}))
	t.Cleanup(srv.Close)
	s.url, objects.BaseURL = srv.URL, srv.URL
	return s
}

// remote is the address of the repository at the relay, with a token in it.
func (s *site) remote(token string) string {
	return strings.Replace(s.url, "http://", "http://x:"+token+"@", 1) + Path(shopID)
}

func (s *site) pushes() []codehost.PushEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.events
	s.events = nil
	return out
}

func environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.compression", "GIT_CONFIG_VALUE_0=0",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com",
	}
}

func git(dir string, args ...string) *exec.Cmd {
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, environment()
	return c
}

// run runs git, which must succeed, and returns its output.
func run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := git(dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// fails runs git, which must fail, and returns its output.
func fails(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := git(dir, args...).CombinedOutput()
	if err == nil {
		t.Fatalf("git %s: want a failure\n%s", strings.Join(args, " "), out)
	}
	return string(out)
}

// work is a clone with one commit, which is at the backend too.
func (s *site) work() string {
	s.t.Helper()
	dir := s.t.TempDir()
	run(s.t, dir, "init", "-q", "-b", "main")
	run(s.t, dir, "remote", "add", "origin", s.remote("writer"))
	run(s.t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	run(s.t, dir, "push", "-q", s.repo(), "main")
	return dir
}
