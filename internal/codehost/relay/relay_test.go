package relay

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
)

// TestGitThroughTheRelay holds that git clients do what they do with a server: clone,
// whole, shallow and partial, fetch with many refs, and push small and large packs.
func TestGitThroughTheRelay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.work()

	run(t, dir, "checkout", "-q", "-b", "svc/a")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "small")
	small := run(t, dir, "rev-parse", "HEAD")
	run(t, dir, "push", "-q", "origin", "svc/a")
	large := make([]byte, 3<<20) // over http.postBuffer: a probe, then chunks
	_, _ = rand.Read(large)
	if err := os.WriteFile(filepath.Join(dir, "large"), large, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "add", "large")
	run(t, dir, "commit", "-q", "-m", "large")
	head := run(t, dir, "rev-parse", "HEAD")
	run(t, dir, "push", "-q", "origin", "svc/a")
	if got := run(t, s.repo(), "rev-parse", "svc/a"); got != head {
		t.Errorf("the host is at %s, not %s", got, head)
	}
	want := []codehost.PushEvent{
		{Repo: shop, Who: "writer", Updates: []codehost.RefUpdate{{Ref: "refs/heads/svc/a", Old: codehost.ZeroSHA, New: small}}},
		{Repo: shop, Who: "writer", Updates: []codehost.RefUpdate{{Ref: "refs/heads/svc/a", Old: small, New: head}}},
	}
	if diff := cmp.Diff(want, s.pushes()); diff != "" {
		t.Errorf("pushes (-want +got):\n%s", diff)
	}
	chunked := false
	for _, r := range s.heard() {
		chunked = chunked || r.ContentLength < 0
	}
	if !chunked {
		t.Error("no push was chunked")
	}

	for i := range 300 {
		run(t, s.repo(), "update-ref", fmt.Sprintf("refs/heads/many/%d", i), head)
	}
	clones := t.TempDir()
	run(t, clones, "clone", "-q", "--mirror", s.remote("reader"), "whole")
	run(t, clones, "clone", "-q", "--depth=1", s.remote("reader"), "shallow")
	run(t, clones, "clone", "-q", "--filter=blob:none", "--branch=svc/a", s.remote("reader"), "partial")
	if got := run(t, filepath.Join(clones, "whole"), "rev-parse", "refs/heads/svc/a"); got != head {
		t.Errorf("cloned %s", got)
	}
	packed := false
	for _, r := range s.heard() {
		packed = packed || r.Header.Get("Content-Encoding") == "gzip"
	}
	if !packed {
		t.Error("no request was packed")
	}
}

// TestPushesAreJudgedHere holds that a ref that the credential may not push, and the
// deletion of one that it may, never reach the host, and that the client says why.
func TestPushesAreJudgedHere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.work()
	run(t, dir, "push", "-q", "origin", "HEAD:refs/heads/svc/a")
	run(t, dir, "push", "-q", s.repo(), "HEAD:refs/tags/v0")
	s.pushes()
	s.heard()
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "more")
	for _, c := range []struct{ spec, says string }{
		{"HEAD:refs/heads/other", "this token may only push to"},
		{"HEAD:refs/tags/v1", "this token may only push to"},
		{":refs/heads/svc/a", "may not delete"},
		{":refs/tags/v0", "this token may only push to"},
		{"HEAD:refs/svc/a", "this token may only push to"},
		{"HEAD:refs/pull/1/head", "this token may only push to"},
		{"HEAD:refs/heads/svc", "this token may only push to"},
	} {
		out := fails(t, dir, "push", "origin", c.spec)
		if !strings.Contains(out, c.says) {
			t.Errorf("%s: %s", c.spec, out)
		}
	}
	out := fails(t, dir, "push", "origin", "HEAD:refs/heads/svc/a", "HEAD:refs/heads/other")
	if !strings.Contains(out, "another ref of this push was refused") {
		t.Errorf("together: %s", out)
	}
	out = fails(t, dir, "push", s.remote("reader"), "HEAD:refs/heads/svc/b")
	if !strings.Contains(out, "403") {
		t.Errorf("a reader: %s", out)
	}
	for _, r := range s.heard() {
		if r.Method != http.MethodGet {
			t.Errorf("the host was asked for %s %s", r.Method, r.URL)
		}
	}
	if e := s.pushes(); len(e) != 0 {
		t.Errorf("announced: %+v", e)
	}
}

