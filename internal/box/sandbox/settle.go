package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Settle takes a folder back that a sandbox could write, once no process of it is left: all of
// it is this process's user's, who alone may write it, and agents may read it. It returns how
// many bytes there are, and passes each plain file to look, which may be nil. Links are left
// as they are and never followed; what is neither a file, a folder nor a link is deleted.
func Settle(dir string, look func(name string, f *os.File) error) (bytes int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, fmt.Errorf("sandbox: %w", err)
	}
	defer root.Close()
	own := func(name string) error {
		if !Separate() {
			return nil
		}
		return root.Lchown(name, os.Geteuid(), os.Getegid())
	}
	var walk func(folder string) error
	walk = func(folder string) error {
		// Both before it is read: its user may have closed it.
		if err := errors.Join(own(folder), root.Chmod(folder, 0o755)); err != nil {
			return err
		}
		f, err := root.Open(folder)
		if err != nil {
			return err
		}
		entries, err := f.ReadDir(-1)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			switch {
			case e.IsDir():
				err = walk(name)
			case e.Type()&fs.ModeSymlink != 0:
				err = own(name)
			case e.Type().IsRegular():
				err = settleFile(root, name, own, look, &bytes)
			default:
				err = root.Remove(name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk("."); err != nil {
		return bytes, fmt.Errorf("sandbox: take %s back: %w", dir, err)
	}
	return bytes, nil
}

func settleFile(root *os.Root, name string, own func(string) error, look func(string, *os.File) error, bytes *int64) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755 // and neither setuid nor setgid
	}
	if err := errors.Join(root.Chmod(name, mode), own(name)); err != nil {
		return err
	}
	*bytes += info.Size()
	if look == nil {
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(look(name, f), f.Close())
}
