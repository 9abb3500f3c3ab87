package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command is the subcommand under which the program must call Main.
const Command = "sandbox-exec"

// enter is the argument that makes Main the last step before the agent.
const enter = "enter"

// The descriptors on which a step gets its orders and answers; on the last it
// hands over by what its connects are asked about.
const (
	ordersFD = 3
	answerFD = 4
	gateFD   = 5
)

// Exit codes of the shim for what is not the agent's own end.
const codeFailed = 125

// orders is what the box tells the shim, and the shim its child.
type orders struct {
	Level    Level
	Argv     []string
	Env      []string
	Dir      string
	Writable []string
	ReadOnly []string
	Forward  []Forward
	Ports    []int // of loopback, that may be connected to
	Limits   Limits
	User     int  // to become; 0 is nobody else
	Filtered bool // whether there is a filter of system calls; from the shim to its child
	Asked    bool // about each connect; the same
	Less     kernel
}

// message follows the orders on the same pipe. Its end means death.
type message struct{ Signal int }

// answer says whether the agent runs. It is one line.
type answer struct {
	Error       string
	Unavailable bool         // the level, on this machine
	Closed      *ClosedError // what the agent's user cannot get at
}

func answerOf(err error) (a answer) {
	a = answer{Error: strings.TrimPrefix(err.Error(), ErrUnavailable.Error()+": "), Unavailable: errors.Is(err, ErrUnavailable)}
	errors.As(err, &a.Closed)
	return a
}

// err is the error that the answer tells of, nil if there is none.
func (a answer) err() error {
	switch {
	case a.Error == "":
		return nil
	case a.Closed != nil:
		return a.Closed
	case a.Unavailable:
		return fmt.Errorf("%w: %s", ErrUnavailable, a.Error)
	}
	return errors.New(a.Error)
}

// orders makes the shim's orders, with paths as they are inside.
func (l *launch) orders() orders {
	s, p := l.spec, l.p
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin",
		"HOME": p.home, "USER": "agent", "LOGNAME": "agent", "LANG": "C.UTF-8", "TERM": "dumb", "TMPDIR": "/tmp",
	}
	o := orders{Level: s.Level, Argv: s.Argv, Dir: p.task, Forward: slices.Clone(s.Forward), Limits: s.Limits, Less: s.less}
	if s.Level == Bubblewrap {
		for i := range o.Forward {
			o.Forward[i].Socket = socketPath + strconv.Itoa(i)
		}
	} else {
		// The host's /tmp belongs to everybody.
		env["TMPDIR"] = filepath.Join(p.home, ".tmp")
		o.Writable, o.ReadOnly, o.Ports = []string{p.task, p.home}, s.ReadOnly, slices.Clone(s.Reach)
		for _, f := range s.Forward {
			o.Ports = append(o.Ports, f.Port)
		}
	}
	maps.Copy(env, s.Env)
	for k, v := range env {
		o.Env = append(o.Env, k+"="+v)
	}
	if Separate() {
		o.User = nobody
	}
	return o
}

// Main is the shim: the program calls it with what follows Command on its
// command line and exits with what it returns, the agent's exit code. It takes
// its orders from descriptor 3; nobody but Start can run it usefully.
func Main(args []string) int {
	if len(args) == 1 {
		switch args[0] {
		case owner:
			return holdNamespace()
		case witness:
			return testify()
		case attempt:
			return tryOut()
		}
	}
	runtime.LockOSThread() // children are told to die with this thread
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(answerFD)
	unix.CloseOnExec(gateFD)
	in, out := os.NewFile(ordersFD, "orders"), os.NewFile(answerFD, "answer")
	dec := json.NewDecoder(in)
	var o orders
	if err := dec.Decode(&o); err != nil {
		fmt.Fprintf(os.Stderr, "%s: no orders on descriptor %d; this is not for the command line\n", Command, ordersFD)
		return codeFailed
	}
	var err error
	if len(args) == 1 && args[0] == enter {
		err = become(&o)
	} else {
		var s *shim
		if s, err = newShim(&o); err == nil {
			_ = json.NewEncoder(out).Encode(answer{})
			out.Close()
			go s.obey(dec)
			return s.wait()
		}
		killDescendants(os.Getpid())
	}
	_ = json.NewEncoder(out).Encode(answerOf(err))
	return codeFailed
}

