package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"yardmaster/internal/unixfile"
)

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// writeJSON replaces a file atomically, and returns once it is synced to disk.
func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	next := path + ".next"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// diskFree returns how many bytes this process may still write under dir, and the
// size of the file system. Both are 0 if dir cannot be examined.
func diskFree(dir string) (free, total int64) {
	s, err := unixfile.Room(dir)
	if err != nil {
		return 0, 0
	}
	return s.Free, s.Total
}

// diskUse returns roughly how many bytes of the disk a folder and its contents
// take.
func diskUse(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // unreadable entries are left out of the sum
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += st.Blocks * 512
			}
		}
		return nil
	})
	return sum
}

// sameDisk tells whether two folders are on one file system.
func sameDisk(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) == nil && unix.Stat(b, &y) == nil && x.Dev == y.Dev
}

// lockFile is the lock in a folder that only one box may use at a time.
const lockFile = "lock"

// free waits until no process runs a box with a data folder, and fails if one goes on.
func free(dataDir string) error {
	lock, err := lockDir(dataDir)
	if err != nil {
		return fmt.Errorf("box: %w", err)
	}
	return lock.Close()
}

// lockDir makes this process the only box that uses a data or work folder. The lock
// ends with the process.
func lockDir(dir string) (*os.File, error) {
	f, err := unixfile.Sole(filepath.Join(dir, lockFile))
	if errors.Is(err, unixfile.ErrHeld) {
		err = fmt.Errorf("another box is running with the folder %s: stop it, or give this one a folder of its own", dir)
	}
	return f, err
}
