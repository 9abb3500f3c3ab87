package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/proof/executable"
)

var everything = codehost.Access{Read: true, Push: []string{"refs/*"}}

// get sends a request and returns the status, headers and body of the response.
func get(t *testing.T, method, url, token, contentType, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.SetBasicAuth("x", token)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func TestClone(t *testing.T) {
	s := newSite(t, "")
	w := start(t, s, shop)
	for range 3 {
		w.commit("more", "README.md", "more\n")
	}
	w.git("push", "-q", "origin", "main")
	s.allow("reader", shop, codehost.Access{Read: true})
	url := s.remote("reader", shop)

	for name, args := range map[string][]string{
		"version 2": {"-c", "protocol.version=2", "clone", "-q", url},
		"version 0": {"-c", "protocol.version=0", "clone", "-q", url},
		"mirror":    {"clone", "-q", "--mirror", url},
		"no .git":   {"clone", "-q", strings.TrimSuffix(url, ".git")},
	} {
		dir := filepath.Join(t.TempDir(), "c")
		work{t, "/"}.git(append(args, dir)...)
		if n := (work{t, dir}).git("rev-list", "--count", "HEAD"); n != "4" {
			t.Errorf("%s: %s commits", name, n)
		}
	}
	shallow := work{t, filepath.Join(t.TempDir(), "c")}
	work{t, "/"}.git("clone", "-q", "--depth=1", url, shallow.dir)
	if n := shallow.git("rev-list", "--count", "HEAD"); n != "1" {
		t.Errorf("shallow: %s commits", n)
	}
	shallow.git("fetch", "-q", "--unshallow")
	if n := shallow.git("rev-list", "--count", "HEAD"); n != "4" {
		t.Errorf("unshallowed: %s commits", n)
	}
	partial := work{t, filepath.Join(t.TempDir(), "c")}
	work{t, "/"}.git("clone", "-q", "--filter=blob:none", "--no-checkout", url, partial.dir)
	if got := partial.git("show", "HEAD:src/a.txt") + "\n"; got != lines(20) {
		t.Errorf("partial: %q", got)
	}
	if out := shallow.fails("push", "origin", "HEAD:refs/heads/x"); !strings.Contains(out, "may read the repository, not push") {
		t.Errorf("a reader's push: %s", out)
	}
}

// TestFetchWithCompressedRequest holds that a fetch succeeds with a compressed request,
// which git sends if it asks for many commits.
func TestFetchWithCompressedRequest(t *testing.T) {
	s := newSite(t, "")
	w := start(t, s, shop)
	s.allow("reader", shop, codehost.Access{Read: true})
	clone := work{t, filepath.Join(t.TempDir(), "c")}
	work{t, "/"}.git("clone", "-q", s.remote("reader", shop), clone.dir)
	push := []string{"push", "-q", "origin"}
	for i := range 40 {
		tip := w.git("commit-tree", "main^{tree}", "-p", "main", "-m", fmt.Sprint(i))
		push = append(push, fmt.Sprintf("%s:refs/heads/b%d", tip, i))
	}
	w.git(push...)
	var compressed atomic.Bool
	s.between(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Header.Get("Content-Encoding") == "gzip" {
			compressed.Store(true)
		}
		next.ServeHTTP(rw, r)
	})
	clone.git("fetch", "-q", "origin")
	if !compressed.Load() {
		t.Error("the client did not compress; the test shows nothing")
	}
	if got := clone.git("for-each-ref", "--format=%(refname)", "refs/remotes/origin/b*"); strings.Count(got, "\n") != 39 {
		t.Errorf("fetched %s", got)
	}
}

// TestForeignLooksUnknown holds that a foreign repository, a missing one and an
// invalid name give the same response, byte for byte, on every route.
func TestForeignLooksUnknown(t *testing.T) {
	s := newSite(t, "")
	start(t, s, shop)
	s.allow("mine", at("me", "mine"), everything)
	for _, token := range []string{"", "wrong", "mine"} {
		for _, route := range []string{"GET info/refs?service=git-upload-pack", "GET info/refs?service=git-receive-pack",
			"GET info/refs", "POST git-upload-pack", "POST git-receive-pack"} {
			method, path, _ := strings.Cut(route, " ")
			type answer struct {
				Status          int
				Challenge, Body string
			}
			var first answer
			for i, repo := range []string{"acme/shop.git", "acme/nope.git", "nobody/nope.git", "acme/%2e%2e", "%2e%2e/acme",
				"acme/a%2fb.git", "me/mine.git"} {
				status, header, body := get(t, method, s.url+"/git/"+repo+"/"+path, token, "application/x-git-upload-pack-request",
					smarthttp.Flush)
				got := answer{status, header.Get("WWW-Authenticate"), body}
				if i == 0 {
					first = got
				}
				if diff := cmp.Diff(first, got); diff != "" {
					t.Errorf("%s of %s as %q (-shop +%s):\n%s", route, repo, token, repo, diff)
				}
			}
			want := http.StatusUnauthorized
			if token == "mine" {
				want = http.StatusNotFound
			}
			if first.Status != want || (first.Challenge != "") != (want == http.StatusUnauthorized) {
				t.Errorf("%s as %q: %+v", route, token, first)
			}
		}
	}
	out := work{t, t.TempDir()}.fails("clone", s.remote("wrong", shop))
	if !strings.Contains(out, "Authentication failed") {
		t.Errorf("a wrong token: %s", out)
	}
}

