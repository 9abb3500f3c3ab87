package sandbox

import (
	"encoding/binary"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Some agents, and the tests of many projects, serve a loopback port for
// themselves. Landlock allows them no bind; the gate binds for them, always to
// loopback and at a port that the kernel chooses, so that no agent takes the
// place of another service. An agent of another sandbox cannot connect there,
// because the port is not its own.

// listeners records the sockets at which an agent listens, by inode.
type listeners struct {
	mu  sync.Mutex
	own map[uint64]bool
}

// maxListeners is the number of records at which the closed sockets are removed.
const maxListeners = 1024

func (l *listeners) add(inode uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own == nil || len(l.own) >= maxListeners {
		open := map[uint64]bool{}
		for _, at := range listening() {
			if l.own[at.inode] {
				open[at.inode] = true
			}
		}
		l.own = open
	}
	l.own[inode] = true
}

// at tells whether a process listens at a port of this machine, and whether it is
// the agent alone.
func (l *listeners) at(port uint16) (some, own bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own = true
	for _, at := range listening() {
		if at.port == port {
			some, own = true, own && l.own[at.inode]
		}
	}
	return some, some && own
}

// listener is a listening socket of this machine.
type listener struct {
	port  uint16
	inode uint64
}

// listening lists the listening TCP sockets, from /proc/net/tcp as proc(5)
// describes it.
func listening() (out []listener) {
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(file) // a missing file lists none
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" {
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			port, err1 := strconv.ParseUint(hex, 16, 16)
			inode, err2 := strconv.ParseUint(f[9], 10, 64)
			if err1 == nil && err2 == nil {
				out = append(out, listener{uint16(port), inode})
			}
		}
	}
	return out
}

// bind binds the agent's socket to a free loopback port.
func (g *gate) bind(fd int, addr []byte) unix.Errno {
	if binary.NativeEndian.Uint16(addr) == unix.AF_NETLINK {
		// A netlink address names only the socket; without groups it gives access
		// to nothing.
		if len(addr) < unix.SizeofSockaddrNetlink || binary.NativeEndian.Uint32(addr[8:12]) != 0 {
			return unix.EACCES
		}
		return call(unix.SYS_BIND, fd, addr)
	}
	to, ok := addressOf(addr)
	if !ok || to.Port() != 0 || !to.Addr().IsLoopback() && !to.Addr().IsUnspecified() {
		return unix.EACCES
	}
	if to.Addr().IsUnspecified() {
		only, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
		switch {
		case to.Addr().Is4():
			copy(addr[4:8], []byte{127, 0, 0, 1})
		case err == nil && only != 0:
			addr[23] = 1
		default: // an IPv6 socket that IPv4 reaches as well
			copy(addr[18:24], []byte{0xff, 0xff, 127, 0, 0, 1})
		}
	}
	return call(unix.SYS_BIND, fd, addr)
}

// listen makes the agent's socket listen.
func (g *gate) listen(fd, backlog int) unix.Errno {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return errnoOf(err, unix.EACCES)
	}
	at, ok := nameOf(name)
	if ok && at.Port() == 0 { // an unbound socket would get a port at all addresses
		anywhere := make([]byte, unix.SizeofSockaddrInet6)
		binary.NativeEndian.PutUint16(anywhere, unix.AF_INET)
		if at.Addr().Is6() {
			binary.NativeEndian.PutUint16(anywhere, unix.AF_INET6)
		}
		if errno := g.bind(fd, anywhere); errno != 0 {
			return errno
		}
	} else if !ok || !at.Addr().IsLoopback() {
		return unix.EACCES
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errnoOf(err, unix.EACCES)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return errnoOf(err, unix.EACCES)
	}
	g.listeners.add(st.Ino)
	return 0
}

// nameOf returns the address of a TCP socket.
func nameOf(name unix.Sockaddr) (netip.AddrPort, bool) {
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)), true
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(a.Addr)
		if ip.Is4In6() {
			ip = ip.Unmap()
		}
		return netip.AddrPortFrom(ip, uint16(a.Port)), true
	}
	return netip.AddrPort{}, false
}

// call makes a system call that takes a socket and an address.
func call(nr uintptr, fd int, addr []byte) unix.Errno {
	_, _, errno := unix.Syscall(nr, uintptr(fd), uintptr(unsafe.Pointer(&addr[0])), uintptr(len(addr)))
	return errno
}
