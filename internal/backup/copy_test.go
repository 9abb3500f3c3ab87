package backup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A repository is found whatever the name of the data folder is; what a first push is making is none.
func TestRepositories(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "data [1]*")
	for _, name := range []string{"acme/web.git", "acme/notes", ".new-1/web.git", "beta/a.git"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Repositories(root)
	if err != nil || !slices.Equal(found, []string{"acme/web.git", "beta/a.git"}) {
		t.Error(found, err)
	}
}

// A file is put back whole or not at all, and over none.
func TestPutFile(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(from, "broken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, KeyFile), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := PutFile(from, "broken", filepath.Join(to, "broken")); err == nil {
		t.Error("what cannot be read was put back")
	}
	if err := PutFile(from, "none", filepath.Join(to, "none")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Error("something is left:", left, err)
	}
	at := filepath.Join(to, KeyFile)
	if err := PutFile(from, KeyFile, at); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(at, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := PutFile(from, KeyFile, at); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(at); err != nil || string(text) != "another" {
		t.Errorf("%q, %v", text, err)
	}
}
