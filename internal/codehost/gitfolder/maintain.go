package gitfolder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Maintain packs a repository. It removes objects that were unreachable for two
// weeks, and ref locks that are older than an hour: a crash leaves them behind, and
// a branch with such a lock could never move again. Pushes and reads continue
// meanwhile. Git's own upkeep is off, so that no request waits for it.
func (dir Folder) Maintain(ctx context.Context, now time.Time) error {
	for _, locked := range []string{"HEAD", "packed-refs", "refs"} {
		if err := unlock(filepath.Join(dir.path, locked), now.Add(-time.Hour)); err != nil {
			return fmt.Errorf("maintain %s: %w", dir, err)
		}
	}
	_, err := dir.Output(ctx, "gc", "--quiet", "--prune=2.weeks.ago")
	return err
}

// unlock removes the lock of a file, or every lock in a folder, from before a time.
// No ref has a name that ends in .lock.
func unlock(path string, before time.Time) error {
	remove := func(lock string) error {
		info, err := os.Stat(lock)
		if err == nil && info.ModTime().Before(before) {
			err = os.Remove(lock)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a push has just released it
		}
		return err
	}
	if err := remove(path + ".lock"); err != nil {
		return err
	}
	return filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.Type().IsRegular() && strings.HasSuffix(path, ".lock"):
			return remove(path)
		}
		return nil
	})
}
