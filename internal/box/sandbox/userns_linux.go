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

// namespaceArgument is the argument that makes Main hold a new user namespace for a moment.
const namespaceArgument = "namespace"

// launchers caches what each installed Bubblewrap can do, by path.
var launchers sync.Map

// launcher is an installed Bubblewrap.
type launcher struct {
	path    string
	options string // the output of --help
	once    sync.Once
	// user is a namespace for the sandboxes of a root box; nil if there is none.
	user *os.File
	why  error // why there is none
}

// launcherWait limits the calls of Bubblewrap that examine it.
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
		return l, nil // its own error will say what is wrong, and it may be repaired later
	}
	first, _ := launchers.LoadOrStore(path, l)
	return first.(*launcher), nil
}

// can tells whether Bubblewrap has an option.
func (l *launcher) can(option string) bool { return strings.Contains(l.options, option+" ") }

// namespace returns a user namespace for all sandboxes of a root box. Processes
// with capabilities in it, such as the shim, have none over the machine. Every user
// is mapped to itself, so that files keep their owners, and no further user
// namespace can be made in it. The result is nil where the machine refuses to make
// one or Bubblewrap cannot work in it, as in a container with a covered /proc. Then
// the capabilities are the machine's, and only the filter of system calls keeps
// agents from making a user namespace.
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

// try makes a sandbox in a namespace, with all the parts that a machine may refuse.
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

// newNamespace makes a user namespace with the users and groups of this one.
func newNamespace(self string) (*os.File, error) {
	users, err := identity("/proc/self/uid_map")
	if err != nil {
		return nil, err
	}
	groups, err := identity("/proc/self/gid_map")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, Command, namespaceArgument)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER,
		UidMappings:                users,
		GidMappings:                groups,
		GidMappingsEnableSetgroups: true,
		Pdeathsig:                  syscall.SIGKILL,
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
	_, err = out.Read(make([]byte, 1)) // the process has done its part
	var user *os.File
	if err == nil {
		user, err = os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
	}
	in.Close()
	return user, errors.Join(err, cmd.Wait())
}

// holdNamespace is the main function of the process that newNamespace starts in the
// namespace.
func holdNamespace() int {
	// Where /proc/sys cannot be written, only the filter of system calls prevents
	// further namespaces.
	_ = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	_, _ = os.Stdout.Write([]byte{'\n'})
	_, _ = os.Stdin.Read(make([]byte, 1)) // returns when newNamespace closes the input
	return 0
}

// identity returns a map of every user in one of our maps to itself.
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
