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

// keepOutput has a terminal keep what was written and not shown yet when Ctrl-C is
// pressed. Otherwise it throws that away after the program has had the signal, and so
// what the program writes as its last (NOFLSH in termios(3)). restore undoes it. A
// program in the background may not set its terminal, and a file has nothing to set.
func keepOutput(fd int) (restore func()) {
	front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || front != unix.Getpgrp() {
		return func() {}
	}
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil || t.Lflag&unix.NOFLSH != 0 {
		return func() {}
	}
	before := *t
	t.Lflag |= unix.NOFLSH
	if unix.IoctlSetTermios(fd, unix.TCSETS, t) != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETSW, &before) }
}
