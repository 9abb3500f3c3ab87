package unixfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	s, err := Room(t.TempDir())
	if err != nil || s.Total < s.Used || s.Total < s.Free || s.Total < 1<<20 || s.Files != s.UsedFiles+s.FreeFiles {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Room("/nowhere"); err == nil {
		t.Error("a folder that is not there has room")
	}
}

// A closed folder is opened to its owner, and what a link leads to is left alone.
func TestAdmit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"closed", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o000); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("other", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	if err := Admit(at, "closed"); err != nil {
		t.Error(err)
	}
	_ = Admit(at, "link") // whether that is an error is up to the system
	for name, want := range map[string]os.FileMode{"closed": 0o700, "other": 0} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		changed, modified := Times(info.Sys().(*syscall.Stat_t))
		if changed.Sec < modified.Sec || modified.Sec != info.ModTime().Unix() {
			t.Errorf("%s: %v %v", name, changed, modified)
		}
	}
}
