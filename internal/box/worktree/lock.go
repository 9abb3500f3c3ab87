package worktree

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPause is between two tries for a lock that somebody else holds.
const lockPause = 20 * time.Millisecond

// lock takes the exclusive lock file at path and returns how to release it.
// Every caller opens the file anew, so that it keeps runs of one box apart as
// well as several boxes; the kernel releases it when the holder dies.
func lock(ctx context.Context, path string) (release func(), err error) {
	return lockAs(ctx, path, syscall.LOCK_EX)
}

// lockAs is lock, or, with LOCK_SH, one of many that hold it at a time.
func lockAs(ctx context.Context, path string, how int) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("worktree: lock the cache: %w", err)
	}
	tick := time.NewTicker(lockPause)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
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
