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
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrKilled is what Wait answers after Kill, or after the end of Start's context.
var ErrKilled = errors.New("sandbox: killed")

// ExitError is an agent that ended by itself with a code other than 0: its exit
// code, or 128 and the number of the signal that ended it.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("sandbox: the agent ended with code %d", e.Code)
}

// killGrace is how long the shim has to end everything before the box does it
// from outside. An agent at the lower levels can stop the shim.
const killGrace = 3 * time.Second

// Process is a running sandbox.
type Process struct {
	stdin      io.WriteCloser
	stdout     io.ReadCloser
	task, home string
	level      Level
	pid        int
	grace      time.Duration // killGrace, but in a test
	done       chan struct{}
	err        error // valid after done

	mu      sync.Mutex
	control *os.File // orders to the shim; nil once closed
	killed  bool
}

// Start runs spec and returns once the agent's program has been executed. The
// end of ctx kills it. As root, the two folders are given to an unprivileged
// user, who must be able to reach them at the levels below Bubblewrap.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := own(spec.Task, spec.Home); err != nil {
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

// Stdin is the agent's input if the Spec said Piped. Close ends the input.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout is the agent's output if the Spec said Piped. What was written can
// still be read after the agent's end; the reader closes it.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// Done is closed when no process of the sandbox is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the agent has ended and nothing it started is left. It
// returns nil, *ExitError, ErrKilled, or why the output could not be copied.
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
		if p.level != Bubblewrap { // there the death of the launcher takes the namespace with it
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

// launch is the work of Start: the command, and the ends of pipes that belong
// to one side or the other.
type launch struct {
	spec   *Spec
	p      *Process
	cmd    *exec.Cmd
	child  []*os.File // ours to close once the child has them
	status *os.File   // the shim's answer
	feed   io.Reader  // to be copied to the agent's input
	stderr opening
}

// pipe makes a pipe of which one end is the child's.
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
	// A session of its own: an interrupt typed at the box is the box's to handle.
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	l.spec.join(l.cmd.SysProcAttr)
	l.cmd.Stderr = &l.stderr
	l.stderr.dst = l.spec.Stderr
	l.cmd.Stdout = l.spec.Stdout
	if same(l.spec.Stdout, l.spec.Stderr) {
		l.cmd.Stdout = l.cmd.Stderr // one writer, so that it is not written to twice at a time
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

// start runs the command from a thread that lives as long as it does: "die with
// the parent" means the thread that started a process, not the program.
func (l *launch) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := l.cmd.Start()
		if err == nil {
			l.p.pid = l.cmd.Process.Pid
		}
		started <- err
		if err == nil {
			l.p.finish(l.cmd.Wait())
		}
	}()
	return <-started
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

// handshake gives the shim its orders and waits until the agent runs.
func (l *launch) handshake() error {
	defer l.status.Close()
	l.p.mu.Lock()
	control := l.p.control
	l.p.mu.Unlock()
	err := os.ErrProcessDone
	if control != nil {
		err = json.NewEncoder(control).Encode(l.orders()) // not under the lock: Kill must be able to close it
	}
	line, readErr := bufio.NewReader(l.status).ReadString('\n')
	if readErr != nil { // the launcher died before it reached the shim
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
			_, _ = io.Copy(in, l.feed) // an agent may stop reading whenever it likes
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

// abandon closes our ends after a failed start.
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

// own gives folders to the unprivileged user if the box is root. Links are
// changed themselves, never followed.
func own(dirs ...string) error {
	if !Separate() {
		return nil
	}
	for _, dir := range dirs {
		if err := give(dir, nobody); err != nil {
			return fmt.Errorf("sandbox: give %s to the agent's user: %w", dir, err)
		}
	}
	return nil
}

// give makes a folder and all in it a user's. Another agent of that user may be
// at work: what is in a folder is given before the folder itself, so that
// nobody can change what has still to be walked, and no name leads out of dir.
func give(dir string, user int) error {
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
	return os.Lchown(dir, user, user) // in a folder of the box's own
}

// same tells whether two writers are one; those that cannot be compared are not.
func same(a, b io.Writer) (yes bool) {
	defer func() { _ = recover() }()
	return a != nil && a == b
}

// opening passes output on and remembers its start, which tells why a launcher failed.
type opening struct {
	dst  io.Writer
	mu   sync.Mutex
	head []byte
}

func (o *opening) Write(b []byte) (int, error) {
	o.mu.Lock()
	o.head = append(o.head, b[:min(len(b), 2048-len(o.head))]...)
	o.mu.Unlock()
	if o.dst == nil {
		return len(b), nil
	}
	return o.dst.Write(b)
}

func (o *opening) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.head)
}
