package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter is a program of classic BPF that the kernel runs at each system call
// of the agent and of all that it starts (seccomp(2), mode filter). It looks at
// numbers only: what a pointer leads to could change between look and use.
//
// It is put together by hand. Libraries without cgo answer one errno for all
// and know neither a masked comparison nor a listener, which the rules below
// need; what is left of the work is this page.
type filter struct{ code []unix.SockFilter }

// Where the parts of struct seccomp_data lie, in bytes. Arguments have 64 bits;
// those that are looked at are taken by the kernel as int or as flags below
// bit 32, and both machines below have the low half first.
const (
	callNumber  = 0
	callMachine = 4
	callArgs    = 16
)

// x32 is set in the number of a call by which a program of 64 bits uses the
// calls of x32, which no rule here has.
const x32 = 0x40000000

// machines are the architectures whose numbers package unix has, as the kernel
// names them to a filter.
var machines = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// newNamespaces are the flags of clone and unshare that make namespaces. A user
// namespace of its own would give the agent every capability in it.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// forbidden are calls that no agent has a use for and that most escapes by the
// kernel have begun with, and those of the keyrings, which are no namespace's.
var forbidden = []uint32{
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SETNS,
}

// absent are calls that programs do without where the kernel has none of them,
// which is what they are told. io_uring makes and uses sockets around a filter;
// the flags of clone3 are behind a pointer, and who lacks it uses clone.
var absent = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3}

// shared are the calls of what processes share by names that are not files:
// at Landlock they are the machine's, where no file rule reaches.
var shared = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// filterable tells whether there can be a filter on this machine. Without one a
// level holds less, which is found when it is tried.
func filterable() bool {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return machines[runtime.GOARCH] != 0 && errno == 0
}

// filterOf makes the filter of a level. With asked, what sockets connect to and
// listen at is not decided by it but by who holds the listener.
func filterOf(l Level, asked bool) *filter {
	machine := machines[runtime.GOARCH]
	f := &filter{}
	// Calls by another machine's numbers, as of programs of 32 bits, would mean
	// others than those that the rules name.
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
	// Both type into a terminal as if its owner had.
	f.on(unix.SYS_IOCTL, load(argument(1)), jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0), jump(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1), refuse(unix.EPERM), allow)
	if l == Landlock {
		f.sockets(asked)
	} else {
		f.families()
	}
	f.add(allow)
	return f
}

// families leaves the kinds of sockets that a network namespace of its own holds in.
func (f *filter) families() {
	f.on(unix.SYS_SOCKET, load(argument(0)),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 6, 0), jump(unix.BPF_JEQ, unix.AF_INET, 5, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 4, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 2),
		load(argument(2)), jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 1, 0), // by which programs list their interfaces
		refuse(unix.EAFNOSUPPORT), allow)
	f.on(unix.SYS_SOCKETPAIR, load(argument(0)), jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0), refuse(unix.EAFNOSUPPORT), allow)
}

// sockets leaves TCP, where Landlock and the listener say whereto, and pairs.
// All other kinds of sockets reach what Landlock does not guard: daemons of the
// agent's user by name, and the network.
func (f *filter) sockets(asked bool) {
	const kind = 0xf // of a type, which has flags as well
	f.on(unix.SYS_SOCKET, load(argument(0)),
		jump(unix.BPF_JEQ, unix.AF_INET, 5, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 4, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 2), load(argument(2)), jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 8, 0),
		refuse(unix.EACCES),
		load(argument(1)), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kind}, jump(unix.BPF_JEQ, unix.SOCK_STREAM, 0, 3),
		// Not MPTCP, SCTP or SMC, which Landlock takes for no TCP.
		load(argument(2)), jump(unix.BPF_JEQ, 0, 2, 0), jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 1, 0),
		refuse(unix.EACCES), allow)
	// A datagram of a pair can be sent to any name, a stream cannot.
	f.on(unix.SYS_SOCKETPAIR, load(argument(0)), jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 4),
		load(argument(1)), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kind},
		jump(unix.BPF_JEQ, unix.SOCK_STREAM, 2, 0), jump(unix.BPF_JEQ, unix.SOCK_SEQPACKET, 1, 0),
		refuse(unix.EACCES), allow)
	// With this flag they connect, which Landlock does not notice.
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
		// Without a bind, which Landlock guards, it would take some port.
		f.on(unix.SYS_LISTEN, refuse(unix.EACCES))
	}
	for _, nr := range shared {
		f.on(nr, refuse(unix.EPERM))
	}
}

// allow lets the call pass.
var allow = end(unix.SECCOMP_RET_ALLOW)

func (f *filter) add(code ...unix.SockFilter) { f.code = append(f.code, code...) }

// on judges one call by code that ends with an answer; the number is loaded
// before it, and stays so for other calls.
func (f *filter) on(nr uint32, code ...unix.SockFilter) {
	f.add(jump(unix.BPF_JEQ, nr, 0, uint8(len(code))))
	f.add(code...)
}

func argument(i int) uint32 { return callArgs + 8*uint32(i) }

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jump goes on after so many more instructions, by what the test says.
func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

func end(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

func refuse(errno unix.Errno) unix.SockFilter { return end(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// install puts the filter over this thread and what it becomes, for good. With
// listen it returns the descriptor by which somebody else answers.
func (f *filter) install(listen bool) (listener int, err error) {
	var flags uintptr
	if listen {
		// A signal does not take a call back that is being answered.
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	program := unix.SockFprog{Len: uint16(len(f.code)), Filter: &f.code[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, fmt.Errorf("%w: filter the agent's system calls: %w", ErrUnavailable, errno)
	}
	return int(fd), nil
}
