package sandbox

import (
	"encoding/binary"
	"encoding/hex"
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

// at tells whether a process listens at a loopback address of this machine, and
// whether it is the agent alone. The same port of 127.0.0.1 and of ::1 may belong to
// two processes.
func (l *listeners) at(to netip.AddrPort) (some, own bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own = true
	for _, at := range listening() {
		if at.answers(to) {
			some, own = true, own && l.own[at.inode]
		}
	}
	return some, some && own
}

// listener is a listening socket of this machine.
type listener struct {
	at    netip.AddrPort
	inode uint64
}

// answers tells whether a connection to an address may come to this socket. One at
// :: may answer for IPv4 as well; the kernel does not list whether it does.
func (l listener) answers(to netip.AddrPort) bool {
	if l.at.Port() != to.Port() {
		return false
	}
	at := l.at.Addr()
	return at == to.Addr() || at == netip.IPv6Unspecified() || at == netip.IPv4Unspecified() && to.Addr().Is4()
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
			at, ok := listed(f[1])
			inode, err := strconv.ParseUint(f[9], 10, 64)
			if ok && err == nil {
				out = append(out, listener{at, inode})
			}
		}
	}
	return out
}

// listed reads an address as /proc/net/tcp writes it: words of 32 bits in the order
// of the machine, and a port, in hexadecimal digits.
func listed(text string) (netip.AddrPort, bool) {
	words, hexPort, _ := strings.Cut(text, ":")
	port, err := strconv.ParseUint(hexPort, 16, 16)
	raw, err2 := hex.DecodeString(words)
	if err != nil || err2 != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), ok
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
