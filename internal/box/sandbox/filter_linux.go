package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter is a program of classic BPF that the kernel runs at each system call
// of the agent and of its children (seccomp(2), mode filter). It reads only
// numbers: memory behind a pointer could change between the check and the use.
//
// The code is assembled by hand. The libraries without cgo answer one errno for
// all calls and know neither a masked comparison nor a listener, which the rules
// below need.
type filter struct{ code []unix.SockFilter }

// Offsets in struct seccomp_data, in bytes. Arguments have 64 bits. The kernel
// takes the arguments checked here as int or as flags below bit 32, and both
// machines below store the low half first.
const (
	callNumber  = 0
	callMachine = 4
	callArgs    = 16
)

// x32 is set in the number of an x32 call, which a 64-bit program can make. No rule
// here matches such calls.
const x32 = 0x40000000

// machines are the architectures whose call numbers package unix has, with the
// kernel's identifiers for filters.
var machines = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// newNamespaces are the flags of clone and unshare that make namespaces. A user
// namespace would give the agent every capability in it.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// forbidden lists calls that no agent needs and with which most escapes through the
// kernel begin, and the calls of the keyrings, which belong to no namespace.
var forbidden = []uint32{
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT,
	unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SETNS,
}

// absent lists calls that fail as if the kernel did not have them, so that programs
// use others instead. io_uring makes and uses sockets without the filter. The flags
// of clone3 are behind a pointer; programs without clone3 use clone.
var absent = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3}

// shared lists the calls for objects that processes share by names outside of the
// file system. At the level Landlock these belong to the whole machine, and no file
// rule covers them.
var shared = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// filterable tells whether this machine can filter calls. Without a filter a level
// gives fewer protections, which its trial shows.
func filterable() bool {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return machines[runtime.GOARCH] != 0 && errno == 0
}

// filterOf returns the filter of a level. With asked, the process that holds the
// listener decides about connect, bind and listen.
func filterOf(l Level, asked bool) *filter {
	machine := machines[runtime.GOARCH]
	f := &filter{}
	// A call number of another architecture, as in 32-bit programs, would mean
	// another call than the rules say.
	f.add(load(callMachine), jump(unix.BPF_JEQ, machine, 1, 0), end(unix.SECCOMP_RET_KILL_PROCESS), load(callNumber))
	if machine == unix.AUDIT_ARCH_X86_64 {
		f.add(jump(unix.BPF_JGE, x32, 0, 1), refuse(unix.EPERM))
	}
	for _, nr := range forbidden {
		f.on(nr, refuse(unix.EPERM))
	}
	for _, nr := range absent {
		f.on(nr, refuse(unix.ENOSYS))
	}
	f.on(unix.SYS_CLONE, load(argument(0)), jump(unix.BPF_JSET, newNamespaces, 0, 1), refuse(unix.EPERM), allow)
	f.on(unix.SYS_UNSHARE, load(argument(0)), jump(unix.BPF_JSET, newNamespaces|unix.CLONE_NEWTIME, 0, 1), refuse(unix.EPERM), allow)
	// Both requests type into a terminal as if its owner had.
	f.on(unix.SYS_IOCTL, load(argument(1)),
		jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0), jump(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1),
		refuse(unix.EPERM), allow)
	if l == Landlock {
		f.sockets(asked)
	} else {
		f.families()
	}
	f.add(allow)
	return f
}

// families allows the kinds of sockets that a network namespace confines.
func (f *filter) families() {
	f.on(unix.SYS_SOCKET, load(argument(0)),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 6, 0), jump(unix.BPF_JEQ, unix.AF_INET, 5, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 4, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 2),
		load(argument(2)), jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 1, 0), // programs list their interfaces with it
		refuse(unix.EAFNOSUPPORT), allow)
	f.on(unix.SYS_SOCKETPAIR, load(argument(0)), jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0), refuse(unix.EAFNOSUPPORT), allow)
}

// sockets allows TCP, for which Landlock and the gate check the address, and pairs.
// Other kinds of sockets reach what Landlock does not guard: daemons of the agent's
// user by name, and the network.
func (f *filter) sockets(asked bool) {
	const kind = 0xf // mask of the type, which also contains flags
	f.on(unix.SYS_SOCKET, load(argument(0)),
		jump(unix.BPF_JEQ, unix.AF_INET, 5, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 4, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 2), load(argument(2)), jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 8, 0),
		refuse(unix.EACCES),
		load(argument(1)), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kind},
		jump(unix.BPF_JEQ, unix.SOCK_STREAM, 0, 3),
		// MPTCP, SCTP and SMC are refused, because Landlock does not treat them as
		// TCP.
		load(argument(2)), jump(unix.BPF_JEQ, 0, 2, 0), jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 1, 0),
		refuse(unix.EACCES), allow)
	// A datagram socket of a pair can send to any name, a stream socket cannot.
	f.on(unix.SYS_SOCKETPAIR, load(argument(0)), jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 4),
		load(argument(1)), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kind},
		jump(unix.BPF_JEQ, unix.SOCK_STREAM, 2, 0), jump(unix.BPF_JEQ, unix.SOCK_SEQPACKET, 1, 0),
		refuse(unix.EACCES), allow)
	// With this flag these calls connect, which Landlock does not notice.
	for _, call := range []struct {
		nr    uint32
		flags int
	}{{unix.SYS_SENDTO, 3}, {unix.SYS_SENDMSG, 2}, {unix.SYS_SENDMMSG, 3}} {
		f.on(call.nr, load(argument(call.flags)), jump(unix.BPF_JSET, unix.MSG_FASTOPEN, 0, 1), refuse(unix.EOPNOTSUPP), allow)
	}
	if asked {
		for _, nr := range []uint32{unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN} {
			f.on(nr, end(unix.SECCOMP_RET_USER_NOTIF))
		}
	} else {
		// Without a bind, which Landlock guards, listen would take any free port.
		f.on(unix.SYS_LISTEN, refuse(unix.EACCES))
	}
	for _, nr := range shared {
		f.on(nr, refuse(unix.EPERM))
	}
}

// allow permits the call.
var allow = end(unix.SECCOMP_RET_ALLOW)

func (f *filter) add(code ...unix.SockFilter) { f.code = append(f.code, code...) }

// on adds the rule of one call. Its code must end with an answer. The call's number
// is loaded before each rule, and stays loaded if the rule does not match.
func (f *filter) on(nr uint32, code ...unix.SockFilter) {
	f.add(jump(unix.BPF_JEQ, nr, 0, uint8(len(code))))
	f.add(code...)
}

func argument(i int) uint32 { return callArgs + 8*uint32(i) }

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jump skips yes instructions if the test succeeds, no instructions if it fails.
func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

func end(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

func refuse(errno unix.Errno) unix.SockFilter { return end(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// install installs the filter for this thread and its children, irrevocably. With
// listen it returns the descriptor from which another process reads the calls to
// decide. It returns ErrUnavailable if the kernel refuses the filter.
func (f *filter) install(listen bool) (listener int, err error) {
	var flags uintptr
	if listen {
		// A signal must not interrupt a call that is being answered.
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	program := unix.SockFprog{Len: uint16(len(f.code)), Filter: &f.code[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, fmt.Errorf("%w: filter the agent's system calls: %w", ErrUnavailable, errno)
	}
	return int(fd), nil
}
