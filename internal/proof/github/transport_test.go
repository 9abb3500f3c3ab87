package github_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/proof/github"
)

var nextLink = regexp.MustCompile(`<([^>]+)>; rel="next"`)

// follow returns the address of the next page, or "".
func follow(link string) string {
	if m := nextLink.FindStringSubmatch(link); m != nil {
		return m[1]
	}
	return ""
}

// TestGitAccess holds who may read and push what.
func TestGitAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	dir := t.TempDir()
	url := w.repo.CloneURL()
	mustGit(t, dir, "clone", "--quiet", withToken(url, w.inst.Token()), ".")
	mustGit(t, dir, "commit", "--quiet", "--allow-empty", "-m", "x")
	fails := func(want string, args ...string) {
		t.Helper()
		if out, err := git(t, dir, args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("git %v: %v: %s, want %s", args, err, out, want)
		}
	}
	reader := w.narrowed(map[string]string{"contents": "read"})
	blind := w.narrowed(map[string]string{"issues": "write"})
	fails("could not read Username", "ls-remote", url)
	fails("Authentication failed", "ls-remote", withToken(url, "ghs_nonsense"))
	fails("403", "ls-remote", withToken(url, blind))
	fails("403", "push", withToken(url, reader), "HEAD:refs/heads/x")
	fails("not found", "ls-remote", withToken(w.Web+"/acme/nothing.git", reader))
	mustGit(t, dir, "ls-remote", withToken(url, reader))
	fails("refusing to delete the current branch", "push", withToken(url, w.inst.Token()), ":main")
	fails("deny updating a hidden ref", "push", withToken(url, w.inst.Token()), "HEAD:refs/pull/1/head")
	w.repo.Rules(w.ann, github.Ruleset{Pull: true})
	fails("push declined due to repository rule violations", "push", withToken(url, w.inst.Token()), "HEAD:main")
	fails("atomic", "push", "--atomic", withToken(url, w.inst.Token()), "HEAD:main", "HEAD:refs/heads/y")
	if w.repo.Head("y") != "" {
		t.Error("half of an atomic push was kept")
	}
	token := w.inst.Token()
	w.Advance(time.Hour)
	fails("Authentication failed", "push", withToken(url, token), "HEAD:refs/heads/x")
	w.repo.Hide(w.ann, false)
	mustGit(t, dir, "ls-remote", url)
	fails("could not read Username", "push", url, "HEAD:refs/heads/x")
	w.repo.Archive(w.ann, true)
	fails("403", "push", withToken(url, w.inst.Token()), "HEAD:refs/heads/x")
}

// TestLargeTransfers holds the forms that git uses for much: chunked packs after a
// probe, gzipped requests, shallow and partial clones.
func TestLargeTransfers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	dir := t.TempDir()
	url := withToken(w.repo.CloneURL(), w.inst.Token())
	mustGit(t, dir, "clone", "--quiet", url, ".")
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(i * i >> 7 * 31)
	}
	if err := os.WriteFile(filepath.Join(dir, "noise"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	mustGit(t, dir, "config", "core.compression", "0")
	mustGit(t, dir, "add", "noise")
	mustGit(t, dir, "commit", "--quiet", "-m", "noise")
	const many = 30 // wants of them fill more than 1,024 bytes, from which on git compresses
	for n := range many {
		mustGit(t, dir, "commit", "--quiet", "--allow-empty", "-m", fmt.Sprint(n))
		mustGit(t, dir, "branch", fmt.Sprintf("branch-%d", n))
	}
	mustGit(t, dir, "push", "--quiet", "--all", "origin")
	mustGit(t, dir, "push", "--quiet", "origin", ":branch-0", ":branch-1")
	if got := len(strings.Fields(mustGit(t, w.repo.Dir(), "for-each-ref", "--format=%(refname)", "refs/heads"))); got != many-1 {
		t.Errorf("there are %d branches", got)
	}
	if got := strings.Count(w.told(), "push"); got != many+3 { // one for each ref
		t.Errorf("told of %d pushes", got)
	}
	whole, shallow, partial := t.TempDir(), t.TempDir(), t.TempDir()
	mustGit(t, whole, "clone", "--quiet", url, ".")
	mustGit(t, whole, "-c", "protocol.version=0", "fetch", "--quiet", "origin", "refs/heads/*:refs/x/*")
	mustGit(t, shallow, "clone", "--quiet", "--depth=1", url, ".")
	mustGit(t, shallow, "fetch", "--quiet", "--unshallow")
	mustGit(t, partial, "clone", "--quiet", "--filter=blob:none", "--no-checkout", url, ".")
	mustGit(t, partial, "checkout", "--quiet", "main")
	gzipped, chunked, probes := 0, 0, 0
	for _, one := range w.Transfers() {
		if one.Encoding == "gzip" && one.Service == "git-upload-pack" {
			gzipped++
		}
		if one.Chunked && one.Service == "git-receive-pack" {
			chunked++
		}
		if one.Bytes == 4 {
			probes++
		}
	}
	if gzipped == 0 || chunked != 1 || probes != 1 {
		t.Errorf("%d requests were gzipped, %d chunked, %d probes", gzipped, chunked, probes)
	}
	for _, d := range []string{whole, shallow, partial} {
		if mustGit(t, d, "rev-parse", "HEAD") != w.repo.Head("main") {
			t.Errorf("%s is elsewhere", d)
		}
	}
}

// TestBrokenPushes holds that a pack that is damaged, or lacks what it refers to, moves
// no ref.
func TestBrokenPushes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	push := func(sha string, pack []byte) string {
		t.Helper()
		line := fmt.Sprintf("%s %s refs/heads/broken\x00report-status", strings.Repeat("0", 40), sha)
		body := append([]byte(fmt.Sprintf("%04x%s0000", len(line)+4, line)), pack...)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.repo.CloneURL()+"/git-receive-pack", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("x-access-token", w.inst.Token())
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, _ := io.ReadAll(got.Body)
		return string(text)
	}
	empty := append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"), 0x02, 0x9d, 0x08, 0x82, 0x3b, 0xd8, 0xa8, 0xea, 0xb5, 0x10,
		0xad, 0x6a, 0xc7, 0x5c, 0x82, 0x3c, 0xfd, 0x3e, 0xd3, 0x1e)
	for name, got := range map[string]string{
		"no pack":          push(w.repo.Head("main"), []byte("nonsense")),
		"an absent object": push(strings.Repeat("a", 40), empty),
	} {
		if !strings.Contains(got, "ng refs/heads/broken") || w.repo.Head("broken") != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := push(w.repo.Head("main"), empty); !strings.Contains(got, "ok refs/heads/broken") {
		t.Errorf("an empty pack of what is there: %q", got)
	}
}

