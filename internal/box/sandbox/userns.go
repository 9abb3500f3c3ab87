package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// owner is the argument that makes Main hold a new user namespace for a moment.
const owner = "namespace"

// launchers remembers what each Bubblewrap can do, by path.
var launchers sync.Map

// launcher is an installed Bubblewrap.
type launcher struct {
	path    string
	options string // its own list of them
	once    sync.Once
	// user is a namespace for the sandboxes of a root box; nil if there can be none.
	user *os.File
	why  error // there can be none
}

// launcherWait bounds the questions that a Bubblewrap is asked before it is used.
const launcherWait = 10 * time.Second

func findLauncher() (*launcher, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, fmt.Errorf("sandbox: %s: %w: %w", Bubblewrap, ErrUnavailable, err)
	}
	if l, known := launchers.Load(path); known {
		return l.(*launcher), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), launcherWait)
	defer cancel()
	help, err := exec.CommandContext(ctx, path, "--help").Output()
	l := &launcher{path: path, options: string(help)}
	if err != nil {
		return l, nil // it will say itself what is wrong, and may be repaired
	}
	first, _ := launchers.LoadOrStore(path, l)
	return first.(*launcher), nil
}

// can tells whether it has an option.
func (l *launcher) can(option string) bool { return strings.Contains(l.options, option+" ") }

// namespace is a user namespace in which the sandboxes of a root box are made,
// one for all of them: what has capabilities in there, such as the shim, has
// none over the machine. Every user is itself in it, so that files keep their
// owners, and no further user namespace can be made. It is nil where the
// machine lets nobody make one or Bubblewrap cannot work in it, as in a
// container whose /proc is covered; then the capabilities are the machine's, and
// the filter of system calls alone keeps agents from making one.
func (l *launcher) namespace(self string) *os.File {
	l.once.Do(func() {
		l.user, l.why = newNamespace(self)
		if l.why == nil {
			if l.why = l.try(l.user); l.why != nil {
				l.user.Close()
				l.user = nil
			}
		}
	})
	return l.user
}

// try makes a sandbox in a namespace that has all the parts that may be refused.
func (l *launcher) try(user *os.File) error {
	ctx, cancel := context.WithTimeout(context.Background(), launcherWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.path, "--userns", "3", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
		"--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", "/proc/self/exe", "--version")
	cmd.ExtraFiles = []*os.File{user}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// newNamespace makes a user namespace like ours.
func newNamespace(self string) (*os.File, error) {
	users, err := identity("/proc/self/uid_map")
	if err != nil {
		return nil, err
	}
	groups, err := identity("/proc/self/gid_map")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, Command, owner)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: users, GidMappings: groups, GidMappingsEnableSetgroups: true, Pdeathsig: syscall.SIGKILL,
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, err = out.Read(make([]byte, 1)) // it has done its part
	var user *os.File
	if err == nil {
		user, err = os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
	}
	in.Close()
	return user, errors.Join(err, cmd.Wait())
}

// holdNamespace is the process that newNamespace starts in it.
func holdNamespace() int {
	// Where /proc/sys cannot be written, the filter of system calls has to do.
	_ = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	_, _ = os.Stdout.Write([]byte{'\n'})
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is closed
	return 0
}

// identity maps every user that a map of ours has to itself.
func identity(file string) (out []syscall.SysProcIDMap, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var inside, outside, count uint32
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, syscall.SysProcIDMap{ContainerID: int(inside), HostID: int(inside), Size: int(count)})
	}
	return out, nil
}