// TestHostRefuses holds that a refusal of the host reaches the client, and that nothing
// is announced.
func TestHostRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.work()
	run(t, dir, "push", "-q", "origin", "HEAD:refs/heads/svc/a")
	s.pushes()
	run(t, dir, "commit", "-q", "--amend", "--allow-empty", "-m", "another")
	run(t, s.repo(), "config", "receive.denyNonFastForwards", "true")
	if out := fails(t, dir, "push", "-f", "origin", "HEAD:refs/heads/svc/a"); !strings.Contains(out, "remote rejected") {
		t.Error(out)
	}
	if e := s.pushes(); len(e) != 0 {
		t.Errorf("announced: %+v", e)
	}
}

// TestHeadersOfTheClientStay holds that the host sees no credential and no cookie of the
// client, and the client none of the host.
func TestHeadersOfTheClientStay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.work()
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("X-Secret", "token-0")
		return false
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+Path(shopID)+"/info/refs?service=git-upload-pack&evil=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("x", "reader")
	for name, value := range map[string]string{
		"Cookie": "svc_session=1", "X-Forwarded-For": "10.0.0.1", "X-Svc-Account": "acme",
		"User-Agent": "git/2.39", "Git-Protocol": "version=2",
	} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 || !strings.Contains(string(body), "version 2") {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if resp.Header.Get("Set-Cookie") != "" || resp.Header.Get("X-Secret") != "" {
		t.Errorf("the client sees %v", resp.Header)
	}
	asked := s.heard()
	if len(asked) != 1 || asked[0].URL.RawQuery != "service=git-upload-pack" {
		t.Fatalf("asked %v", asked)
	}
	want := http.Header{
		"Authorization": {"Basic token-0"}, "User-Agent": {"git/2.39"}, "Git-Protocol": {"version=2"}, "Accept-Encoding": {"identity"},
	}
	if diff := cmp.Diff(want, asked[0].Header); diff != "" {
		t.Errorf("the host sees (-want +got):\n%s", diff)
	}
}

// TestWhoMayAsk holds that nobody without access learns whether there is a repository.
func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.work()
	ask := func(token, path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+path+"/info/refs?service=git-upload-pack", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.SetBasicAuth("x", token)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	const unknown = "github:ghe.corp:8443=18"
	for _, token := range []string{"", "wrong"} {
		if status, _ := ask(token, Path(shopID)); status != http.StatusUnauthorized {
			t.Errorf("%q: %d", token, status)
		}
		if status, _ := ask(token, Path(unknown)); status != http.StatusUnauthorized {
			t.Errorf("%q, unknown: %d", token, status)
		}
	}
	status, text := ask("nobody", Path(shopID))
	for token, path := range map[string]string{"nobody": Path(unknown), "reader": Path(unknown), "writer": "/git/-/%2e%2e"} {
		if s, b := ask(token, path); status != 404 || s != status || b != text {
			t.Errorf("%s %s: %d %q, not %d %q", token, path, s, b, status, text)
		}
	}
	if asked := s.heard(); len(asked) != 0 {
		t.Errorf("the host was asked %d times", len(asked))
	}
}

// TestCredentialIsRenewed holds that a credential that the host refuses is renewed once
// and the request repeated, and that a client is never asked for another credential
// because of it.
func TestCredentialIsRenewed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.work()
	s.set(func() { s.token = "token-1" })
	run(t, t.TempDir(), "clone", "-q", s.remote("reader"), "a")
	if s.minted != 1 {
		t.Errorf("made %d credentials", s.minted)
	}
	s.set(func() { s.token = "token-never" })
	if out := fails(t, t.TempDir(), "clone", "-q", s.remote("reader"), "a"); !strings.Contains(out, "503") {
		t.Error(out)
	}
	if s.minted != 3 {
		t.Errorf("made %d credentials", s.minted)
	}
}

