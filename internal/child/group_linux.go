package child

import "syscall"

// Group has a process begin a group of its own, so that signals of a terminal pass it by, and sends
// it a signal when the thread that starts it ends (see Start).
func Group(atEnd syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: atEnd}
}