func TestOddRequests(t *testing.T) {
	s := newSite(t, "")
	start(t, s, shop)
	s.allow("all", shop, everything)
	base := s.url + "/git/acme/shop.git/"
	push := "application/x-git-receive-pack-request"
	command := func(line string) string { return smarthttp.Pkt(line) + smarthttp.Flush }
	zero, one := codehost.ZeroSHA, strings.Repeat("1", 40)
	for name, c := range map[string]struct {
		method, path, contentType, body string
		want                            int
	}{
		"dumb":          {"GET", "info/refs", "", "", 403},
		"dumb file":     {"GET", "HEAD", "", "", 404},
		"objects":       {"GET", "objects/info/packs", "", "", 404},
		"config":        {"GET", "config", "", "", 404},
		"wrong method":  {"GET", "git-upload-pack", "", "", 405},
		"other service": {"GET", "info/refs?service=git-upload-archive", "", "", 403},
		"content type":  {"POST", "git-upload-pack", "text/plain", smarthttp.Flush, 415},
		"probe":         {"POST", "git-receive-pack", push, smarthttp.Flush, 200},
		"empty":         {"POST", "git-receive-pack", push, "", 400},
		"truncated":     {"POST", "git-receive-pack", push, "00ff" + zero, 400},
		"no hex":        {"POST", "git-receive-pack", push, "zzzz", 400},
		"escape":        {"POST", "git-receive-pack", push, command(zero + " " + one + " ../../HEAD\x00report-status"), 400},
		"not a ref":     {"POST", "git-receive-pack", push, command(zero + " " + one + " HEAD\x00report-status"), 400},
		"two lines in one": {"POST", "git-receive-pack", push,
			command(zero + " " + one + " refs/heads/a\n" + zero + "\x00report-status"), 400},
		"signed":    {"POST", "git-receive-pack", push, command("push-cert\x00report-status"), 400},
		"no report": {"POST", "git-receive-pack", push, command(zero + " " + one + " refs/heads/a\x00side-band-64k"), 400},
	} {
		if status, _, body := get(t, c.method, base+c.path, "all", c.contentType, c.body); status != c.want {
			t.Errorf("%s: %d %q, want %d", name, status, body, c.want)
		}
	}
	if e := s.heard(); e != nil {
		t.Errorf("events: %+v", e)
	}
}

// TestHooksDoNotRun holds that no configuration of the machine, of a user or of a
// repository makes git run a program.
func TestHooksDoNotRun(t *testing.T) {
	s := newSite(t, "")
	w := start(t, s, shop)
	s.allow("all", shop, everything)
	trap := filepath.Join(t.TempDir(), "ran")
	hooks := filepath.Join(s.path(shop), "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction", "proc-receive"} {
		if err := executable.Write(filepath.Join(hooks, name), []byte("#!/bin/sh\ntouch "+trap+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.commit("x", "x", "x\n")
	w.git("push", "-q", s.remote("all", shop), "main")
	if _, err := os.Stat(trap); err == nil {
		t.Error("a hook ran")
	}
	if len(s.heard()) != 1 {
		t.Error("the push was not announced")
	}
}

// TestAbandonedFetchIsKilled holds that a fetch whose client disconnects ends at
// once, with all its processes, even while git has no output.
func TestAbandonedFetchIsKilled(t *testing.T) {
	script := filepath.Join(t.TempDir(), "git")
	fifo := filepath.Join(t.TempDir(), "running")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// The shell's child stands for pack-objects: it must not outlive the shell.
	body := "#!/bin/sh\ncase \"$*\" in 'upload-pack --stateless-rpc /'*) (echo on; exec sleep 600) >" + fifo +
		"; exit;; esac\nexec git \"$@\"\n"
	if err := executable.Write(script, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, script)
	start(t, s, shop)
	s.allow("reader", shop, codehost.Access{Read: true})
	served := make(chan struct{})
	s.between(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		defer close(served)
		next.ServeHTTP(rw, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.CloneURL(shop)+"/git-upload-pack", strings.NewReader(smarthttp.Flush))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("x", "reader")
	req.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	gone := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(req)
		gone <- err
	}()
	running, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if _, err := io.ReadFull(running, make([]byte, len("on\n"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
	<-served
	// The pipe ends with the last process that has it open.
	if said, err := io.ReadAll(running); len(said) > 0 || err != nil {
		t.Errorf("read %q, %v", said, err)
	}
}