// TestGitFaults holds that a push whose answer is lost was done.
func TestGitFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	dir := t.TempDir()
	url := withToken(w.repo.CloneURL(), w.inst.Token())
	mustGit(t, dir, "clone", "--quiet", url, ".")
	w.Break(github.Fault{Operation: "git-receive-pack", Effect: github.Lose, Times: 1})
	if out, err := git(t, dir, "push", "origin", "HEAD:refs/heads/one"); err == nil {
		t.Errorf("the push got an answer: %s", out)
	}
	if w.repo.Head("one") == "" {
		t.Error("the push was not done")
	}
	w.Break(github.Fault{Operation: "info/refs", Effect: github.Fail, Times: 1})
	if out, err := git(t, dir, "push", "origin", "HEAD:refs/heads/two"); err == nil || w.repo.Head("two") != "" {
		t.Errorf("the push went on: %s", out)
	}
	mustGit(t, dir, "push", "--quiet", "origin", "HEAD:refs/heads/two")
	w.take()
	mustGit(t, dir, "tag", "v1")
	mustGit(t, dir, "push", "--quiet", "--tags")
	if got := w.told(); got != "push, create" {
		t.Errorf("of a tag told %s", got)
	}
	for _, name := range []string{"v2", "v3", "v4", "v5"} {
		mustGit(t, dir, "tag", name)
	}
	mustGit(t, dir, "push", "--quiet", "--tags")
	if got := w.told(); got != "" {
		t.Errorf("of four tags told %s", got)
	}
}

// TestCutTransfers holds both answers to what becomes of a clone whose token ends:
// GitHub's documents leave it open.
func TestCutTransfers(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	defer client.CloseIdleConnections()
	for _, cut := range []bool{false, true} {
		w := newWorld(t, github.Options{CutAtExpiry: cut})
		body := &late{w: w, text: "0032want " + w.repo.Head("main") + "\n00000009done\n"}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.repo.CloneURL()+"/git-upload-pack", body)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("x-access-token", w.inst.Token())
		r.Header.Set("Expect", "100-continue") // the body is sent once the request is admitted
		got, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if whole := strings.Contains(string(text), "PACK"); whole == cut {
			t.Errorf("cut is %v, and %d bytes came", cut, len(text))
		}
	}
}

// late is the body of a fetch during which the token ends.
type late struct {
	w    *world
	text string
	once sync.Once
}

func (l *late) Read(p []byte) (int, error) {
	l.once.Do(func() { l.w.Advance(2 * time.Hour) })
	n := copy(p, l.text)
	if l.text = l.text[n:]; l.text == "" {
		return n, io.EOF
	}
	return n, nil
}
