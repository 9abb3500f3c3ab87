package unixfile

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Times are when the state of a file and when its bytes last changed.
func Times(st *syscall.Stat_t) (changed, modified syscall.Timespec) {
	return st.Ctimespec, st.Mtimespec
}

// Admit gives the owner of a folder access to it. No link is followed.
func Admit(at int, name string) error {
	return unix.Fchmodat(at, name, 0o700, unix.AT_SYMLINK_NOFOLLOW)
}
