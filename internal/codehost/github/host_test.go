package github

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/hosttest"
	peer "yardmaster/internal/proof/github"
)

// TestHost holds that GitHub does what every code host does.
func TestHost(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, func(t *testing.T) hosttest.Site {
		w := newWorld(t, peer.Options{})
		repo := w.peer.Repo("acme/empty", peer.NewRepo{Private: true})
		remote := strings.Replace(repo.CloneURL(), "://", "://x-access-token:"+w.inst.Token()+"@", 1)
		return hosttest.Site{
			Host: w.host, Repo: codehost.Repo{Host: hostName, ID: number(repo.ID), Owner: "acme", Name: "empty"}, Remote: remote,
			Pull: func(t *testing.T, head, base string) int64 {
				return int64(repo.OpenPull(w.ann, peer.NewPull{Head: head, Base: base}).Number)
			},
		}
	})
}

// TestUpkeep holds that mirrors are packed and stay, and go once they are not used; what
// is asked then is fetched again.
func TestUpkeep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	read := func() {
		t.Helper()
		content, _, err := w.host.ReadFile(ctx, w.shop, "main", "README.md")
		if err != nil || string(content) != "# Shop\n" {
			t.Fatalf("%q, %v", content, err)
		}
	}
	mirrors := func() int {
		t.Helper()
		found, err := os.ReadDir(w.host.cfg.Folder)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	read()
	now := w.peer.Now()
	if err := w.host.Upkeep(ctx, now, now.Add(-time.Hour)); err != nil || mirrors() != 1 {
		t.Errorf("%d mirrors, %v", mirrors(), err)
	}
	read()
	w.peer.Advance(48 * time.Hour)
	read() // it is used
	if err := w.host.Upkeep(ctx, now, now.Add(24*time.Hour)); err != nil || mirrors() != 1 {
		t.Errorf("used: %d mirrors, %v", mirrors(), err)
	}
	if err := w.host.Upkeep(ctx, now, now.Add(72*time.Hour)); err != nil || mirrors() != 0 {
		t.Errorf("unused: %d mirrors, %v", mirrors(), err)
	}
	read()
}

// TestCredentialIsNotInTheMirror holds that no file of the mirror has the credential of
// a fetch.
func TestCredentialIsNotInTheMirror(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	if _, _, err := w.host.ReadFile(t.Context(), w.shop, "main", "README.md"); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(w.host.cfg.Folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range []string{"ghs_", "Basic ", "x-access-token"} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s has the credential", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFetchOutlivesItsCaller holds that a fetch goes on when its caller has gone, that
// callers share it, and that Close ends it.
func TestFetchOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	sha := w.repo.Head("main")
	begun, goOn := make(chan struct{}), make(chan struct{})
	var fetches atomic.Int64
	inner := httputil.NewSingleHostReverseProxy(must(url.Parse(w.peer.Web)))
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("command=fetch")) && fetches.Add(1) == 1 {
			close(begun)
			<-goOn
		}
		inner.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	h := w.connect(func(c *Config) { c.Addresses.Web = front.URL })
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, _, err := h.ReadFile(gone, w.shop, sha, "README.md")
		left <- err
	}()
	<-begun
	leave()
	wants(t, "the caller has gone", <-left, context.Canceled)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, _, err := h.ReadFile(t.Context(), w.shop, sha, "README.md"); err != nil {
				t.Error(err)
			}
		})
	}
	close(goOn)
	group.Wait()
	if n := fetches.Load(); n != 1 {
		t.Errorf("there were %d fetches", n)
	}
	h.Close()
	if _, _, err := h.ReadFile(t.Context(), w.shop, strings.Repeat("1", 40), "README.md"); err == nil {
		t.Error("a closed host fetches")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
