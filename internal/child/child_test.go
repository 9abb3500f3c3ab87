package child

import (
	"bufio"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"yardmaster/internal/proof/patience"
)

// A process lives on when the thread of the goroutine that asked for it ends.
func TestProcessOutlivesThreads(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, out := io.Pipe()
	cmd.Stdout = out
	ended, started := make(chan error, 1), make(chan int)
	ask := func() {
		if err := Start(cmd, func(err error) { out.Close(); ended <- err }); err != nil {
			t.Error(err)
		}
		started <- syscall.Gettid()
	}
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with this goroutine
		if syscall.Gettid() != syscall.Getpid() {
			ask()
			return
		}
		go func() { // the first thread of a program never ends
			runtime.LockOSThread()
			ask()
		}()
	}()
	thread := <-started
	patience.Until(t, "the thread has ended", func() bool { return syscall.Tgkill(syscall.Getpid(), thread, 0) != nil })
	if _, err := io.WriteString(in, "still here\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(r).ReadString('\n'); line != "still here\n" {
		t.Errorf("the process says %q, %v", line, err)
	}
	in.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestProgramIsNotThere(t *testing.T) {
	t.Parallel()
	if err := Start(exec.Command("/nowhere/at/all"), func(error) { t.Error("it ended") }); err == nil {
		t.Error("it started")
	}
}
