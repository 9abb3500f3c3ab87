package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/client"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
)

const (
	setupToken = "dev_setup_for_tests"
	owner      = "acme"
	repoName   = "widgets"
	password   = "correct horse battery staple"
	// short is the lease of a test in which one has to run out. All others have the usual
	// one, for which no honest work on a busy machine is too slow.
	short = "20s"
)

// stack is a control plane with an account, a repository whose pull requests merge
// automatically, and boxes.
type stack struct {
	t      *testing.T
	ctx    context.Context
	dir    string
	flags  []string
	env    []string // of its boxes
	listen string
	nats   string // address to which boxes connect
	server *process
	// launcher precedes the server's program on its command line.
	launcher []string
	boxes    []*machine
	c        *client.Client
}

var stacks atomic.Int64

var ready = regexp.MustCompile(`serves (https?://\S+), boxes connect to (\S+),`)

// newStack starts a control plane with the given flags of serve.
func newStack(t *testing.T, flags ...string) *stack {
	t.Helper()
	t.Parallel()
	st := &stack{
		t: t, ctx: t.Context(), dir: filepath.Join(root, fmt.Sprint(stacks.Add(1))), listen: loopback.Address(),
		flags: append([]string{
			"--nats-listen", loopback.Address(), "--setup-token", setupToken, "--seats", "16", "--rate-limits", "off",
		}, flags...),
	}
	if err := os.Mkdir(st.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			st.dump()
		}
		if err := os.RemoveAll(st.dir); err != nil {
			t.Error(err)
		}
	})
	st.serve()
	var err error
	st.c, err = client.Setup(st.ctx, "http://"+st.listen, setupToken, client.Owner{
		Login: "ada", Name: "Ada", Email: "ada@example.com", Password: password, Account: owner,
	})
	if err != nil {
		t.Fatal(err)
	}
	st.addRepo()
	return st
}

// serve starts the control plane on its data, and waits until it answers.
func (st *stack) serve() {
	st.t.Helper()
	argv := append(slices.Clone(st.launcher), binary, "serve", "--data", st.path("server"), "--listen", st.listen, "--log-level", "debug",
		"--merge-grace", "0")
	argv = append(argv, st.flags...)
	st.server = start(st.t, st.path("server.log"), nil, argv...)
	st.until("the server is ready", func() bool {
		m := ready.FindStringSubmatch(st.server.output())
		if m != nil {
			st.nats = m[2]
		} else if st.server.ended() {
			st.t.Fatalf("the server ended:\n%s", st.server.output())
		}
		return m != nil
	})
}

func (st *stack) path(name string) string { return filepath.Join(st.dir, name) }

// addRepo puts a repository on the server.
func (st *stack) addRepo() {
	st.t.Helper()
	dir := st.path("source")
	if err := os.Mkdir(dir, 0o755); err != nil {
		st.t.Fatal(err)
	}
	st.git(dir, "init", "--quiet", "--initial-branch=main")
	st.commit(map[string]string{"README.md": "# Widgets\n", ".svc/policy.yml": "version: 1\nreview: {mode: off}\nmerge: {mode: auto}\n"})
	if err := st.c.AddRepo(st.ctx, dir, owner, repoName); err != nil {
		st.t.Fatal(err)
	}
}

// commit writes files in Ada's clone and commits them.
func (st *stack) commit(files map[string]string) {
	st.t.Helper()
	dir := st.path("source")
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			st.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			st.t.Fatal(err)
		}
	}
	st.git(dir, "add", "--all")
	st.git(dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet",
		"--message=Change")
}

// push changes files on a branch in Ada's name, on top of the branch's current commit.
func (st *stack) push(branch string, files map[string]string) {
	st.t.Helper()
	dir, remote := st.path("source"), st.c.URL+"/git/"+owner+"/"+repoName+".git"
	authorized := func(args ...string) {
		if _, err := client.Git(st.ctx, dir, st.c.URL, st.c.Token, args...); err != nil {
			st.t.Fatal(err)
		}
	}
	authorized("fetch", "--quiet", remote, branch)
	st.git(dir, "checkout", "--quiet", "--detach", "FETCH_HEAD")
	st.commit(files)
	authorized("push", "--quiet", remote, "HEAD:refs/heads/"+branch)
}

func (st *stack) git(dir string, args ...string) string {
	st.t.Helper()
	out, err := client.Git(context.WithoutCancel(st.ctx), dir, "", "", args...)
	if err != nil {
		st.t.Fatal(err)
	}
	return out
}

// bare is the repository as the server stores it.
func (st *stack) bare() string {
	st.t.Helper()
	found, err := filepath.Glob(filepath.Join(st.path("server"), "git", "*", repoName+".git"))
	if err != nil || len(found) != 1 {
		st.t.Fatalf("the server's repository: %v, %v", found, err)
	}
	return found[0]
}

