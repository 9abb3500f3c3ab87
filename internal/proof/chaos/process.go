package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"yardmaster/internal/child"
)

// Process is one running program. Its output is appended to a file, which later
// processes of the same program continue.
type Process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	gone chan struct{} // closed once the process has ended

	mu   sync.Mutex
	said bytes.Buffer // output of this process
}

// Start runs a program. env is added to a minimal environment whose home is the
// given folder. The process ends with this one, even when this one is killed.
func Start(log, home string, env []string, argv ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &Process{gone: make(chan struct{}), cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"}, env...)
	out := writer(func(b []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.said.Write(b)
		return file.Write(b)
	})
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = 2 * time.Second
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := child.Start(p.cmd, func(error) { // its output tells how it ended
		file.Close()
		close(p.gone)
	}); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// Output is what the process has written so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// Kill kills the process (SIGKILL) and waits for its end.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.gone
}

// Freeze suspends the process until Thaw.
func (p *Process) Freeze() { p.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw ends a Freeze.
func (p *Process) Thaw() { p.cmd.Process.Signal(syscall.SIGCONT) }

// Set sets the clock of a `yardmaster astray` some whole seconds ahead of the
// machine's.
func (p *Process) Set(ahead time.Duration) {
	fmt.Fprintf(p.in, "%d\n", ahead/time.Second) // fails if the process has ended
}

// Stop asks the process to end, as an operator would. It kills a process that has
// not ended after 20 s, and then fails.
func (p *Process) Stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.gone:
		return nil
	case <-time.After(20 * time.Second):
		p.Kill()
		return fmt.Errorf("%s does not stop", p.cmd)
	}
}

// Signal sends a signal and does not wait.
func (p *Process) Signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended tells whether the process has ended.
func (p *Process) Ended() bool { return closed(p.gone) }
