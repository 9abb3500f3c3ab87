package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// macOS has neither of the better levels. At the level None all processes below the shim are found
// and killed, and those that have lost their parent and are still in a session of the agent. One
// that has both left its parent and begun a session of its own gets away.

var errSystem = fmt.Errorf("%w: this is macOS, which has neither bubblewrap nor Landlock", ErrUnavailable)

var errRoot = errors.New("a box on macOS does not run as root: its agents would be root, too")

// Probe answers that None is what this system offers, unless the box is root.
func Probe(ctx context.Context, dir, program string) []Finding {
	out := make([]Finding, len(levels))
	for i, l := range levels {
		out[i] = ProbeLevel(ctx, l, dir, program)
	}
	return out
}

// ProbeLevel is Probe for one level.
func ProbeLevel(_ context.Context, l Level, _, _ string) Finding {
	f := Finding{Level: l}
	switch {
	case l != None:
		f.Err = errSystem
	case os.Geteuid() == 0:
		f.Err = errRoot
	}
	return f
}

// Separate tells whether agents run as another user than this process.
func Separate() bool { return false }

func bubblewrap(*launch, string) (*exec.Cmd, error) { return nil, errSystem }

// join does nothing: there are no control groups.
func (s *Spec) join(*syscall.SysProcAttr) {}

func trialStep(string) (code int, is bool) { return 0, false }

func adopt() error { return nil }

// sessions are those of agents, by the processes that began them.
var sessions sync.Map

func started(pid int) { sessions.Store(pid, true) }

func itself() (string, error) { return os.Executable() }

func session() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func openGate() (ours, theirs *os.File, err error) { return nil, nil, nil }

func judge(*orders, int) {}

func keepGate(*orders, *os.File) error { return errSystem }

func giveUpPrivileges() error { return nil }

// closeOthers marks all descriptors that could be open. Go has opened its own so already.
func closeOthers() error {
	entries, err := os.ReadDir("/dev/fd")
	for _, e := range entries {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && fd >= ordersFD {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

func restrict(*orders) error { return errSystem }

func filterCalls(*orders) error { return errSystem }

// most is the highest value of a resource limit on this system, which refuses a higher one.
func most(resource int) uint64 {
	if resource == unix.RLIMIT_NOFILE {
		if n, err := unix.SysctlUint32("kern.maxfilesperproc"); err == nil {
			return uint64(n)
		}
	}
	return unix.RLIM_INFINITY
}

// setNice raises the nice value of this process to nice.
func setNice(nice int) error {
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err == nil && now < nice {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
	}
	if err != nil {
		return fmt.Errorf("let others go first: %w", err)
	}
	return nil
}

func preferOOMKill() {}

// zombie is the state of a process that has ended (SZOMB).
const zombie = 5

// table reads the table of processes. One that has lost its parent and is in a session of an agent
// counts as below this process.
func table() (out []process) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	for _, k := range all {
		p := process{int(k.Proc.P_pid), int(k.Eproc.Ppid), k.Proc.P_stat != zombie}
		if p.parent == 1 {
			if id, err := unix.Getsid(p.pid); err == nil {
				if _, ours := sessions.Load(id); ours {
					p.parent = os.Getpid()
				}
			}
		}
		out = append(out, p)
	}
	return out
}
