package child

import "syscall"

// Group has a process begin a group of its own, so that signals of a terminal pass it by. No signal
// is sent to it when who starts it ends: macOS cannot.
func Group(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
