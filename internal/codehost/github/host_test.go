package github

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		if bytes.Contains(text, []byte("ghs_")) || bytes.Contains(text, []byte("Basic ")) || bytes.Contains(text, []byte("x-access-token")) {
			t.Errorf("%s has the credential", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
