package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
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

// Stream replaces a file as a whole, or leaves it and no other file.
func TestStream(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := Folder(dir); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := Stream(file, ".put-*", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := Stream(file, ".put-*", io.MultiReader(strings.NewReader("ne"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("%q %v", text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if err := Folder(filepath.Join(file, "x")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
}
