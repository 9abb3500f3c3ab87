package durable

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Replace keeps the owner of a file and follows a link, and leaves no other file.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	owner := os.Geteuid()
	if owner == 0 {
		owner = 65534
		if err := os.Chown(file, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := Replace(link, ".next-*", []byte("new")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "new" {
		t.Errorf("%q %v", text, err)
	}
	info, err := os.Lstat(file)
	if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != owner || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if err := Replace(filepath.Join(dir, "none"), ".next-*", nil); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}
