package unixfile

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another process has a lock.
var ErrHeld = errors.New("another process has the lock")

// A process waits three seconds for the lock of its predecessor: what the killed one was about to
// start keeps the lock until it executes its own program.
const (
	looks = 50
	pause = 60 * time.Millisecond
)

// Sole locks the file at path, which it makes, for this process alone. The lock ends with the
// file, or with the process. If another process still has it after three seconds, Sole fails with
// ErrHeld.
func Sole(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || tries == looks {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = ErrHeld
			}
			return nil, errors.Join(err, f.Close())
		}
		time.Sleep(pause)
	}
}
