package builtin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

var shop = at("acme", "shop")

// at names a repository of the host of these tests.
func at(owner, name string) codehost.Repo {
	return codehost.Repo{Host: codehost.BuiltIn, Owner: owner, Name: name}
}

// site is a host behind a real HTTP server, and the calls of its hooks.
type site struct {
	*Host
	url string

	mu     sync.Mutex
	wrap   func(http.Handler) http.Handler
	access map[string]map[codehost.Repo]codehost.Access // by token
	events []codehost.PushEvent
	create func(codehost.Repo) error
	left   func() int64 // bytes that every account may push; nil: as many as it likes
}

func newSite(t testing.TB, git string) *site {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	s := &site{
		url:    "http://" + srv.Listener.Addr().String(),
		wrap:   func(h http.Handler) http.Handler { return h },
		access: make(map[string]map[codehost.Repo]codehost.Access),
		create: func(codehost.Repo) error { return nil },
	}
	h, err := New(Config{Root: filepath.Join(t.TempDir(), "repos"), BaseURL: s.url, Git: git})
	if err != nil {
		t.Fatal(err)
	}
	s.Host = h
	handler := h.Handler(Hooks{
		Authorize: func(_ context.Context, _, token string, r codehost.Repo) (codehost.Access, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			repos, ok := s.access[token]
			if !ok {
				return codehost.Access{}, fault.New(fault.Unauthenticated, "", "no")
			}
			return repos[r], nil
		},
		Create: func(_ context.Context, r codehost.Repo) error {
			err := s.create(r)
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, repos := range s.access {
				if a, ok := repos[r]; ok && err == nil { // it is known from now on
					a.Create = false
					repos[r] = a
				}
			}
			return err
		},
		Room: func(context.Context, string) (int64, string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.left == nil {
				return -1, "", nil
			}
			return s.left(), "the account is full: ask an operator", nil
		},
		Pushed: func(_ context.Context, e codehost.PushEvent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
		},
	})
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		wrap := s.wrap
		s.mu.Unlock()
		wrap(handler).ServeHTTP(w, r)
	})
	srv.Start()
	t.Cleanup(srv.Close)
	return s
}

// between puts f between the server and the handler, for later requests.
func (s *site) between(f func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrap = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(w, r, next) })
	}
}

// allow gives a token access to a repository.
func (s *site) allow(token string, r codehost.Repo, a codehost.Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.access[token] == nil {
		s.access[token] = make(map[codehost.Repo]codehost.Access)
	}
	a.Who = token
	s.access[token][r] = a
}

// remote is a clone URL with a token in it.
func (s *site) remote(token string, r codehost.Repo) string {
	return strings.Replace(s.CloneURL(r), "http://", "http://x:"+token+"@", 1)
}

// heard removes and returns the events so far.
func (s *site) heard() []codehost.PushEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.events
	s.events = nil
	return e
}

// client is the git of a user, without any configuration of this machine.
func client(dir string, args ...string) *exec.Cmd {
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.compression", "GIT_CONFIG_VALUE_0=0", // large test files are random
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com",
	}
	return c
}

// work is a user's clone.
type work struct {
	t   testing.TB
	dir string
}

func (w work) git(args ...string) string {
	w.t.Helper()
	out, err := client(w.dir, args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// fails runs git, which must fail, and returns its output.
func (w work) fails(args ...string) string {
	w.t.Helper()
	out, err := client(w.dir, args...).CombinedOutput()
	if err == nil {
		w.t.Fatalf("git %s: want a failure\n%s", strings.Join(args, " "), out)
	}
	return string(out)
}

func (w work) write(path string, content []byte) {
	w.t.Helper()
	path = filepath.Join(w.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// commit writes path, content pairs and commits them; it returns the SHA.
func (w work) commit(message string, files ...string) string {
	w.t.Helper()
	for i := 0; i < len(files); i += 2 {
		w.write(files[i], []byte(files[i+1]))
	}
	w.git("add", "-A")
	w.git("commit", "-q", "--allow-empty", "-m", message)
	return w.git("rev-parse", "HEAD")
}

// start makes a repository on the host with one commit on main, and a clone of
// it whose origin is the bare repository itself.
func start(t testing.TB, s *site, r codehost.Repo) work {
	t.Helper()
	if err := s.Create(t.Context(), r, codehost.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w := work{t, t.TempDir()}
	w.git("init", "-q", "-b", "main")
	w.git("remote", "add", "origin", s.path(r))
	w.commit("first", "README.md", "# Shop\n", "src/a.txt", lines(20))
	w.git("push", "-q", "origin", "main")
	return w
}

// branch makes a branch from a start point, with one commit, on the host.
func (w work) branch(name, from, message string, files ...string) string {
	w.t.Helper()
	w.git("checkout", "-q", "-B", name, from)
	sha := w.commit(message, files...)
	w.git("push", "-q", "-f", "origin", name)
	return sha
}

func lines(n int, changed ...string) string {
	var b strings.Builder
	for i := range n {
		line := fmt.Sprintf("line %d", i)
		if i < len(changed) && changed[i] != "" {
			line = changed[i]
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
