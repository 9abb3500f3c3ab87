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

// Command is the subcommand under which the program has to call Main.
const Command = "sandbox-exec"

// enter is the argument that makes Main the last step before the agent.
const enter = "enter"

// The descriptors from which a step reads its orders and to which it writes its
// answer. Over gateFD the last step sends the listener of its filter.
const (
	ordersFD = 3
	answerFD = 4
	gateFD   = 5
)

// codeFailed is the exit code of the shim when the sandbox itself fails.
const codeFailed = 125

// socketPath begins the paths of the forwarded sockets in a Bubblewrap sandbox.
const socketPath = "/run/yardmaster/forward-"

// orders are sent by the box to the shim, and by the shim to its child.
type orders struct {
	Level    Level
	Argv     []string
	Env      []string
	Dir      string
	Writable []string
	ReadOnly []string
	Forward  []Forward
	Ports    []int // loopback ports that the agent may connect to
	Limits   Limits
	User     int  // user to become; 0: no change
	Filtered bool // there is a filter of system calls; set by the shim for its child
	Asked    bool // the gate decides about each connect; set by the shim for its child
	Less     kernel
}

// message follows the orders on the same pipe. The end of the pipe kills
// everything.
type message struct{ Signal int }

// answer says whether the agent runs, in one line.
type answer struct {
	Error       string
	Unavailable bool         // this machine does not offer the level
	Closed      *ClosedError // a file or folder that the agent's user cannot reach
}

func answerOf(err error) (a answer) {
	a = answer{
		Error:       strings.TrimPrefix(err.Error(), ErrUnavailable.Error()+": "),
		Unavailable: errors.Is(err, ErrUnavailable),
	}
	errors.As(err, &a.Closed)
	return a
}

// err returns the error in the answer, nil if there is none.
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

// orders returns the shim's orders, with paths as they are inside the sandbox.
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
		// The host's /tmp is shared by all users.
		env["TMPDIR"] = filepath.Join(p.home, ".tmp")
		o.Writable, o.ReadOnly, o.Ports = append([]string{p.task, p.home}, s.Writable...), s.ReadOnly, slices.Clone(s.Reach)
		for _, f := range s.Forward {
			o.Ports = append(o.Ports, f.Port)
		}
	}
	maps.Copy(env, s.Env)
	for k, v := range env {
		o.Env = append(o.Env, k+"="+v)
	}
	if Separate() {
		o.User = s.agentUser()
	}
	return o
}

// Main is the shim. The program calls it with the arguments behind Command and
// exits with its result, the agent's exit code. Main reads its orders from
// descriptor 3; only Start can use it.
func Main(args []string) int {
	if len(args) == 1 {
		if code, is := trialStep(args[0]); is {
			return code
		}
	}
	runtime.LockOSThread() // children die with this thread
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
			go s.followOrders(dec)
			return s.wait()
		}
		killDescendants(os.Getpid())
	}
	_ = json.NewEncoder(out).Encode(answerOf(err))
	return codeFailed
}

// shim looks after the agent: it forwards ports and signals, reaps every orphaned
// process, and ends all processes when the agent or the box ends.
type shim struct{ agent int }

func newShim(o *orders) (*shim, error) {
	preferOOMKill()
	if err := adopt(); err != nil {
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

// startAgent starts the next step as a child and waits until the child has become
// the agent.
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
	ours, theirs, err := openGate()
	if err != nil {
		return 0, err
	}
	defer ours.Close()
	self, err := itself()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, Command, enter)
	cmd.Env = []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{ordersR, answerW, theirs}
	cmd.SysProcAttr = session()
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
	started(cmd.Process.Pid)
	judge(o, cmd.Process.Pid)
	if err := json.NewEncoder(ordersW).Encode(o); err != nil {
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	var a answer
	// The child's end closes when the agent's program replaces the child.
	switch err := json.NewDecoder(answerR).Decode(&a); {
	case err == nil:
		return 0, a.err()
	case !errors.Is(err, io.EOF):
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	if o.Asked {
		if err := keepGate(o, ours); err != nil {
			return 0, err
		}
	}
	return cmd.Process.Pid, nil
}

// followOrders passes signals on until the box closes the pipe, then ends all processes.
func (s *shim) followOrders(dec *json.Decoder) {
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
	// Process 1 ends its namespace with itself; elsewhere the processes are
	// searched for.
	if os.Getpid() != 1 {
		killDescendants(os.Getpid())
	}
	os.Exit(128 + int(unix.SIGKILL))
}

// wait reaps processes until the agent has ended, then ends the others.
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
				return // the agent finds its connection closed
			}
			defer u.Close()
			up := make(chan struct{})
			go func() { copyHalf(u.(*net.UnixConn), c); close(up) }()
			copyHalf(c.(*net.TCPConn), u)
			<-up
		}()
	}
}

// copyHalf copies one direction and passes its end on; the other direction may
// continue.
func copyHalf(dst interface {
	io.Writer
	CloseWrite() error
}, src io.Reader) {
	_, _ = io.Copy(dst, src)
	_ = dst.CloseWrite()
}
