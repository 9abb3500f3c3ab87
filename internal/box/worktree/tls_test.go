package worktree

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// A host behind an authority of its own is reached by git with a file that has the
// authority, and not without.
func TestPrivateAuthority(t *testing.T) {
	t.Setenv("GIT_SSL_CAINFO", "") // it would win
	h := newHost(t)
	behind, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host}))
	t.Cleanup(front.Close)
	address := front.URL + behind.Path
	dir := t.TempDir()
	authorities := filepath.Join(dir, "authorities.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(authorities, text, 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	before := h.requests.Load()
	if err := c.Fetch(t.Context(), address, token); err == nil {
		t.Error("git believes an authority that nobody has named")
	}
	if err := LsRemote(t.Context(), address, token, ""); err == nil {
		t.Error("ls-remote believes an authority that nobody has named")
	}
	if n := h.requests.Load() - before; n != 0 {
		t.Errorf("the host behind it was sent %d requests", n)
	}
	c.Authorities = authorities
	if err := c.Fetch(t.Context(), address, token); err != nil {
		t.Error(err)
	}
	sha, err := c.Resolve(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Push(t.Context(), address, token, sha, "refs/heads/new", false); err != nil {
		t.Error(err)
	}
	if _, err := c.FetchRef(t.Context(), address, token, "refs/heads/new"); err != nil {
		t.Error(err)
	}
	if err := LsRemote(t.Context(), address, token, authorities); err != nil {
		t.Error(err)
	}
}
