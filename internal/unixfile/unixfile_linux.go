package unixfile

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Times are when the state of a file and when its bytes last changed.
func Times(st *syscall.Stat_t) (changed, modified syscall.Timespec) { return st.Ctim, st.Mtim }

// Admit gives the owner of a folder access to it. The folder is opened by name, and no link followed.
func Admit(at int, name string) error {
	place, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(place) //nolint:errcheck // it was only named
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(place), 0o700)
}
