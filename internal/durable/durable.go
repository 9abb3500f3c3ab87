// Package durable writes files that outlive a loss of power: whoever reads one
// finds all of the old text or all of the new one, also after a crash.
package durable

import (
	"os"
	"path/filepath"
	"syscall"
)

// Replace puts a text in the place of a file that exists, for the owner that the
// file has: root may do what another user is to read. A symbolic link is
// followed. What a killed process leaves behind is called as pattern says, which
// is that of os.CreateTemp.
func Replace(path, pattern string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	next, err := Temporary(path, pattern, text)
	if err != nil {
		return err
	}
	defer os.Remove(next) // not there any more, if all went well
	if err := likewise(next, path); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return Name(path)
}

// Temporary writes a text to a new file beside path, mode 0600, and answers its
// name.
func Temporary(path, pattern string, text []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return "", err
	}
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

// Name makes sure that the name of a file outlives a loss of power.
func Name(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func likewise(path, as string) error {
	info, err := os.Stat(as)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() {
		return nil
	}
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}
