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

// attempt is the argument that makes Main an agent that tries to get out.
const attempt = "attempt"

// attemptRequest says what to get at.
type attemptRequest struct {
	Testimony testimony
	Token     string
	Port      int // of loopback, that must be reached
	Signal    int // to send to the witness, who says whether it came
}

// attemptAnswer is what an attempt prints, in JSON.
type attemptAnswer struct {
	Error    string // what every run needs and this one could not do; empty: nothing
	Possible map[Protection][]string
}

// answerWait is how long something on this machine may take to answer.
const answerWait = time.Second

// tryOut is the attempt.
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

// work does what every run does.
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

// escape tries all that it should not be able to, and tells what it could.
func (in *attemptRequest) escape() map[Protection][]string {
	// Inside the number of the witness may be that of this process.
	signal.Ignore(syscall.Signal(in.Signal))
	w := in.Testimony
	if err := os.Chdir(w.Dir); err != nil { // the paths of sockets are short
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
		{Network, "choose a port", chooses(w.TCP)},
		{Network, "listen to other machines", !alone(w.TCP) && listensWide()},
		{Kernel, "make a user namespace", owns()},
		{Kernel, "use the keyrings", keeps()},
		{Kernel, "set up an io_uring", rings()},
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

// hears connects and tells whether the token came.
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

// connects connects: who has a network of its own finds nobody at the address.
func connects(network, address string) bool {
	c, err := net.DialTimeout(network, address, answerWait)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// datagrams sends one and waits: in a network of its own it is refused at once.
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

// withSocket makes a socket that nothing waits for longer than answerWait.
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
		return unix.Connect(fd, address(port)) == nil
	})
}

func connectsFast(port int) bool {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) bool {
		return unix.Sendto(fd, []byte{'\n'}, unix.MSG_FASTOPEN, address(port)) == nil
	})
}

// sends sends a datagram by a socket of its own or by one of a pair.
func sends(path string, pair bool) bool {
	to := &unix.SockaddrUnix{Name: path}
	if !pair {
		return withSocket(unix.AF_UNIX, unix.SOCK_DGRAM, 0, func(fd int) bool { return unix.Sendto(fd, []byte{'\n'}, 0, to) == nil })
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	return unix.Sendto(fds[0], []byte{'\n'}, 0, to) == nil
}

// chooses tells whether a port could be taken that others see. The one given is
// taken already, by the witness: who can take it has a loopback of its own.
func chooses(port int) bool {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) bool {
		return errors.Is(unix.Bind(fd, address(port)), unix.EADDRINUSE)
	})
}

// alone tells whether the network is its own: the witness's port is free.
func alone(port int) bool {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) bool { return unix.Bind(fd, address(port)) == nil })
}

// listensWide listens at all addresses, by asking for it and by asking for nothing.
func listensWide() bool {
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

// owns tells whether a user namespace could be made.
func owns() bool {
	cmd := exec.Command("/proc/self/exe", Command, enter) // ends at once: it has no orders
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	err := cmd.Start()
	if err == nil {
		_ = cmd.Wait()
	}
	return err == nil
}

func keeps() bool {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
	return err == nil
}

func rings() bool {
	params := make([]uint64, 15) // struct io_uring_params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	if errno == 0 {
		_ = unix.Close(int(fd))
	}
	return errno == 0
}
