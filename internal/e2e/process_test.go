package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one running program. What it writes is kept in a file that its
// successors append to.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	gone chan struct{} // closed once it has ended
	log  string

	mu   sync.Mutex
	said bytes.Buffer // since its own start
}

// start runs a program. env comes on top of a minimal environment.
func start(t *testing.T, log string, env []string, argv ...string) *process {
	t.Helper()
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, gone: make(chan struct{}), log: log, cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "LANG=C.UTF-8"}, env...)
	out := writer(func(b []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.said.Write(b)
		return file.Write(b)
	})
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// It goes with the test, also when that is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = 2 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended shows in what it said
		file.Close()
		close(p.gone)
	}()
	t.Cleanup(p.kill)
	return p
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// output is what the process has written so far.
func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.gone
}

// stop asks the process to end, as an operator would.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.gone:
	case <-time.After(20 * time.Second):
		p.t.Errorf("%s does not stop", p.cmd)
		p.kill()
	}
}

func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}
