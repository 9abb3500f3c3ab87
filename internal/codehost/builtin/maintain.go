package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
)

const (
	// pruneGrace is how old an object that nothing refers to is when it is removed. What
	// a request of ours or of a client has just stored has no ref yet.
	pruneGrace = 6 * time.Hour
	// lookAgain is how often somebody who waits for a lock looks whether it is free.
	lookAgain = 20 * time.Millisecond
	// lockFile is the file of a repository that is locked: shared by everybody who moves
	// refs, alone by Maintain. The servers that share the folder share the lock.
	lockFile = "yardmaster-refs"
)

// Maintain packs a repository and gives back the bytes of what nothing refers to for six
// hours. Git's own upkeep is off, so that no request waits for it. Packing keeps nobody
// waiting; while objects are removed, whoever pushes or merges waits. While somebody
// pushes, nothing is removed: the next call does.
func (h *Host) Maintain(ctx context.Context, r codehost.Repo, now time.Time) error {
	return h.maintain(ctx, r, now, now.Add(-pruneGrace))
}

// maintain is Maintain that removes what was stored before a time.
func (h *Host) maintain(ctx context.Context, r codehost.Repo, now, before time.Time) error {
	dir, err := h.open(r)
	if err != nil {
		return err
	}
	if err := h.sweep(now); err != nil {
		return err
	}
	deleted, may, err := h.deleting()
	if err != nil || !may { // the next call does it
		return err
	}
	defer deleted()
	if err := dir.Pack(ctx, now); err != nil {
		return err
	}
	if cruft, err := dir.Cruft(); err != nil || !cruft {
		return err
	}
	unlock, err := lockRefs(ctx, dir, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	return dir.Prune(ctx, before)
}

// Size is how many bytes a repository has on the disk.
func (h *Host) Size(r codehost.Repo) (int64, error) {
	dir, err := h.open(r)
	if err != nil {
		return 0, err
	}
	return dir.Size()
}

// writable is a repository whose objects stay while its refs are moved, until done.
type writable struct {
	gitfolder.Folder
	done func()
}

// openToWrite is open for somebody who moves refs. The caller calls done.
func (h *Host) openToWrite(ctx context.Context, r codehost.Repo) (w writable, err error) {
	if w.Folder, err = h.open(r); err != nil {
		return w, err
	}
	w.done, err = lockRefs(ctx, w.Folder, syscall.LOCK_SH)
	return w, err
}

// lockRefs locks the refs of a repository until unlock is called. With LOCK_NB it fails
// with EWOULDBLOCK if it would have to wait, and else with the error of ctx.
func lockRefs(ctx context.Context, dir gitfolder.Folder, how int) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir.Path(), lockFile), os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the refs of %s: %w", dir, err)
	}
	var tick *time.Ticker
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil // which unlocks it
		}
		if !errors.Is(err, syscall.EINTR) && (!errors.Is(err, syscall.EWOULDBLOCK) || how&syscall.LOCK_NB != 0) {
			return nil, errors.Join(fmt.Errorf("lock the refs of %s: %w", dir, err), f.Close())
		}
		if tick == nil {
			tick = time.NewTicker(lookAgain)
			defer tick.Stop()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
}
