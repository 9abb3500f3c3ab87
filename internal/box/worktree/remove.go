package worktree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"yardmaster/internal/unixfile"
)

// deepest limits how many nested folders are open while a tree is removed. A deeper
// folder is moved to the top first, because an agent can nest more folders than a
// process may open.
const deepest = 32

// RemoveTree removes dir and its contents, even where the owner has no access to a
// folder. It follows no links. A missing dir is no error.
func RemoveTree(dir string) error {
	err := os.Remove(dir)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	top, err := openFolder(unix.AT_FDCWD, dir)
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	defer top.Close()
	r := removal{top: top}
	if err := r.empty(top, 0); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return os.Remove(dir)
}

type removal struct {
	top    *os.File
	lifted int
}

func (r *removal) empty(dir *os.File, depth int) error {
	for {
		names, err := dir.Readdirnames(1024)
		if len(names) == 0 {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for _, name := range names {
			if err := r.remove(dir, name, depth); err != nil {
				return err
			}
		}
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

func (r *removal) remove(dir *os.File, name string, depth int) error {
	at := int(dir.Fd())
	if err := unix.Unlinkat(at, name, 0); !errors.Is(err, unix.EISDIR) {
		return err
	}
	folder, err := openFolder(at, name)
	if err != nil {
		return err
	}
	defer folder.Close()
	if depth == deepest {
		return r.lift(at, name)
	}
	if err := r.empty(folder, depth+1); err != nil {
		return err
	}
	return unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
}

// lift moves a folder to the top, under a free name.
func (r *removal) lift(at int, name string) error {
	for {
		r.lifted++
		err := unix.Renameat(at, name, int(r.top.Fd()), ".lifted-"+strconv.Itoa(r.lifted))
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
}

// openFolder opens a folder and gives its owner access to it.
func openFolder(at int, name string) (*os.File, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags|unix.O_RDONLY, 0)
	if errors.Is(err, unix.EACCES) {
		if err := unixfile.Admit(at, name); err != nil {
			return nil, err
		}
		fd, err = unix.Openat(at, name, flags|unix.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	_ = unix.Fchmod(fd, 0o700) // fails for another user's folder, which root may write anyway
	return os.NewFile(uintptr(fd), name), nil
}
