package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempt is the argument that makes Main an agent that tries to escape.
const attempt = "attempt"

// attemptRequest names the things that the attempt tries to reach.
type attemptRequest struct {
	Target targetFacts
	Token  string
	Port   int // loopback port that must be reachable
	Signal int // signal to send to the target, which reports whether it arrived
}

// attemptAnswer is the output of an attempt, in JSON.
type attemptAnswer struct {
	Error    string // the first failure of something that every run does; empty: none
	Possible map[Protection][]string
}

// answerWait limits how long a service on this machine may take to answer.
const answerWait = time.Second

// tryOut is the main function of an attempt.
func tryOut() int {
	var in attemptRequest
	err := json.Unmarshal([]byte(os.Getenv(requestVariable)), &in)
	var a attemptAnswer
	if err == nil {
		if err = in.work(); err == nil {
			a.Possible = in.escape()
		}
	}
	if err != nil {
		a.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		return codeFailed
	}
	return 0
}

// work does what every run does, and returns the first failure.
func (in *attemptRequest) work() error {
	task, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, dir := range []string{task, os.Getenv("HOME"), os.TempDir()} {
		if err := os.WriteFile(filepath.Join(dir, "attempt"), nil, 0o600); err != nil {
			return err
		}
	}
	if !in.hears("tcp", loopback(in.Port)) {
		return errors.New("the forwarded port cannot be reached")
	}
	return nil
}

// escape tries everything that a sandbox should prevent, and returns what was
// possible.
func (in *attemptRequest) escape() map[Protection][]string {
	// In the sandbox this process may have the process id of the target.
	signal.Ignore(syscall.Signal(in.Signal))
	w := in.Target
	if err := os.Chdir(w.Dir); err != nil { // socket paths must be short
		w.Socket, w.Datagrams = filepath.Join(w.Dir, w.Socket), filepath.Join(w.Dir, w.Datagrams)
	}
	_ = syscall.Kill(w.PID, syscall.Signal(in.Signal))
	possible := map[Protection][]string{}
	for _, x := range []struct {
		of    Protection
		what  string
		could bool
	}{
		{Files, "read a file outside", in.reads(w.File)},
		{Files, "read shared memory", w.Memory != "" && in.reads(w.Memory)},
		{Files, "write a file outside", opens(w.File, os.O_WRONLY)},
		{Files, "cut a file outside", os.Truncate(w.File, int64(len(in.Token))) == nil},
		{Files, "make a file outside", opens(w.File+".new", os.O_WRONLY|os.O_CREATE)},
		{Processes, "read the environment of a process outside", in.reads(fmt.Sprintf("/proc/%d/environ", w.PID))},
		{UnixSockets, "connect to a Unix socket", connects("unix", w.Socket)},
		{UnixSockets, "connect to an abstract socket", connects("unix", w.Abstract)},
		{UnixSockets, "send a datagram to a Unix socket", sends(w.Datagrams, false)},
		{UnixSockets, "send a datagram of a pair to a Unix socket", sends(w.Datagrams, true)},
		{Network, "connect to a port of this machine", connects("tcp", loopback(w.TCP))},
		{Network, "connect to a forwarded port's number elsewhere", connects("tcp", w.OtherAddress)},
		{Network, "connect with multipath TCP", connectsBy(unix.IPPROTO_MPTCP, w.TCP)},
		{Network, "connect by sending (TCP fast open)", connectsFast(w.TCP)},
		{Network, "send datagrams", datagrams(w.UDP)},
		{Network, "choose a port", canChoosePort(w.TCP)},
		{Network, "listen to other machines", !hasOwnNetwork(w.TCP) && canListenWide()},
		{Kernel, "make a user namespace", canMakeNamespace()},
		{Kernel, "use the keyrings", canUseKeyring()},
		{Kernel, "set up an io_uring", canMakeRing()},
	} {
		if x.could {
			possible[x.of] = append(possible[x.of], x.what)
		}
	}
	return possible
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (in *attemptRequest) reads(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(text), in.Token)
}

