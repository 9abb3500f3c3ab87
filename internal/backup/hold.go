package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// holdFile is the file in the folder of the repositories that a backup holds while it is made. The
// hold ends with the process, however that ends.
const holdFile = ".backup-lock"

// lookAgain is how often a backup that waits for a deletion looks whether it has ended.
const lookAgain = 50 * time.Millisecond

// Hold keeps servers from deleting objects of git and of the store until release is called. It
// waits for what they are deleting now.
func Hold(ctx context.Context, repositories string) (release func(), err error) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		release, free, err := lock(repositories, syscall.LOCK_EX)
		if err != nil || free {
			return release, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Deleting is called before something is deleted, and done after it. may is false while a backup
// is made: then nothing may be deleted.
func Deleting(repositories string) (done func(), may bool, err error) {
	return lock(repositories, syscall.LOCK_SH)
}

func lock(repositories string, how int) (release func(), free bool, err error) {
	f, err := os.OpenFile(filepath.Join(repositories, holdFile), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("the lock of backups: %w", err)
	}
	if os.Geteuid() == 0 {
		if err := yield(f, repositories); err != nil {
			return nil, false, errors.Join(fmt.Errorf("the lock of backups: %w", err), f.Close())
		}
	}
	switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return nil, false, f.Close()
	case err != nil:
		return nil, false, errors.Join(fmt.Errorf("the lock of backups: %w", err), f.Close())
	}
	return func() {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		f.Close()
	}, true, nil
}

// yield gives the lock that root has opened to the owner of the folder, as a server that is not root
// opens it, too. What has a name elsewhere as well is not given away.
func yield(f *os.File, folder string) error {
	var dir, file syscall.Stat_t
	err := errors.Join(syscall.Stat(folder, &dir), syscall.Fstat(int(f.Fd()), &file))
	if err != nil || file.Nlink != 1 {
		return err
	}
	return f.Chown(int(dir.Uid), int(dir.Gid))
}
