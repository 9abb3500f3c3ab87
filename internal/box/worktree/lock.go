package worktree

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPause is the pause between two attempts to take a lock.
const lockPause = 20 * time.Millisecond

// lock takes the exclusive lock file at path and returns the function that releases
// it. Every call opens the file anew, so the lock also separates runs of one box.
// The kernel releases the lock when its process dies.
func lock(ctx context.Context, path string) (release func(), err error) {
	return lockAs(ctx, path, syscall.LOCK_EX)
}

// lockAs is lock with a given kind: LOCK_EX, or LOCK_SH for a shared lock.
func lockAs(ctx context.Context, path string, how int) (release func(), err error) {
	f, err := openLock(ctx, path, how)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// openLock takes a lock as lockAs does. The lock ends when the file is closed, by this
// process and by all that inherit it.
func openLock(ctx context.Context, path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("worktree: lock the cache: %w", err)
	}
	tick := time.NewTicker(lockPause)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			f.Close()
			return nil, fmt.Errorf("worktree: lock the cache: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("worktree: wait for the cache's lock: %w", ctx.Err())
		}
	}
}
