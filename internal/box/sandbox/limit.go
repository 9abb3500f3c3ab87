package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits are resource limits of each process; zero means the box's own.
type Limits struct {
	Processes uint64 // processes and threads of the agent's user; where the sandbox has no users of its own, those of all that this user runs
	FileBytes uint64 // the largest file that can be written
	OpenFiles uint64 // descriptors, at most what the box itself may have
	TempBytes uint64 // in each temporary folder of a Bubblewrap sandbox, which are memory
	Nice      int    // how far others go before the agent when processors are short; 0 to 19
}

// PID is the process outside of the sandbox below which all of its processes are.
func (p *Process) PID() int { return p.pid }

// join has a command begin in the control group that the spec names.
func (s *Spec) join(attr *syscall.SysProcAttr) {
	if s.Group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(s.Group.Fd())
	}
}

// setLimits limits this process and all that it becomes and starts.
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
		value := min(x.value, own.Max) // more than the box has is not the box's to give
		if err := unix.Setrlimit(x.resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("limit %s: %w", x.name, err)
		}
	}
	return yield(l.Nice)
}

// yield lets others go before this process as far as nice says. Whoever lets them
// go further already cannot take that back.
func yield(nice int) error {
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // as the kernel has it: 20 less what is meant
	if err == nil && 20-now < nice {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
	}
	if err != nil {
		return fmt.Errorf("let others go first: %w", err)
	}
	return nil
}

// expendable has the kernel end this process and its children first when the
// machine is out of memory. Not every machine lets it be said, and none has to.
func expendable() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}

// memoryFolders are the temporary folders of a Bubblewrap sandbox. What is made
// for devices takes no files, or it would be one more of them.
func memoryFolders(bwrap *launcher, l Limits) (args []string) {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if bwrap.can("--size") {
			args = append(args, "--size", strconv.FormatUint(cmp.Or(l.TempBytes, tempBytes), 10))
		}
		args = append(args, "--perms", "1777", "--tmpfs", dir)
	}
	return append(args, "--remount-ro", "/dev")
}
