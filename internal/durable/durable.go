// Package durable writes files that survive a loss of power: after a crash, too, a
// reader finds either all of the old text or all of the new text.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes text to an existing file and keeps its owner, so that root may
// replace a file that another user reads. Replace follows a symbolic link. It
// writes a temporary file first, named by pattern (as in os.CreateTemp), which a
// killed process leaves behind.
func Replace(path, pattern string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	next, err := Temporary(path, pattern, text)
	if err != nil {
		return err
	}
	defer os.Remove(next) // absent after a successful rename
	if err := likewise(next, path); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return Name(path)
}

// Temporary writes text to a new file beside path, with mode 0600, and answers the
// file's name. pattern is that of os.CreateTemp.
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

// Name syncs the directory of path, so that the file's name survives a loss of
// power.
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

// Stream writes what from reads to the file path, with mode 0600, in place of a file
// that is there. If from fails, the file of before is left as it is. Stream writes a
// temporary file first, named by pattern (as in os.CreateTemp), which a killed process
// leaves behind.
func Stream(path, pattern string, from io.Reader) error {
	f, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // absent after a successful rename
	if _, err = io.Copy(f, from); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return Name(path)
}

// Folder makes a folder with mode 0700, and those above it, so that their names survive
// a loss of power.
func Folder(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := Folder(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return Name(dir)
}
