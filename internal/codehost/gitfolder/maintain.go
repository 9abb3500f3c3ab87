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
	if err := dir.unlock(now); err != nil {
		return err
	}
	_, err := dir.Output(ctx, "gc", "--quiet", "--prune=2.weeks.ago")
	return err
}

// Pack is Maintain without removing an object: what is unreachable is put into packs of
// its own, for Prune.
func (dir Folder) Pack(ctx context.Context, now time.Time) error {
	if err := dir.unlock(now); err != nil {
		return err
	}
	_, err := dir.Output(ctx, "gc", "--quiet", "--cruft", "--prune=never")
	return err
}

// Unsynced is a folder that is not in use yet: each of its refs is not put on the disk by itself.
// PackRefs does that for all of them together.
func (dir Folder) Unsynced() Folder { return dir.With([2]string{"core.fsync", "committed,-reference"}) }

// PackRefs puts all refs into one file, and that on the disk.
func (dir Folder) PackRefs(ctx context.Context) error {
	_, err := dir.Output(ctx, "pack-refs", "--all")
	return err
}

// Cruft tells whether Pack has found unreachable objects.
func (dir Folder) Cruft() (bool, error) {
	found, err := filepath.Glob(filepath.Join(dir.path, "objects/pack/*.mtimes"))
	return len(found) > 0, err
}

// Prune removes the objects that are unreachable and were stored before a time. The caller
// keeps everybody from moving a ref meanwhile: an object that nothing refers to when git
// looks would be gone when a ref comes to refer to it.
func (dir Folder) Prune(ctx context.Context, before time.Time) error {
	expire := fmt.Sprintf("@%d", before.Unix())
	if _, err := dir.Output(ctx, "repack", "-q", "-d", "--cruft", "--cruft-expiration="+expire); err != nil {
		return err
	}
	_, err := dir.Output(ctx, "prune", "--expire="+expire)
	return err
}

// Size is how many bytes the files of the repository have.
func (dir Folder) Size() (bytes int64, err error) {
	err = filepath.WalkDir(dir.path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // git has just removed it
		}
		return err
	})
	return bytes, err
}

// unlock removes the locks of refs that are older than an hour.
func (dir Folder) unlock(now time.Time) error {
	for _, locked := range []string{"HEAD", "packed-refs", "refs"} {
		if err := unlock(filepath.Join(dir.path, locked), now.Add(-time.Hour)); err != nil {
			return fmt.Errorf("maintain %s: %w", dir, err)
		}
	}
	return nil
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