func (st *stack) call(method, path string, in, out any) {
	st.t.Helper()
	if err := st.c.Call(st.ctx, method, path, in, out); err != nil {
		st.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// until waits until done answers true. It looks less and less often, down to five times a
// second: to look costs the server and this process as much as the work that is waited for.
func (st *stack) until(what string, done func() bool) {
	st.t.Helper()
	next, pause := time.Now(), 20*time.Millisecond
	patience.Until(st.t, what, func() bool {
		if time.Now().Before(next) {
			return false
		}
		ok := done()
		next, pause = time.Now().Add(pause), min(pause*5/4, 200*time.Millisecond)
		return ok
	})
}

// machine is one box: its data folder outlives its processes.
type machine struct {
	st   *stack
	name string
	data string
	id   string
	// launcher precedes the program on its command line.
	launcher []string
	*process
}

// enroll makes a box that does not run yet; change may give it other addresses.
func (st *stack) enroll(name string, change func(*box.Identity)) *machine {
	st.t.Helper()
	b := &machine{st: st, name: name, data: st.path(name)}
	identity, err := box.Enroll(st.ctx, "http://"+st.listen, st.enrollment(b.name), box.Info{Name: b.name, Slots: 1})
	if err != nil {
		st.t.Fatal(err)
	}
	if change != nil {
		change(&identity)
	}
	if err := identity.Save(b.data); err != nil {
		st.t.Fatal(err)
	}
	b.id = identity.Box
	return b
}

func (st *stack) enrollment(name string) string {
	st.t.Helper()
	var minted struct {
		Token string `json:"token"`
	}
	st.call(http.MethodPost, "/v1/runners/enrollments", map[string]any{"name": name}, &minted)
	return minted.Token
}

// begin starts the process of an enrolled box.
func (b *machine) begin() {
	b.st.t.Helper()
	argv := append(slices.Clone(b.launcher), binary, "box", "run", "--data", b.data, "--slots", "1", "--log-level", "debug")
	b.process = start(b.st.t, b.st.path(b.name+".log"), b.st.env, argv...)
	if !slices.Contains(b.st.boxes, b) {
		b.st.boxes = append(b.st.boxes, b)
	}
}

// run starts the process of an enrolled box and waits until the control plane sees it.
func (b *machine) run() *machine {
	b.st.t.Helper()
	b.begin()
	b.online()
	return b
}

// join enrolls and runs a box as a person would, with `box join`.
func (st *stack) join(name string, env ...string) *machine {
	st.t.Helper()
	b := &machine{st: st, name: name, data: st.path(name)}
	env = append(append(env, st.env...), "YARDMASTER_ENROLL_TOKEN="+st.enrollment(name))
	b.process = start(st.t, st.path(name+".log"), env, binary, "box", "join", "--url", "http://"+st.listen, "--data", b.data,
		"--name", name, "--slots", "1", "--log-level", "debug")
	st.boxes = append(st.boxes, b)
	b.online()
	return b
}

// online waits until the control plane sees the current process of the box.
func (b *machine) online() {
	b.st.t.Helper()
	b.st.until(b.name+" is online", func() bool {
		if b.ended() {
			b.st.t.Fatalf("%s ended:\n%s", b.name, b.output())
		}
		if !strings.Contains(b.output(), "connected to the control plane") {
			return false
		}
		var p struct {
			Data []struct {
				ID       string
				Name     string
				Presence struct{ Status string }
			}
		}
		b.st.call(http.MethodGet, "/v1/runners", nil, &p)
		for _, r := range p.Data {
			if r.Name == b.name && r.Presence.Status == "online" {
				b.id = r.ID
				return true
			}
		}
		return false
	})
}

// routine is a log line that does not help to find a fault.
var routine = regexp.MustCompile(`(?m)^.*(msg=request .* status=2\d\d |msg="nothing to do").*\n`)

// dump logs the state of the tasks of a failed test, and the ends of all its logs.
func (st *stack) dump() {
	for _, path := range []string{"/v1/tasks", "/v1/prs", "/v1/queue/status"} {
		var out json.RawMessage
		if err := st.c.Call(context.WithoutCancel(st.ctx), http.MethodGet, path, nil, &out); err != nil {
			out = json.RawMessage(err.Error())
		}
		st.t.Logf("--- %s\n%s", path, out)
	}
	logs, _ := filepath.Glob(st.path("*.log"))
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			st.t.Error(err)
		}
		text = routine.ReplaceAll(text, nil)
		st.t.Logf("--- the end of %s\n%s", filepath.Base(name), text[max(0, len(text)-8000):])
	}
}
