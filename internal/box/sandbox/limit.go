package sandbox

import (
	"fmt"

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
		value := min(x.value, own.Max, most(x.resource)) // a process cannot exceed its own limit
		if err := unix.Setrlimit(x.resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("limit %s: %w", x.name, err)
		}
	}
	return setNice(l.Nice)
}
