package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"yardmaster/internal/child"
)

// ErrKilled is returned by Wait after Kill, or after the end of Start's context.
var ErrKilled = errors.New("sandbox: killed")

// ExitError reports an agent that ended by itself with a code other than 0: its
// exit code, or 128 plus the number of the signal that ended it.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("sandbox: the agent ended with code %d", e.Code)
}

// killGrace is how long the shim may take to end all processes before the box does
// it from outside. At the lower levels an agent can stop the shim.
const killGrace = 3 * time.Second

// Process is a running sandbox.
type Process struct {
	stdin      io.WriteCloser
	stdout     io.ReadCloser
	task, home string
	level      Level
	pid        int
	grace      time.Duration // killGrace, except in a test
	done       chan struct{}
	err        error // valid after done

	mu      sync.Mutex
	control *os.File // carries orders to the shim; nil once closed
	killed  bool
}

// Start starts spec and returns once the agent's program has been executed. The end
// of ctx kills it. A root box gives the two folders to an unprivileged user, who
// must be able to reach them at the levels below Bubblewrap. Start returns
// ErrUnavailable if this machine does not offer the level, and *ClosedError if the
// agent's user cannot reach a folder.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := giveTo(spec.agentUser(), append([]string{spec.Task, spec.Home}, spec.Writable...)...); err != nil {
		return nil, err
	}
	p := &Process{task: spec.Task, home: spec.Home, level: spec.Level, grace: killGrace, done: make(chan struct{})}
	if spec.Level == Bubblewrap {
		p.task, p.home = TaskDir, HomeDir
	}
	l := &launch{spec: &spec, p: p}
	defer l.closeChildEnds()
	if err := l.prepare(); err != nil {
		l.abandon()
		return nil, err
	}
	if err := l.start(); err != nil {
		l.abandon()
		return nil, fmt.Errorf("sandbox: start the %s sandbox: %w", spec.Level, err)
	}
	l.closeChildEnds()
	stop := context.AfterFunc(ctx, p.Kill)
	go func() { <-p.done; stop() }()
	if err := l.handshake(); err != nil {
		p.Kill()
		l.abandon()
		if ctx.Err() != nil {
			err = fmt.Errorf("sandbox: %w", ctx.Err())
		}
		return nil, err
	}
	return p, nil
}

// Stdin is the agent's input if Spec.Piped is set. Close ends the input.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout is the agent's output if Spec.Piped is set. It can still be read after the
// agent's end; the reader closes it.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// Done is closed when no process of the sandbox is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the agent and all processes that it started have ended. It
// returns nil, *ExitError, ErrKilled, or the error of copying the output.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends a signal to the agent's first process.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.control == nil {
		return os.ErrProcessDone
	}
	if err := json.NewEncoder(p.control).Encode(message{Signal: int(sig)}); err != nil {
		return fmt.Errorf("sandbox: signal: %w", err)
	}
	return nil
}

// Kill ends every process of the sandbox and returns when none is left.
func (p *Process) Kill() {
	p.mu.Lock()
	select {
	case <-p.done:
	default:
		p.killed = true
	}
	p.mu.Unlock()
	p.closeControl()
	select {
	case <-p.done:
	case <-time.After(p.grace):
		if p.level != Bubblewrap { // with Bubblewrap the namespace ends with its launcher
			killDescendants(p.pid)
		}
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		<-p.done
	}
}

func (p *Process) closeControl() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.control != nil {
		p.control.Close()
		p.control = nil
	}
}

// launch is the state of Start: the command, and the ends of the pipes.
type launch struct {
	spec   *Spec
	p      *Process
	cmd    *exec.Cmd
	child  []*os.File // the child's ends, which this process closes once the child has them
	status *os.File   // carries the shim's answer
	feed   io.Reader  // to be copied to the agent's input
	stderr headWriter
}

// pipe makes a pipe with one end for the child.
func (l *launch) pipe(childReads bool) (ours, theirs *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: %w", err)
	}
	ours, theirs = r, w
	if childReads {
		ours, theirs = w, r
	}
	l.child = append(l.child, theirs)
	return ours, theirs, nil
}

func (l *launch) prepare() error {
	self, err := l.spec.program()
	if err != nil {
		return err
	}
	control, orders, err := l.pipe(true)
	if err != nil {
		return err
	}
	l.p.control = control
	status, answer, err := l.pipe(false)
	if err != nil {
		return err
	}
	l.status = status
	if l.spec.Level == Bubblewrap {
		l.cmd, err = bubblewrap(l, self)
		if err != nil {
			return err
		}
	} else {
		l.cmd = exec.Command(self, Command)
	}
	l.cmd.ExtraFiles = append([]*os.File{orders, answer}, l.cmd.ExtraFiles...)
	l.cmd.Dir, l.cmd.Env = "/", []string{}
	// The command gets a session of its own, because the box handles an interrupt
	// that is typed at its terminal.
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	l.spec.join(l.cmd.SysProcAttr)
	l.cmd.Stderr = &l.stderr
	l.stderr.dst = l.spec.Stderr
	l.cmd.Stdout = l.spec.Stdout
	if same(l.spec.Stdout, l.spec.Stderr) {
		l.cmd.Stdout = l.cmd.Stderr // one writer, so that it is never written to concurrently
	}
	if l.spec.Piped || l.spec.Stdin != nil {
		w, r, err := l.pipe(true)
		if err != nil {
			return err
		}
		l.p.stdin, l.cmd.Stdin, l.feed = w, r, l.spec.Stdin
	}
	if l.spec.Piped {
		r, w, err := l.pipe(false)
		if err != nil {
			return err
		}
		l.p.stdout, l.cmd.Stdout = r, w
	}
	return nil
}