// TestRedirects holds that a renamed repository is found by the redirect of its host,
// also by a push, and that no credential follows a redirect to another host.
func TestRedirects(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.work()
	if err := os.Rename(s.repo(), filepath.Join(s.root, "acme/store.git")); err != nil {
		t.Fatal(err)
	}
	s.set(func() {
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			rest, old := strings.CutPrefix(r.URL.Path, "/acme/shop.git")
			if old {
				to := *r.URL
				to.Path = "/acme/store.git" + rest
				http.Redirect(w, r, to.String(), http.StatusMovedPermanently)
			}
			return old
		}
	})
	run(t, t.TempDir(), "clone", "-q", s.remote("reader"), "a")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "more")
	run(t, dir, "push", "-q", "origin", "main")
	if e := s.pushes(); len(e) != 1 {
		t.Errorf("announced %+v", e)
	}

	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	other := newSite(t)
	other.set(func() {
		other.before = func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, thief.URL+r.URL.RequestURI(), http.StatusMovedPermanently)
			return true
		}
	})
	fails(t, t.TempDir(), "clone", "-q", other.remote("reader"), "a")
	if len(stolen) != 0 {
		t.Errorf("another host was asked, with %q", stolen)
	}
}

// TestStrangeRequests holds that what is no request of a git client does not reach the
// host.
func TestStrangeRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.work()
	long := strings.Repeat(smarthttp.Pkt(codehost.ZeroSHA+" "+strings.Repeat("1", 40)+" refs/heads/svc/"+strings.Repeat("a", 200)), 300)
	const kind = "application/x-git-receive-pack-request"
	silent := smarthttp.Pkt(codehost.ZeroSHA+" "+strings.Repeat("1", 40)+" refs/heads/svc/a\x00x") + smarthttp.Flush
	hidden := smarthttp.Pkt(codehost.ZeroSHA+" "+strings.Repeat("1", 40)+" refs/heads/svc/a\x00x \x00 report-status") + smarthttp.Flush
	option := smarthttp.Pkt(codehost.ZeroSHA+" "+strings.Repeat("1", 40)+" refs/heads/svc/a\x00report-status push-options") +
		smarthttp.Flush + smarthttp.Pkt("ci.skip") + smarthttp.Flush
	for name, c := range map[string]struct {
		path, kind, encoding, body string
		status                     int
	}{
		"another service":    {"/git-upload-archive", kind, "", "", 404},
		"another type":       {"/git-receive-pack", "text/plain", "", "0000", 415},
		"a packed push":      {"/git-receive-pack", kind, "gzip", "0000", 415},
		"no packets":         {"/git-receive-pack", kind, "", "hello world", 400},
		"too many commands":  {"/git-receive-pack", kind, "", long, 400},
		"no report":          {"/git-receive-pack", kind, "", silent, 400},
		"a hidden report":    {"/git-receive-pack", kind, "", hidden, 400},
		"a push option":      {"/git-receive-pack", kind, "", option, 400},
		"a probe":            {"/git-receive-pack", kind, "", "0000", 200},
		"a signed push":      {"/git-receive-pack", kind, "", smarthttp.Pkt("push-cert\x00report-status\n") + "0000", 400},
		"another encoding":   {"/git-upload-pack", "application/x-git-upload-pack-request", "br", "0000", 415},
		"a read by its type": {"/git-upload-pack", kind, "", "0000", 415},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+Path(shopID)+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("x", "writer")
		r.Header.Set("Content-Type", c.kind)
		if c.encoding != "" {
			r.Header.Set("Content-Encoding", c.encoding)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d, not %d", name, resp.StatusCode, c.status)
		}
	}
	if asked := s.heard(); len(asked) != 0 {
		t.Errorf("the host was asked %d times, first for %s", len(asked), asked[0].URL)
	}
}

// TestMemoryOfALargeClone holds that a clone of 100 MB, with both servers in this
// process, takes less than 32 MB, although nothing of it is freed meanwhile.
func TestMemoryOfALargeClone(t *testing.T) {
	s := newSite(t)
	dir := s.work()
	f, err := os.Create(filepath.Join(dir, "large"))
	if err == nil {
		_, err = io.CopyN(f, rand.Reader, 100<<20)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, "add", "large")
	run(t, dir, "commit", "-q", "-m", "large")
	run(t, dir, "push", "-q", s.repo(), "main")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	run(t, t.TempDir(), "clone", "-q", "--bare", s.remote("reader"), "a")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("allocated %d MB", used>>20)
	} else {
		t.Logf("allocated %d KB", used>>10)
	}
}
