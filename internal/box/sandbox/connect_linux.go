package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock knows ports, not addresses: a rule for a forwarded port would allow
// that port of every machine in the world. So Landlock allows the agent no
// connection. The kernel asks the shim about each connect, bind and listen
// (seccomp_unotify(2)); the shim copies the address, checks the copy, and makes
// the call for the agent's socket. The agent cannot change the copy afterwards.

// gate decides the agent's calls of connect, bind and listen.
type gate struct {
	listener  int
	ports     map[uint16]bool // loopback ports that the agent may connect to
	listeners listeners
}

// notification and response are the kernel's struct seccomp_notif and
// seccomp_notif_resp.
type notification struct {
	id            uint64
	pid, flags    uint32
	number        int32
	machine       uint32
	instruction   uint64
	fd, addr, len uint64 // the arguments of connect and bind; for listen addr is the backlog
	_             [3]uint64
}

type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// maxAnswers limits how many calls are answered at the same time.
const maxAnswers = 32

// serve answers calls until the last process that could ask has ended.
func (g *gate) serve() {
	free := make(chan struct{}, maxAnswers)
	for {
		poll := []unix.PollFd{{Fd: int32(g.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		switch {
		case poll[0].Revents&unix.POLLIN != 0:
		case poll[0].Revents != 0:
			return // the last process has ended
		default:
			continue
		}
		var n notification
		switch errno := g.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // the calling process was killed meanwhile
			continue
		default:
			return
		}
		free <- struct{}{}
		go func() {
			defer func() { <-free }()
			r := response{id: n.id, errno: -int32(g.answer(&n))}
			// It fails if the calling process was killed meanwhile.
			_ = g.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
		}()
	}
}

func (g *gate) ioctl(request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(g.listener), request, uintptr(argument))
	return errno
}

// answer makes the call for the agent, if it may, and returns the call's result.
func (g *gate) answer(n *notification) unix.Errno {
	pidfd, err := unix.PidfdOpen(processOf(int(n.pid)), 0)
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(pidfd)
	var addr []byte
	if n.number != unix.SYS_LISTEN {
		if addr = make([]byte, min(n.len, unix.SizeofSockaddrAny)); len(addr) < 2 {
			return unix.EINVAL
		}
		local := []unix.Iovec{{Base: &addr[0], Len: uint64(len(addr))}}
		remote := []unix.RemoteIovec{{Base: uintptr(n.addr), Len: len(addr)}}
		if got, err := unix.ProcessVMReadv(int(n.pid), local, remote, 0); err != nil || got != len(addr) {
			return errnoOf(err, unix.EFAULT)
		}
	}
	fd, err := unix.PidfdGetfd(pidfd, int(int32(n.fd)), 0)
	if err != nil {
		return errnoOf(err, unix.EACCES)
	}
	defer unix.Close(fd)
	// If the calling process has ended meanwhile, its id may belong to another one,
	// and the address and the socket as well.
	if errno := g.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)); errno != 0 {
		return errno
	}
	switch n.number {
	case unix.SYS_LISTEN:
		return g.listen(fd, int(int32(n.addr)))
	case unix.SYS_BIND:
		return g.bind(fd, addr)
	}
	return g.connect(fd, addr)
}

// connect connects the agent's socket if the address is allowed.
func (g *gate) connect(fd int, addr []byte) unix.Errno {
	if binary.NativeEndian.Uint16(addr) == unix.AF_UNSPEC { // ends a connection
		return call(unix.SYS_CONNECT, fd, addr)
	}
	to, ok := addressOf(addr)
	switch {
	case !ok || to.Addr() != loopback4 && to.Addr() != netip.IPv6Loopback():
		return unix.EACCES
	case to.Addr() == loopback4 && g.ports[to.Port()]:
		return call(unix.SYS_CONNECT, fd, addr)
	}
	switch some, own := g.listeners.at(to); {
	case !some:
		return unix.ECONNREFUSED // the result of a connect without a gate
	case !own:
		return unix.EACCES
	}
	errno := call(unix.SYS_CONNECT, fd, addr)
	// Another process may have begun to listen there in between.
	if _, own := g.listeners.at(to); !own && (errno == 0 || errno == unix.EINPROGRESS) {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		return unix.ECONNREFUSED
	}
	return errno
}

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// addressOf reads a TCP address from a struct sockaddr.
func addressOf(addr []byte) (netip.AddrPort, bool) {
	var ip netip.Addr
	switch family := binary.NativeEndian.Uint16(addr); {
	case family == unix.AF_INET && len(addr) >= unix.SizeofSockaddrInet4:
		ip = netip.AddrFrom4([4]byte(addr[4:8]))
	case family == unix.AF_INET6 && len(addr) >= unix.SizeofSockaddrInet6:
		ip = netip.AddrFrom16([16]byte(addr[8:24])).Unmap()
	default:
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(addr[2:4])), true
}

func errnoOf(err error, or unix.Errno) unix.Errno {
	errors.As(err, &or)
	return or
}

// processOf returns the process of a thread, or the thread itself if it has ended.
func processOf(thread int) int {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(thread) + "/status")
	if _, rest, found := bytes.Cut(status, []byte("\nTgid:")); found {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil {
			return pid
		}
	}
	return thread
}

// answerable tells whether this process may make calls for a child, as a gate does.
// A root without CAP_SYS_PTRACE may not do so for another user, and Yama may forbid
// it.
func answerable(child int) bool {
	pidfd, err := unix.PidfdOpen(child, 0)
	if err != nil {
		return false
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, answerFD, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// handOver sends the listener's descriptor to the shim.
func handOver(listener int) error {
	if err := unix.Sendmsg(gateFD, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("hand the listener over: %w", err)
	}
	return nil
}

// takeOver receives the listener that the agent's process sent before it executed
// the agent.
func takeOver(end *os.File) (listener int, err error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(end.Fd()), make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return -1, fmt.Errorf("take the listener over: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err == nil && len(messages) == 1 {
		var fds []int
		if fds, err = unix.ParseUnixRights(&messages[0]); err == nil && len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, fmt.Errorf("take the listener over: %w", errors.Join(err, errors.New("there is none")))
}
