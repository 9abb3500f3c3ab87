// Package child starts processes that end with this one. The kernel counts a thread of the
// program as the parent of a process, not the program: a process started from a thread that
// ends would be killed while the program lives.
package child

import (
	"os/exec"
	"runtime"
)

// Start starts a command from a thread that lives as long as the process of the command,
// and calls ended with what Wait returns. A process with Pdeathsig, or a sandbox with
// --die-with-parent, gets its signal when the thread that started it ends, not when the
// program does (prctl(2), PR_SET_PDEATHSIG), and a thread of Go ends with a goroutine that
// is locked to it. ended is called in a goroutine of its own, and not if Start fails.
func Start(cmd *exec.Cmd, ended func(error)) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			runtime.UnlockOSThread()
			return
		}
		err = cmd.Wait()
		runtime.UnlockOSThread() // the thread goes on: others may have started processes from it
		ended(err)
	}()
	return <-started
}
