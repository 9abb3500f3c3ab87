package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// trialStep does a step of a trial, if Main was called with one.
func trialStep(argument string) (code int, is bool) {
	switch argument {
	case namespaceArgument:
		return holdNamespace(), true
	case targetArgument:
		return runTarget(), true
	case attempt:
		return tryOut(), true
	}
	return 0, false
}

// adopt has this process become the parent of those below it that lose theirs.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// started notes the agent: nothing, as no process below the shim gets away from it.
func started(int) {}

// itself is the path of this program, which holds even when its file was replaced.
func itself() (string, error) { return "/proc/self/exe", nil }

// session gives the agent a session of its own, which ends with the thread that started it.
func session() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// openGate makes the pair over which the last step sends the listener of its filter.
func openGate() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "gate"), os.NewFile(uintptr(pair[1]), "gate"), nil
}

// judge decides whether the agent has a filter of system calls, and a gate.
func judge(o *orders, pid int) {
	o.Filtered = o.Level != None && !o.Less.Unfiltered && filterable()
	o.Asked = o.Filtered && o.Level == Landlock && answerable(pid)
}

// keepGate answers what the agent's filter asks.
func keepGate(o *orders, ours *os.File) (err error) {
	g := &gate{ports: map[uint16]bool{}}
	for _, port := range o.Ports {
		g.ports[uint16(port)] = true
	}
	if g.listener, err = takeOver(ours); err == nil {
		go g.serve()
	}
	return err
}

// most is the highest value of a resource limit on this system.
func most(int) uint64 { return unix.RLIM_INFINITY }

// join makes a command start in the control group of the spec.
func (s *Spec) join(attr *syscall.SysProcAttr) {
	if s.Group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(s.Group.Fd())
	}
}

// setNice raises the nice value of this process to nice. A higher value stays,
// because it cannot be lowered again.
func setNice(nice int) error {
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the kernel's form: 20 minus the nice value
	if err == nil && 20-now < nice {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
	}
	if err != nil {
		return fmt.Errorf("let others go first: %w", err)
	}
	return nil
}

// preferOOMKill makes the kernel end this process and its children first when the
// machine is out of memory. Not every machine allows that, and the sandbox works
// without it.
func preferOOMKill() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}

// memoryFolders returns the arguments for the temporary folders of a Bubblewrap
// sandbox. /dev is made read-only, because it would be another place for files.
func memoryFolders(bwrap *launcher, l Limits) (args []string) {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if bwrap.can("--size") {
			args = append(args, "--size", strconv.FormatUint(cmp.Or(l.TempBytes, tempBytes), 10))
		}
		args = append(args, "--perms", "1777", "--tmpfs", dir)
	}
	return append(args, "--remount-ro", "/dev")
}