// start starts the command. A sandbox has --die-with-parent.
func (l *launch) start() error {
	if err := child.Start(l.cmd, l.p.finish); err != nil {
		return err
	}
	l.p.pid = l.cmd.Process.Pid
	return nil
}

func (p *Process) finish(err error) {
	p.closeControl()
	p.mu.Lock()
	defer p.mu.Unlock()
	var exit *exec.ExitError
	switch {
	case p.killed:
		err = ErrKilled
	case errors.As(err, &exit):
		code := exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			code = 128 + int(ws.Signal())
		}
		err = &ExitError{Code: code}
	case err != nil:
		err = fmt.Errorf("sandbox: %w", err)
	}
	p.err = err
	close(p.done)
}

// handshake sends the shim its orders and waits until the agent runs.
func (l *launch) handshake() error {
	defer l.status.Close()
	l.p.mu.Lock()
	control := l.p.control
	l.p.mu.Unlock()
	err := os.ErrProcessDone
	if control != nil {
		err = json.NewEncoder(control).Encode(l.orders()) // without the lock, because Kill must be able to close it
	}
	line, readErr := bufio.NewReader(l.status).ReadString('\n')
	if readErr != nil { // the launcher died before it started the shim
		<-l.p.done
		said := strings.TrimSpace(l.stderr.String())
		if said == "" {
			said = errors.Join(err, l.p.err).Error()
		}
		return fmt.Errorf("sandbox: %s: %w: %s", l.spec.Level, ErrUnavailable, said)
	}
	var a answer
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		return fmt.Errorf("sandbox: the shim's answer: %w", err)
	}
	if err := a.err(); err != nil {
		return fmt.Errorf("sandbox: %s: %w", l.spec.Level, err)
	}
	if l.feed != nil {
		in := l.p.stdin
		go func() {
			_, _ = io.Copy(in, l.feed) // an agent may stop reading at any time
			in.Close()
		}()
	}
	return nil
}

func (l *launch) closeChildEnds() {
	for _, f := range l.child {
		f.Close()
	}
	l.child = nil
}

// abandon closes our ends of the pipes after a failed start.
func (l *launch) abandon() {
	l.p.closeControl()
	if l.status != nil {
		l.status.Close()
	}
	if l.p.stdin != nil {
		l.p.stdin.Close()
	}
	if l.p.stdout != nil {
		l.p.stdout.Close()
	}
}

// giveTo gives folders to the agent's user if the box is root. It changes the owner of
// links themselves and never follows them.
func giveTo(user int, dirs ...string) error {
	if !Separate() {
		return nil
	}
	for _, dir := range dirs {
		if err := chownTree(dir, user); err != nil {
			return fmt.Errorf("sandbox: give %s to the agent's user: %w", dir, err)
		}
	}
	return nil
}

// chownTree makes a user the owner of a folder and its contents. Another agent of that
// user may be running: chownTree changes the contents before the folder itself, so that
// the agent cannot change folders that are still to be visited, and no name leads out of
// dir.
func chownTree(dir string, user int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var walk func(folder string) error
	walk = func(folder string) error {
		f, err := root.Open(folder)
		if err != nil {
			return err
		}
		entries, err := f.ReadDir(-1)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			if e.IsDir() {
				if err := walk(name); err != nil {
					return err
				}
			}
			if err := root.Lchown(name, user, user); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk("."); err != nil {
		return err
	}
	return os.Lchown(dir, user, user) // dir lies in a folder of the box
}

// same tells whether two writers are the same one; writers that cannot be compared
// are not.
func same(a, b io.Writer) (yes bool) {
	defer func() { _ = recover() }()
	return a != nil && a == b
}

// headWriter passes output on and keeps its first 2048 bytes, which tell why a
// launcher failed.
type headWriter struct {
	dst  io.Writer
	mu   sync.Mutex
	head []byte
}

func (o *headWriter) Write(b []byte) (int, error) {
	o.mu.Lock()
	o.head = append(o.head, b[:min(len(b), 2048-len(o.head))]...)
	o.mu.Unlock()
	if o.dst == nil {
		return len(b), nil
	}
	return o.dst.Write(b)
}

func (o *headWriter) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.head)
}