func opens(path string, how int) bool {
	f, err := os.OpenFile(path, how, 0o600)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// hears connects and tells whether it receives the token.
func (in *attemptRequest) hears(network, address string) bool {
	c, err := net.DialTimeout(network, address, answerWait)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerWait))
	b := make([]byte, len(in.Token))
	_, err = io.ReadFull(c, b)
	return err == nil && string(b) == in.Token
}

// connects tells whether a connection may succeed. In a network of its own nobody
// listens at the address.
func connects(network, address string) bool {
	c, err := net.DialTimeout(network, address, answerWait)
	if err == nil {
		c.Close()
	}
	return could(err)
}

// could tells whether an attempt that ended with err was possible, as far as it shows: one
// that was not answered in time was not refused.
func could(err error) bool {
	var late interface{ Timeout() bool }
	return err == nil || errors.As(err, &late) && late.Timeout() || errors.Is(err, unix.EINPROGRESS)
}

// datagrams sends a datagram and waits. In a network of its own the kernel refuses
// it at once.
func datagrams(port int) bool {
	c, err := net.Dial("udp", loopback(port))
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerWait))
	if _, err := c.Write([]byte{'\n'}); err != nil {
		return false
	}
	_, err = c.Read(make([]byte, 1))
	return !errors.Is(err, unix.ECONNREFUSED)
}

// withSocket makes a socket whose calls take at most answerWait.
func withSocket(family, kind, protocol int, use func(fd int) bool) bool {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	wait := unix.NsecToTimeval(answerWait.Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait)
	return use(fd)
}

func address(port int) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

func connectsBy(protocol, port int) bool {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, protocol, func(fd int) bool {
		return could(unix.Connect(fd, address(port)))
	})
}

func connectsFast(port int) bool {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) bool {
		return could(unix.Sendto(fd, []byte{'\n'}, unix.MSG_FASTOPEN, address(port)))
	})
}

// sends tells whether a datagram may be sent, from a single socket or from one of a
// pair.
func sends(path string, pair bool) bool {
	to := &unix.SockaddrUnix{Name: path}
	if !pair {
		return withSocket(unix.AF_UNIX, unix.SOCK_DGRAM, 0, func(fd int) bool {
			return could(unix.Sendto(fd, []byte{'\n'}, 0, to))
		})
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	return could(unix.Sendto(fds[0], []byte{'\n'}, 0, to))
}

// canChoosePort tells whether this process could bind a port that other processes see.
// The target has bound the given port already, so a process that can bind it has a
// loopback of its own.
func canChoosePort(port int) bool {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) bool {
		return errors.Is(unix.Bind(fd, address(port)), unix.EADDRINUSE)
	})
}

// hasOwnNetwork tells whether this process has a network of its own: the port of the target is
// free there.
func hasOwnNetwork(port int) bool {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) bool { return unix.Bind(fd, address(port)) == nil })
}

// canListenWide tells whether this process can listen at all addresses, with a bind
// to them or without any bind.
func canListenWide() bool {
	for _, ask := range []bool{true, false} {
		if withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) bool {
			if ask && unix.Bind(fd, &unix.SockaddrInet4{}) != nil || unix.Listen(fd, 1) != nil {
				return false
			}
			name, err := unix.Getsockname(fd)
			at, ok := nameOf(name)
			return err == nil && (!ok || !at.Addr().IsLoopback())
		}) {
			return true
		}
	}
	return false
}

// canMakeNamespace tells whether this process can make a user namespace.
func canMakeNamespace() bool {
	cmd := exec.Command("/proc/self/exe", Command, enter) // ends at once, because it has no orders
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	err := cmd.Start()
	if err == nil {
		_ = cmd.Wait()
	}
	return err == nil
}

func canUseKeyring() bool {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
	return err == nil
}

func canMakeRing() bool {
	params := make([]uint64, 15) // struct io_uring_params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	if errno == 0 {
		_ = unix.Close(int(fd))
	}
	return errno == 0
}
