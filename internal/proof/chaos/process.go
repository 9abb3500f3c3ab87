package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"yardmaster/internal/child"
)

// hung is the longest wait for a process, or for an answer of one. Nothing that works takes
// as long, on whatever machine: who waits in vain waits for something that hangs.
const hung = 5 * time.Minute

// Process is one running program. It appends its output to a file, which later processes
// of the same program continue.
type Process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	gone chan struct{} // closed once the process has ended

	mu   sync.Mutex
	log  *os.File
	from int64        // where the log goes on that has not been read; below zero: it has been, to the end
	said bytes.Buffer // output of this process, as far as it has been read
}

// Start runs a program. env is added to a minimal environment whose home is the
// given folder. The process ends with this one, even when this one is killed.
func Start(log, home string, env []string, argv ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	p := &Process{gone: make(chan struct{}), cmd: exec.Command(argv[0], argv[1:]...), log: file}
	if p.from, err = file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"}, env...)
	// It writes to the file itself: its end is known as soon as it has ended, whoever else
	// has the file still.
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := child.Start(p.cmd, func(error) { // its output tells how it ended
		p.read(true)
		close(p.gone)
	}); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// read reads what the process has written since, and closes the log at its end.
func (p *Process) read(last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.from < 0 {
		return
	}
	n, _ := p.said.ReadFrom(io.NewSectionReader(p.log, p.from, math.MaxInt64-p.from)) // it can be read until it is closed
	p.from += n
	if last {
		p.log.Close()
		p.from = -1
	}
}

// Output is what the process has written so far.
func (p *Process) Output() string {
	p.read(false)
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

// Stop asks the process to end, as an operator would. It kills a process that hangs, and
// then fails.
func (p *Process) Stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.gone:
		return nil
	case <-time.After(hung):
		p.Kill()
		return fmt.Errorf("%s does not stop", p.cmd)
	}
}

// Signal sends a signal and does not wait.
func (p *Process) Signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Gone is closed once the process has ended.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Code is the exit code of a process that has ended, -1 of one that a signal ended.
func (p *Process) Code() int { return p.cmd.ProcessState.ExitCode() }

// Ended tells whether the process has ended.
func (p *Process) Ended() bool { return closed(p.gone) }
