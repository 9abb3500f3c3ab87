package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits are resource limits of each process; zero means the limit of the box
// itself.
type Limits struct {
	// Processes limits the processes and threads of the agent's user; where the
	// sandbox has no users of its own, all that this user runs.
	Processes uint64
	FileBytes uint64 // the largest file that can be written, in bytes
	OpenFiles uint64 // descriptors, at most as many as the box itself may have
	TempBytes uint64 // bytes in each temporary folder of a Bubblewrap sandbox, which are in memory
	Nice      int    // nice value of the agent; 0 to 19
}

// PID returns the process outside of the sandbox that is the ancestor of all its
// processes.
func (p *Process) PID() int { return p.pid }

// join makes a command start in the control group of the spec.
func (s *Spec) join(attr *syscall.SysProcAttr) {
	if s.Group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(s.Group.Fd())
	}
}

// setLimits limits this process and its children.
func setLimits(l Limits) error {
	for _, x := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"processes", unix.RLIMIT_NPROC, l.Processes},
		{"the size of files", unix.RLIMIT_FSIZE, l.FileBytes},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"core files", unix.RLIMIT_CORE, 0},
	} {
		if x.value == 0 && x.resource != unix.RLIMIT_CORE {
			continue
		}
		var own unix.Rlimit
		if err := unix.Getrlimit(x.resource, &own); err != nil {
			return fmt.Errorf("limit %s: %w", x.name, err)
		}
		value := min(x.value, own.Max) // a process cannot exceed its own limit
		if err := unix.Setrlimit(x.resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("limit %s: %w", x.name, err)
		}
	}
	return setNice(l.Nice)
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
