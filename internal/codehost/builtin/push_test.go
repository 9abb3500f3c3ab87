package builtin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/executable"
)

const taskRef = "refs/heads/svc/greet--0a1b2c3d"

// pushed is the event of a push to shop.
func pushed(who string, updates ...codehost.RefUpdate) codehost.PushEvent {
	return codehost.PushEvent{Repo: shop, Who: who, Updates: updates}
}

func moved(ref, from, to string) codehost.RefUpdate {
	return codehost.RefUpdate{Ref: ref, Old: from, New: to}
}

func TestPushPolicy(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	s.allow("task", shop, codehost.Access{Read: true, Push: []string{taskRef, "refs/wip/7/*"}})
	url := s.remote("task", shop)
	main := w.git("rev-parse", "main")
	w.git("checkout", "-q", "-b", "mine")
	one := w.commit("one", "x", "1\n")

	out := w.git("push", url, "mine:"+taskRef, "mine:refs/wip/7/1")
	if strings.Contains(out, "error") {
		t.Errorf("push: %s", out)
	}
	want := []codehost.PushEvent{pushed("task", moved(taskRef, codehost.ZeroSHA, one), moved("refs/wip/7/1", codehost.ZeroSHA, one))}
	if diff := cmp.Diff(want, s.heard()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	for _, refs := range [][]string{
		{"mine:main"}, {"mine:refs/heads/svc/greet--0a1b2c3d0"}, {"mine:refs/wip/8/1"}, {"mine:refs/wip/7"}, {"mine:refs/tags/v1"},
		{":main"},
		{"mine:refs/heads/svc/greet--0a1b2c3d", "mine:main"}, {"-f", "mine:main"}, {"--atomic", "mine:main", "mine:refs/wip/7/2"},
	} {
		out := w.fails(append([]string{"push", url}, refs...)...)
		if !strings.Contains(out, "remote rejected") || !strings.Contains(out, "this token may only push to "+taskRef+", refs/wip/7/*") {
			t.Errorf("push %v: the client is told\n%s", refs, out)
		}
	}
	two := w.commit("two", "x", "2\n")
	out = w.fails("push", url, "mine:"+taskRef, "mine:main")
	if !strings.Contains(out, "another ref of this push was refused") {
		t.Errorf("the allowed one of two: %s", out)
	}
	if sha, err := s.Head(ctx, shop, "main"); sha != main || err != nil {
		t.Errorf("main is at %s, %v", sha, err)
	}
	if e := s.heard(); e != nil {
		t.Errorf("events of refused pushes: %+v", e)
	}

	w.git("push", "-q", url, "mine:"+taskRef)
	w.git("push", "-q", url, "mine:"+taskRef) // changes nothing
	w.git("push", "-q", url, ":"+taskRef)
	w.git("push", "-q", url, ":"+taskRef) // already deleted, which git permits
	want = []codehost.PushEvent{pushed("task", moved(taskRef, one, two)), pushed("task", moved(taskRef, two, codehost.ZeroSHA))}
	if diff := cmp.Diff(want, s.heard()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	s.allow("all", shop, everything)
	if out := w.fails("push", s.remote("all", shop), ":main"); !strings.Contains(out, "the default branch cannot be deleted") {
		t.Errorf("deleting main: %s", out)
	}
}

func TestPushCreatesRepository(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	fresh := at("acme", "fresh")
	s.allow("all", fresh, codehost.Access{Read: true, Push: []string{"refs/heads/*"}, Create: true})
	url := s.remote("all", fresh)
	w.fails("ls-remote", url)

	s.create = func(codehost.Repo) error {
		return fault.New(fault.PaymentRequired, "", "Your plan has no room for it.")
	}
	if out := w.fails("push", url, "main"); !strings.Contains(out, "Your plan has no room for it.") {
		t.Errorf("a refused creation: %s", out)
	}
	s.create = func(codehost.Repo) error { return errors.New("secret detail") }
	if out := w.fails("push", url, "main"); strings.Contains(out, "secret") || !strings.Contains(out, "500") {
		t.Errorf("a failed creation: %s", out)
	}
	w.fails("push", url, "main:refs/tags/x")
	if _, err := s.Info(ctx, fresh); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("Info after refusals: %v", err)
	}

	var asked []codehost.Repo
	s.create = func(r codehost.Repo) error {
		asked = append(asked, r)
		return nil
	}
	w.git("push", "-q", url, "main:trunk")
	info, err := s.Info(ctx, fresh)
	if want := (codehost.Info{Repo: fresh, DefaultBranch: "trunk", HeadSHA: w.git("rev-parse", "main")}); err != nil || info != want {
		t.Errorf("Info = %+v, %v, want %+v", info, err, want)
	}
	w.git("push", "-q", url, "main:another")
	if again, err := s.Info(ctx, fresh); again != info || err != nil {
		t.Errorf("after a second push: %+v, %v", again, err)
	}
	if diff := cmp.Diff([]codehost.Repo{fresh}, asked); diff != "" {
		t.Errorf("asked to create (-want +got):\n%s", diff)
	}
	left, err := filepath.Glob(filepath.Join(s.root, ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// TestPushesAtOnce holds that of several pushes to one ref from the same commit, one
// succeeds and one is announced.
func TestPushesAtOnce(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	s.allow("all", shop, everything)
	const n = 4
	// All clients have seen the old commit before any of them may push.
	var seen sync.WaitGroup
	seen.Add(n)
	s.between(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			seen.Done()
			seen.Wait()
		}
		next.ServeHTTP(rw, r)
	})
	old := w.git("rev-parse", "main")
	errs := make([]error, n)
	shas := make([]string, n)
	var done sync.WaitGroup
	for i := range n {
		w.git("checkout", "-q", "-B", fmt.Sprint("c", i), old)
		shas[i] = w.commit("x", "x", fmt.Sprint(i))
		done.Go(func() {
			errs[i] = client(w.dir, "push", "-q", s.remote("all", shop), shas[i]+":refs/heads/main").Run()
		})
	}
	done.Wait()
	won := ""
	for i, err := range errs {
		if err == nil && won != "" {
			t.Errorf("two pushes won")
		} else if err == nil {
			won = shas[i]
		}
	}
	if main, err := s.Head(ctx, shop, "main"); main != won || err != nil {
		t.Errorf("main is at %s, %v, the winner pushed %s", main, err, won)
	}
	want := []codehost.PushEvent{pushed("all", moved("refs/heads/main", old, won))}
	if diff := cmp.Diff(want, s.heard()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// large commits a file of random bytes.
func (w work) large(size int) string {
	b := make([]byte, size)
	rand.Read(b)
	w.write("large", b)
	return w.commit("large")
}

func TestLargePush(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	s.allow("all", shop, everything)
	sha := w.large(50 << 20)
	w.git("push", "-q", s.remote("all", shop), "main")
	if main, err := s.Head(ctx, shop, "main"); main != sha || err != nil {
		t.Errorf("main is at %s, %v", main, err)
	}
	// A refused push is read to its end, so that the client reads the reason.
	s.allow("task", shop, codehost.Access{Read: true, Push: []string{taskRef}})
	w.large(5 << 20)
	if out := w.fails("push", s.remote("task", shop), "main"); !strings.Contains(out, "this token may only push") {
		t.Errorf("a large refused push: %s", out)
	}
}

func TestCorruptObjectsAreRefused(t *testing.T) {
	s := newSite(t, "")
	w := start(t, s, shop)
	s.allow("all", shop, everything)
	blob := w.git("rev-parse", "main:README.md")
	c := client(w.dir, "mktree")
	c.Stdin = strings.NewReader("100644 blob " + blob + "\t.git\n")
	tree, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	bad := w.git("commit-tree", strings.TrimSpace(string(tree)), "-m", "bad")
	if out := w.fails("push", s.remote("all", shop), bad+":refs/heads/bad"); !strings.Contains(out, "hasDotgit") {
		t.Errorf("a tree with .git in it: %s", out)
	}
	if e := s.heard(); e != nil {
		t.Errorf("events: %+v", e)
	}
}

// paused passes the first bytes of a push's body, and then waits.
type paused struct {
	io.ReadCloser
	left    int
	reached func()
	resume  <-chan struct{}
}

func (p *paused) Read(b []byte) (int, error) {
	if p.left <= 0 {
		p.reached()
		<-p.resume
	}
	n, err := p.ReadCloser.Read(b)
	p.left -= n
	return n, err
}

// TestKilledPush holds that a push that is interrupted on either side changes
// nothing and can be repeated.
func TestKilledPush(t *testing.T) {
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			// Each git process of the host writes its process id.
			pid := filepath.Join(t.TempDir(), "pid")
			script := filepath.Join(t.TempDir(), "git")
			if err := executable.Write(script, []byte("#!/bin/sh\ncase \"$*\" in *receive-pack*) echo $$ >"+pid+";; esac\nexec git \"$@\"\n"),
				0o755); err != nil {
				t.Fatal(err)
			}
			s, ctx := newSite(t, script), t.Context()
			w := start(t, s, shop)
			s.allow("all", shop, everything)
			old := w.git("rev-parse", "main")
			sha := w.large(8 << 20)

			reached, resume, served := make(chan struct{}), make(chan struct{}), make(chan struct{})
			s.between(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodPost && r.ContentLength < 0 {
					r.Body = &paused{r.Body, 1 << 20, sync.OnceFunc(func() { close(reached) }), resume}
					defer close(served)
				}
				next.ServeHTTP(rw, r)
			})
			push := client(w.dir, "push", "-q", s.remote("all", shop), "main")
			push.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := push.Start(); err != nil {
				t.Fatal(err)
			}
			<-reached
			victim := push.Process.Pid
			if side == "server" {
				b, err := os.ReadFile(pid)
				if err != nil {
					t.Fatal(err)
				}
				if victim, err = strconv.Atoi(strings.TrimSpace(string(b))); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Kill(-victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			close(resume)
			var exit *exec.ExitError
			if err := push.Wait(); !errors.As(err, &exit) {
				t.Fatalf("the push ended with %v", err)
			}
			<-served
			if main, err := s.Head(ctx, shop, "main"); main != old || err != nil {
				t.Errorf("main is at %s, %v, want %s", main, err, old)
			}
			s.between(func(rw http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(rw, r) })
			w.git("push", "-q", s.remote("all", shop), "main")
			if main, err := s.Head(ctx, shop, "main"); main != sha || err != nil {
				t.Errorf("after the second try main is at %s, %v, want %s", main, err, sha)
			}
			if e := s.heard(); len(e) != 1 {
				t.Errorf("events: %+v", e)
			}
		})
	}
}
