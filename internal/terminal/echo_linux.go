package terminal

import "golang.org/x/sys/unix"

// Mute has a terminal show nothing of what is typed. term.Restore undoes it.
func Mute(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}