// shim holds the agent: it forwards ports and signals, buries every process
// that is left to it, and ends them all when the agent or the box ends.
type shim struct{ agent int }

func newShim(o *orders) (*shim, error) {
	expendable()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	for _, f := range o.Forward {
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.Port)))
		if err != nil {
			return nil, fmt.Errorf("forward: %w", err)
		}
		go forward(ln, f.Socket)
	}
	pid, err := startAgent(o)
	if err != nil {
		return nil, err
	}
	return &shim{agent: pid}, nil
}

// startAgent runs the next step as a child and waits until that is the agent.
func startAgent(o *orders) (int, error) {
	ordersR, ordersW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer ordersW.Close()
	answerR, answerW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer answerR.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "gate"), os.NewFile(uintptr(pair[1]), "gate")
	defer ours.Close()
	cmd := exec.Command("/proc/self/exe", Command, enter)
	cmd.Env = []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{ordersR, answerW, theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if o.User != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.User), Gid: uint32(o.User)}
	}
	err = cmd.Start()
	ordersR.Close()
	answerW.Close()
	theirs.Close()
	if err != nil {
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	o.Filtered = o.Level != None && !o.Less.Unfiltered && filterable()
	o.Asked = o.Filtered && o.Level == Landlock && answerable(cmd.Process.Pid)
	if err := json.NewEncoder(ordersW).Encode(o); err != nil {
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	var a answer
	// The child's end closes when the agent's program replaces it.
	switch err := json.NewDecoder(answerR).Decode(&a); {
	case err == nil:
		return 0, a.err()
	case !errors.Is(err, io.EOF):
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	if o.Asked {
		g := &gate{ports: map[uint16]bool{}}
		for _, port := range o.Ports {
			g.ports[uint16(port)] = true
		}
		if g.listener, err = takeOver(ours); err != nil {
			return 0, err
		}
		go g.serve()
	}
	return cmd.Process.Pid, nil
}

// obey passes signals on until the box lets go of the pipe, then ends everything.
func (s *shim) obey(dec *json.Decoder) {
	got := make(chan os.Signal, 8)
	signal.Notify(got, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	go func() {
		for sig := range got {
			_ = syscall.Kill(s.agent, sig.(syscall.Signal))
		}
	}()
	var m message
	for dec.Decode(&m) == nil {
		_ = syscall.Kill(s.agent, syscall.Signal(m.Signal))
	}
	// Process 1 takes its namespace with it; elsewhere they are looked for.
	if os.Getpid() != 1 {
		killDescendants(os.Getpid())
	}
	os.Exit(128 + int(unix.SIGKILL))
}

// wait buries processes until the agent itself has ended, then ends the rest.
func (s *shim) wait() int {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return codeFailed
		}
		if pid != s.agent {
			continue
		}
		if os.Getpid() != 1 {
			killDescendants(os.Getpid())
		}
		if ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		return ws.ExitStatus()
	}
}

func forward(ln net.Listener, socket string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			u, err := net.Dial("unix", socket)
			if err != nil {
				return // the agent sees its connection closed
			}
			defer u.Close()
			up := make(chan struct{})
			go func() { copyHalf(u.(*net.UnixConn), c); close(up) }()
			copyHalf(c.(*net.TCPConn), u)
			<-up
		}()
	}
}

// copyHalf copies one direction and passes its end on; the other may go on.
func copyHalf(dst interface {
	io.Writer
	CloseWrite() error
}, src io.Reader) {
	_, _ = io.Copy(dst, src)
	_ = dst.CloseWrite()
}
